"""`pg-mdistinct demo`: the hospital of the paper, on the embedded server."""

from __future__ import annotations

from pathlib import Path

import click
import psycopg
from psycopg import sql
from rich.console import Console

from pg_mdistinct.cli.console import say
from pg_mdistinct.core.errors import MdistinctError
from pg_mdistinct.embedded import EmbeddedServer, EmbeddedServerError
from pg_mdistinct.embedded.places import default_home

DATABASE = "hospital"


@click.command()
@click.option(
    "--home",
    type=click.Path(path_type=Path, file_okay=False),
    help="Keep the server's files in this folder.",
)
def demo(home: Path | None) -> None:
    """Publish the paper's hospital twice, and see what an adversary makes of it."""
    # Imported late: the other commands need not wait for Numba.
    from pg_mdistinct.demo import play

    try:
        dsn = prepare(EmbeddedServer(home or default_home(), say=say))
        play(dsn, Console())
    except (EmbeddedServerError, MdistinctError, OSError, psycopg.Error) as error:
        raise click.ClickException(str(error)) from error


def prepare(server: EmbeddedServer) -> str:
    """Starts the server and puts the plugin into the demo's own database; returns its DSN."""
    # Imported late: the other commands need not wait for alembic.
    from pg_mdistinct.install import install

    with psycopg.connect(server.start(), autocommit=True) as connection:
        found = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [DATABASE])
        if found.fetchone() is None:
            say(f"Creating the database {DATABASE}")
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(DATABASE)))
    dsn = server.dsn(DATABASE)
    install(dsn, on_message=say)
    return dsn
