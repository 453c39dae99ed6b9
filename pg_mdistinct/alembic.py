"""The plugin as a part of somebody's own alembic project.

    from alembic import op
    from pg_mdistinct.alembic import upgrade_plugin

    def upgrade() -> None:
        upgrade_plugin(op.get_bind())

The plugin keeps revisions of its own, in mdistinct.alembic_version: those of the project stay what
they are. `include_name` keeps `alembic revision --autogenerate` from dropping the plugin's tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import psycopg
import sqlalchemy

from pg_mdistinct.install import build, commands, connect

_SETTINGS = ("search_path", "client_min_messages", "check_function_bodies", "role")


def upgrade_plugin(bind: sqlalchemy.Connection, *, warm_up: bool = True) -> commands.InstallReport:
    """Brings the plugin to this version, or installs it, in the migration's transaction.

    Needs a superuser, like `pg-mdistinct install`. `warm_up` compiles the numerical kernels, which
    the first publication would have to wait for otherwise.
    """
    driver = connect.driver_connection(bind)
    with _settings_kept(driver):
        report = commands.apply(bind, lambda _: None)
        if warm_up:
            driver.execute("SELECT mdistinct.warm_up()")
    return report


def include_name(name: str | None, type_: str, parent_names: Mapping[str, Any]) -> bool:
    """For `context.configure(include_name=...)`: leaves the plugin's schemas alone."""
    return type_ != "schema" or name not in build.SCHEMAS


@contextmanager
def _settings_kept(driver: psycopg.Connection[Any]) -> Iterator[None]:
    """Gives the migrations that follow in the transaction the settings that they had."""
    query = "SELECT name, current_setting(name) FROM unnest(%s::text[]) AS name"
    before = driver.execute(query, [list(_SETTINGS)]).fetchall()
    yield
    for name, value in before:
        driver.execute("SELECT pg_catalog.set_config(%s, %s, true)", [name, value])
