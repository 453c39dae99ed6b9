"""A throwaway server with the plugin, and the paper's workload in a table."""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import psycopg

from pg_mdistinct.embedded import EmbeddedServer
from pg_mdistinct.install import install
from pg_mdistinct.workload import QI_COLUMNS, SnapshotArray, Workload

Connection = psycopg.Connection[Any]

REPEAT = 5


class Run:
    """One run of benchmarks: how large, whom to tell, and a server that all of them share."""

    def __init__(self, say: Callable[[str], None], scale: float) -> None:
        self.say = say
        self.scale = scale
        self._server: EmbeddedServer | None = None
        self._databases = 0

    @contextmanager
    def database(self) -> Iterator[Connection]:
        """Make a database with the plugin, on a server of our own."""
        if self._server is None:
            self._server = EmbeddedServer(throwaway=True, say=self.say)
            self._server.start()
        self._databases += 1
        name = f"bench_{self._databases}"
        with another(self._server.dsn("postgres")) as maintenance:
            maintenance.execute(f"CREATE DATABASE {name}")
            install(self._server.dsn(name), on_message=self.say)
            with another(self._server.dsn(name)) as connection:
                yield connection
            maintenance.execute(f"DROP DATABASE {name} WITH (FORCE)")

    def end(self) -> None:
        """Remove the server."""
        if self._server is not None:
            self._server.stop()


def another(dsn: str) -> Connection:
    """Return a new session."""
    return psycopg.connect(dsn, autocommit=True)


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
    declare(connection, dataset, workload)


def declare(connection: Connection, dataset: str, workload: Workload) -> None:
    """Declare the update model of a workload."""
    labels, transition = workload.model()
    for old, row in zip(labels, transition, strict=True):
        connection.execute(
            "SELECT mdistinct_allow_update(%s, %s, %s)",
            (dataset, old, [labels[i] for i in row.nonzero()[0]]),
        )


def load(connection: Connection, table: str, snapshot: SnapshotArray) -> None:
    """Replace the rows of a table."""
    text = io.BytesIO()
    columns = [snapshot[name] for name in snapshot.dtype.names or ()]
    np.savetxt(text, np.stack(columns, axis=1), fmt="%d", delimiter="\t")
    connection.execute(f"TRUNCATE public.{table}")
    with connection.cursor().copy(f"COPY public.{table} FROM STDIN") as copy:
        copy.write(text.getbuffer())
    connection.execute(f"VACUUM ANALYZE public.{table}")


def seconds(connection: Connection, statement: str, repeat: int = 1) -> float:
    """Return the shortest time that a statement took."""
    times = []
    for _ in range(repeat):
        started = time.perf_counter()
        connection.execute(statement)
        times.append(time.perf_counter() - started)
    return min(times)


def tried(connection: Connection, statement: str, repeat: int = REPEAT, before: str = "") -> float:
    """Return the shortest time that a statement took, and leave nothing of what it did.

    Not even rows that nobody sees: the next try would have to pass over them.
    """
    times = []
    for _ in range(repeat):
        with connection.transaction(force_rollback=True):
            if before:
                connection.execute(before)
            times.append(seconds(connection, statement))
        connection.execute("VACUUM")
    return min(times)


def by_turns(repeat: int, *measures: Callable[[], float]) -> list[float]:
    """Return the shortest time of each, taken in turn: what slows the machine down meets all."""
    rounds = [[measure() for measure in measures] for _ in range(repeat)]
    return [min(times) for times in zip(*rounds, strict=True)]


def sorted_copy(connection: Connection, table: str, repeat: int = REPEAT) -> float:
    """Return how long PostgreSQL takes to sort the rows by their QIs and write them elsewhere."""
    return tried(
        connection,
        f"INSERT INTO public.sorted_copy SELECT * FROM public.{table}"
        f" ORDER BY {', '.join(QI_COLUMNS)}",
        repeat,
        before=f"CREATE TABLE public.sorted_copy (LIKE public.{table})",
    )


def published(connection: Connection, table: str, repeat: int = REPEAT) -> float:
    """Return how long it takes to publish, in a session that has done so before."""
    return tried(connection, f"SELECT mdistinct_publish('{table}')", repeat)


def peak_megabytes(connection: Connection) -> float:
    """Return the most memory that the session's process has had, shared buffers included."""
    status = Path(f"/proc/{connection.info.backend_pid}/status").read_text(encoding="utf-8")
    line = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) / 1024


def of_size(records: int, **options: Any) -> Workload:
    """Return the paper's workload, with so many records in the second release."""
    initial = round(records / 1.15)
    return Workload(
        initial=initial,
        insertions=records - initial + initial // 10,
        deletions=initial // 10,
        updates=initial // 4,
        **options,
    )


def second_release(connection: Connection, table: str, workload: Workload, m: int) -> int:
    """Publish the first release, load the second, and return how many records it has."""
    register(connection, table, workload, m)
    first, second = workload.releases(2)
    load(connection, table, first)
    connection.execute(f"SELECT mdistinct_publish('{table}')")
    load(connection, table, second)
    return len(second)
