"""Runs the revisions, then creates every function anew, in the transaction of the installer.

Revisions own the state (tables, types, roles). Functions belong to no revision: their bodies carry
the folder of the server code, so every version replaces all of them.
"""

from __future__ import annotations

from alembic import context
from alembic.util import CommandError

from pg_mdistinct.install import build, connect


def _run() -> None:
    attributes = context.config.attributes
    if context.is_offline_mode() or "connection" not in attributes:
        raise CommandError("run the migrations by: pg-mdistinct upgrade --dsn DSN")
    connection = attributes["connection"]
    driver = connect.driver_connection(connection)
    # alembic makes its version table before it runs the revision that makes the schemas.
    driver.execute("CREATE SCHEMA IF NOT EXISTS mdistinct")
    context.configure(connection=connection, version_table_schema="mdistinct")
    with context.begin_transaction():
        context.run_migrations()
        build.run_functions(driver, attributes["rendering"])


_run()
