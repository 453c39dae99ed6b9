"""`pg-mdistinct install`, `upgrade` and `uninstall`.

The installer is imported when it is called: alembic would slow every command down.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import click

from pg_mdistinct.cli.console import say
from pg_mdistinct.cli.database import database_dsn, dsn_option
from pg_mdistinct.core.errors import MdistinctError


@click.command()
@dsn_option
def install(dsn: str | None) -> None:
    """Put the plugin into a database.

    Needs a superuser and PL/Python with NumPy and Numba; says what to run where one is missing.
    Can be run again at any time.
    """
    from pg_mdistinct import install as installer

    with _explained():
        report = installer.install(database_dsn(dsn), on_message=say)
    click.echo(f"pg_mdistinct {report.version} is installed in {report.database}")


@click.command()
@dsn_option
def upgrade(dsn: str | None) -> None:
    """Bring an installed plugin to this version; the history stays."""
    from pg_mdistinct import install as installer

    with _explained():
        report = installer.upgrade(database_dsn(dsn), on_message=say)
    click.echo(f"pg_mdistinct {report.version} is installed in {report.database}")


@click.command()
@dsn_option
@click.option(
    "--purge-history",
    is_flag=True,
    help="Delete what was published and all that is known about it, too.",
)
@click.option("--yes", is_flag=True, help="Do not ask before the history is deleted.")
def uninstall(dsn: str | None, purge_history: bool, yes: bool) -> None:
    """Take the plugin out of a database; the history stays unless told otherwise."""
    from pg_mdistinct import install as installer

    if purge_history and not yes:
        click.confirm(
            "This deletes all releases and the history that keeps further ones safe. Go on?",
            abort=True,
        )
    with _explained():
        report = installer.uninstall(database_dsn(dsn), purge_history=purge_history, on_message=say)
    kept = "its history is kept" if report.history_kept else "nothing of it is left"
    click.echo(f"pg_mdistinct is no longer in {report.database}; {kept}")


@contextmanager
def _explained() -> Iterator[None]:
    """Turns trouble into a message without a traceback."""
    try:
        yield
    except MdistinctError as error:
        raise click.ClickException(str(error)) from error
