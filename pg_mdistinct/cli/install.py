"""`pg-mdistinct install`, `upgrade` and `uninstall`.

The installer is imported when it is called: SQLAlchemy and alembic would slow every command down.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import click

from pg_mdistinct.cli.console import say
from pg_mdistinct.core.errors import MdistinctError

_dsn_option = click.option(
    "--dsn",
    required=True,
    envvar="PG_MDISTINCT_DSN",
    show_envvar=True,
    help='The database: "postgresql://user@host/database" or "host=... dbname=...".',
)


@click.command()
@_dsn_option
def install(dsn: str) -> None:
    """Put the plugin into a database.

    Needs a superuser and PL/Python with NumPy and Numba; says what to run where one is missing.
    Can be run again at any time.
    """
    from pg_mdistinct import install as installer

    with _explained():
        report = installer.install(dsn, on_message=say)
    click.echo(f"pg_mdistinct {report.version} is installed in {report.database}")


@click.command()
@_dsn_option
def upgrade(dsn: str) -> None:
    """Bring an installed plugin to this version; the history stays."""
    from pg_mdistinct import install as installer

    with _explained():
        report = installer.upgrade(dsn, on_message=say)
    click.echo(f"pg_mdistinct {report.version} is installed in {report.database}")


@click.command()
@_dsn_option
@click.option(
    "--purge-history",
    is_flag=True,
    help="Delete what was published and all that is known about it, too.",
)
@click.option("--yes", is_flag=True, help="Do not ask before the history is deleted.")
def uninstall(dsn: str, purge_history: bool, yes: bool) -> None:
    """Take the plugin out of a database; the history stays unless told otherwise."""
    from pg_mdistinct import install as installer

    if purge_history and not yes:
        click.confirm(
            "This deletes all releases and the history that keeps further ones safe. Go on?",
            abort=True,
        )
    with _explained():
        report = installer.uninstall(dsn, purge_history=purge_history, on_message=say)
    kept = "its history is kept" if report.history_kept else "nothing of it is left"
    click.echo(f"pg_mdistinct is no longer in {report.database}; {kept}")


@contextmanager
def _explained() -> Iterator[None]:
    """Turns trouble into a message without a traceback."""
    try:
        yield
    except MdistinctError as error:
        raise click.ClickException(str(error)) from error
