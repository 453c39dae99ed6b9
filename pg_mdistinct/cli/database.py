"""Which database a command means, and how its errors are shown."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import click

from pg_mdistinct.client import Client, MdistinctSqlError
from pg_mdistinct.embedded import EmbeddedServer, EmbeddedServerError

dsn_option = click.option(
    "--dsn",
    envvar="PG_MDISTINCT_DSN",
    show_envvar=True,
    help="The database; by default that of the running embedded server.",
)


@contextmanager
def connected(dsn: str | None) -> Iterator[Client]:
    """A client for the database that is meant; SQL errors become messages without traceback."""
    with Client(database_dsn(dsn)) as client:
        try:
            yield client
        except MdistinctSqlError as error:
            raise click.ClickException(str(error)) from error


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
