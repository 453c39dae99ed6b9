"""Which database a command means, and how its errors are shown."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click
import psycopg

from pg_mdistinct.client import Client, MdistinctSqlError
from pg_mdistinct.client.connections import APPLICATION, plain
from pg_mdistinct.client.errors import translated
from pg_mdistinct.embedded import EmbeddedServer, EmbeddedServerError

dsn_option = click.option(
    "--dsn",
    envvar="PG_MDISTINCT_DSN",
    show_envvar=True,
    help='The database, as "postgresql://user@host/name" or "host=... dbname=..."; by default that'
    " of the running embedded server.",
)

# Texts of dates, times and numbers are the same whatever the session, role or database has set.
_WRITTEN_ALIKE = (
    "SET LOCAL datestyle = 'ISO, YMD'; SET LOCAL timezone = 'UTC';"
    " SET LOCAL intervalstyle = 'postgres'; SET LOCAL extra_float_digits = 1;"
    " SET LOCAL bytea_output = 'hex'"
)


@contextmanager
def connected(dsn: str | None) -> Iterator[Client]:
    """A client for the database that is meant; SQL errors become messages without traceback."""
    with _explained(), Client(database_dsn(dsn)) as client:
        yield client


@contextmanager
def one_snapshot(dsn: str | None) -> Iterator[psycopg.Connection[Any]]:
    """A connection that sees the database as it is at one moment, and cannot write."""
    with _explained(), translated(), open_connection(database_dsn(dsn)) as connection:
        connection.read_only = True
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.execute(_WRITTEN_ALIKE)
        yield connection


def open_connection(dsn: str) -> psycopg.Connection[Any]:
    """A connection of psycopg's own, made as the client makes its own."""
    return psycopg.connect(plain(dsn), application_name=APPLICATION)


def database_dsn(dsn: str | None) -> str:
    """The DSN that was given, or else that of the embedded server."""
    if dsn:
        return dsn
    try:
        return EmbeddedServer().dsn()
    except (EmbeddedServerError, OSError) as error:
        raise click.ClickException(
            "no database: give --dsn, set PG_MDISTINCT_DSN or run: pg-mdistinct server start"
        ) from error


@contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except MdistinctSqlError as error:
        raise click.ClickException(str(error)) from error
