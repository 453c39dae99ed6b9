"""A throwaway server with the plugin, and the paper's workload in a table."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from pg_mdistinct.embedded import EmbeddedServer
from pg_mdistinct.install import install
from pg_mdistinct.workload import QI_COLUMNS, SnapshotArray, Workload

Connection = psycopg.Connection[Any]
Say = Callable[[str], None]


@contextmanager
def server(say: Say) -> Iterator[Connection]:
    """Start a server of our own, install the plugin, and remove both afterwards."""
    embedded = EmbeddedServer(throwaway=True, say=say)
    dsn = embedded.start()
    try:
        install(dsn, on_message=say)
        with psycopg.connect(dsn, autocommit=True) as connection:
            yield connection
    finally:
        embedded.stop()


def register(connection: Connection, dataset: str, workload: Workload, m: int) -> None:
    """Make an empty table with a dataset of the same name, and declare its update model."""
    connection.execute(
        f"CREATE TABLE public.{dataset} (id bigint PRIMARY KEY, age int, gender int, marital int,"
        " education int, occupation int)"
    )
    connection.execute(
        "SELECT mdistinct_register(%s, %s, 'id', %s, 'occupation', %s)",
        (dataset, f"public.{dataset}", list(QI_COLUMNS), m),
    )
    labels, transition = workload.model()
    for old, row in zip(labels, transition, strict=True):
        connection.execute(
            "SELECT mdistinct_allow_update(%s, %s, %s)",
            (dataset, old, [labels[i] for i in row.nonzero()[0]]),
        )


def load(connection: Connection, table: str, snapshot: SnapshotArray) -> None:
    """Replace the rows of a table."""
    connection.execute(f"TRUNCATE public.{table}")
    with connection.cursor().copy(f"COPY public.{table} FROM STDIN") as copy:
        for row in snapshot.tolist():
            copy.write_row(row)
    connection.execute(f"VACUUM ANALYZE public.{table}")


def seconds(connection: Connection, statement: str, repeat: int = 1) -> float:
    """Return the shortest time that a statement took."""
    times = []
    for _ in range(repeat):
        started = time.perf_counter()
        connection.execute(statement)
        times.append(time.perf_counter() - started)
    return min(times)
