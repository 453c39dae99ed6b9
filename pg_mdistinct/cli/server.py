"""`pg-mdistinct server`: the embedded local PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from pg_mdistinct.cli.console import say
from pg_mdistinct.embedded import EmbeddedServer, EmbeddedServerError
from pg_mdistinct.embedded.places import default_home

# As for an init script: the program is not running.
_STOPPED = 3

_home_option = click.option(
    "--home",
    type=click.Path(path_type=Path, file_okay=False),
    help="Keep the server's files in this folder.",
)


@click.group()
def server() -> None:
    """Run a private PostgreSQL with PL/Python.

    Its files lie in $PG_MDISTINCT_HOME, else in .pg-mdistinct in the checkout, else in the user's
    data folder. Its superuser is called postgres, its database mdistinct.
    """


@server.command()
@_home_option
@click.option(
    "--throwaway",
    is_flag=True,
    help="For tests: quick, but a crash loses the data, and stop deletes it.",
)
def start(home: Path | None, throwaway: bool) -> None:
    """Start the server unless it runs; the last line is its DSN."""
    with _explained():
        embedded = EmbeddedServer(home or default_home(), throwaway, say=say)
        dsn = embedded.start()
        say(f"PostgreSQL runs in {embedded.home}; log: {embedded.log}")
    click.echo(dsn)


@server.command()
@_home_option
def stop(home: Path | None) -> None:
    """Stop the server if it runs."""
    with _explained():
        stopped = EmbeddedServer(home, say=say).stop()
    say("The server is stopped." if stopped else "The server was not running.")


@server.command()
@_home_option
def status(home: Path | None) -> None:
    """Say whether the server runs (exit code 0) or not (3)."""
    with _explained():
        found = EmbeddedServer(home).status()
    if not found.running:
        click.echo(f"stopped ({found.home})")
        raise SystemExit(_STOPPED)
    kind = "running, throwaway" if found.throwaway else "running"
    click.echo(f"{kind} (process {found.pid}, port {found.port}, {found.home})")
    click.echo(found.dsn)


@contextmanager
def _explained() -> Iterator[None]:
    """Turns trouble into a message without a traceback."""
    try:
        yield
    except (EmbeddedServerError, OSError) as error:
        raise click.ClickException(str(error)) from error
