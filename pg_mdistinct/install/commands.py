"""Install, upgrade: each is one transaction, after which all or nothing is there."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import alembic.context
import alembic.op
import psycopg
import sqlalchemy
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util import CommandError

import pg_mdistinct
from pg_mdistinct import resources
from pg_mdistinct.install import build, checks, code, connect
from pg_mdistinct.install.errors import InstallError
from pg_mdistinct.install.render import Rendering

OnMessage = Callable[[str], None]


@dataclass(frozen=True)
class InstallReport:
    """What an installation found and did."""

    database: str
    version: str
    former_revision: str | None
    revision: str
    postgresql: int
    python: checks.PythonFacts
    code_folder: str
    code_written: bool
    functions: int
    warm_up_seconds: float | None = None
    removed_code: tuple[str, ...] = ()


def install(dsn: str, on_message: OnMessage = print) -> InstallReport:
    """Puts the plugin into the database; where it is already, brings it to this version."""
    report = _apply(dsn, on_message)
    return replace(report, warm_up_seconds=_warm_up(dsn, on_message))


def upgrade(dsn: str, on_message: OnMessage = print) -> InstallReport:
    """Brings an installed plugin to this version and removes code that nothing refers to."""
    with connect.open_connection(dsn) as connection:
        if not is_installed(connection):
            raise InstallError(
                f"pg_mdistinct is not installed in {connection.info.dbname}",
                hint="Run: pg-mdistinct install --dsn DSN",
            )
    report = _apply(dsn, on_message)
    return replace(
        report,
        warm_up_seconds=_warm_up(dsn, on_message),
        removed_code=remove_unused_code(dsn, on_message, keep=report.version),
    )


def is_installed(connection: psycopg.Connection[Any]) -> bool:
    """Whether the plugin, or the history that an uninstall has kept, is in the database."""
    row = connection.execute("SELECT to_regclass('mdistinct.alembic_version')").fetchone()
    return row is not None and row[0] is not None


def remove_unused_code(
    dsn: str, on_message: OnMessage, *, keep: str | None = None
) -> tuple[str, ...]:
    """Removes the code of versions that no database of the cluster uses any more."""
    with connect.open_connection(dsn) as connection:
        # Code that another installer has just copied has no functions yet that refer to it.
        build.lock_cluster(connection)
        removed, closed = code.remove_unused(connection, connect.normalized(dsn), keep)
    if removed:
        on_message(f"removed the server code of version {', '.join(removed)}")
    if closed:
        on_message(
            "older server code stays, since these databases could not be looked into:"
            f" {', '.join(closed)}"
        )
    return tuple(removed)


def apply(connection: sqlalchemy.Connection, on_message: OnMessage) -> InstallReport:
    """Brings a database to this version in the transaction of the connection."""
    driver = connect.driver_connection(connection)
    facts = checks.check_database(driver)
    former = _current_revision(connection)
    build.prepare(driver)
    python = checks.check_python(driver, facts)
    on_message(f"PostgreSQL {facts.major}, {python} on the server: all that is needed is there")
    build.lock_cluster(driver)
    rendering = build.rendering(driver)
    written = code.write(driver, rendering.version)
    verb = "copied to" if written else "already in"
    on_message(f"server code {rendering.version} {verb} {rendering.code}")
    _migrate(connection, rendering)
    revision = _current_revision(connection)
    assert revision is not None
    return InstallReport(
        database=facts.database,
        version=rendering.version,
        former_revision=former,
        revision=revision,
        postgresql=facts.major,
        python=python,
        code_folder=rendering.code,
        code_written=written,
        functions=build.count_functions(driver),
    )


def _apply(dsn: str, on_message: OnMessage) -> InstallReport:
    with connect.engine(dsn).begin() as connection:
        report = apply(connection, on_message)
    on_message(_schema_message(report))
    return report


def _schema_message(report: InstallReport) -> str:
    place = f"{report.functions} functions in {report.database}"
    if report.former_revision is None:
        return f"installed revision {report.revision}, {place}"
    if report.former_revision == report.revision:
        return f"revision {report.revision} was there, replaced {place}"
    return f"upgraded from revision {report.former_revision} to {report.revision}, {place}"


def _migrate(connection: sqlalchemy.Connection, rendering: Rendering) -> None:
    config = Config()
    # ConfigParser reads % as the start of an interpolation.
    config.set_main_option("script_location", str(resources.migrations_dir()).replace("%", "%%"))
    config.attributes["connection"] = connection
    config.attributes["rendering"] = rendering
    _refuse_newer(ScriptDirectory.from_config(config), _current_revision(connection))
    with _outer_migration_kept():
        command.upgrade(config, "head")


@contextmanager
def _outer_migration_kept() -> Iterator[None]:
    """Gives alembic back to the migration that called us, if one did.

    `alembic.op` and `alembic.context` stand for one migration at a time, and for none after it.
    """
    outer = [getattr(module, "_proxy", None) for module in (alembic.context, alembic.op)]
    try:
        yield
    finally:
        for proxy in filter(None, outer):
            proxy._install_proxy()


def _refuse_newer(scripts: ScriptDirectory, current: str | None) -> None:
    try:
        if current is not None:
            scripts.get_revision(current)
    except CommandError as error:
        raise InstallError(
            f"the database is at revision {current}, which version {pg_mdistinct.__version__}"
            " does not know",
            hint="Use the version of pg_mdistinct that wrote it, or a later one.",
        ) from error


def _current_revision(connection: sqlalchemy.Connection) -> str | None:
    context = MigrationContext.configure(connection, opts={"version_table_schema": "mdistinct"})
    return context.get_current_revision()


def _warm_up(dsn: str, on_message: OnMessage) -> float | None:
    with connect.open_connection(dsn, autocommit=True) as connection:
        row = connection.execute("SELECT to_regprocedure('mdistinct.warm_up()')").fetchone()
        if row is None or row[0] is None:
            return None
        on_message("compiling the numerical kernels (up to a minute the first time) ...")
        started = time.monotonic()
        try:
            connection.execute("SELECT mdistinct.warm_up()")
        except psycopg.Error as error:
            raise InstallError(
                f"the plugin is installed, but its code does not run: {error.diag.message_primary}",
                detail=error.diag.context,
                hint="See that NumPy and Numba fit together on the server, then install again.",
            ) from error
    seconds = time.monotonic() - started
    on_message(f"compiled and tried out in {seconds:.1f} s")
    return seconds
