"""Executes the files of `sql/`: the state first, then the functions.

Files of `sql/schema` run in the order of their names: those below 10 (roles, schemas) as the
superuser who installs, the rest as mdistinct_owner, who thereby owns what they make. All names in
the files are qualified, for nothing but pg_catalog is on the search path while they run.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg

import pg_mdistinct
from pg_mdistinct import resources
from pg_mdistinct.install import code, sources
from pg_mdistinct.install.errors import InstallError
from pg_mdistinct.install.render import Rendering, render

SCHEMAS = ("mdistinct", "mdistinct_published", "mdistinct_data", "mdistinct_sources")
ROLES = (
    "mdistinct_admin",
    "mdistinct_scheduler",
    "mdistinct_publisher",
    "mdistinct_reader",
    "mdistinct_owner",
)

_SETTINGS = """
SET LOCAL search_path = pg_catalog, pg_temp;
SET LOCAL client_min_messages = warning;
SET LOCAL check_function_bodies = off;
"""
_FOREIGN_SCHEMAS = """
SELECT format('schema %%I of %%I', nspname, nspowner::regrole::text) FROM pg_namespace
WHERE nspname = ANY (%s) AND nspowner <> coalesce(to_regrole('mdistinct_owner')::oid, 0)
"""
_FOREIGN_ROUTINES = """
SELECT format('%%s of %%I', p.oid::regprocedure, p.proowner::regrole::text)
FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
WHERE n.nspname = 'public' AND p.proname LIKE 'mdistinct\\_%%'
    AND p.proowner <> coalesce(to_regrole('mdistinct_owner')::oid, 0)
"""


def prepare(connection: psycopg.Connection[Any]) -> None:
    """Sets the transaction up so that the files mean the same in every database."""
    connection.execute(_SETTINGS)
    refuse_extension(connection)
    connection.execute("CREATE EXTENSION IF NOT EXISTS plpython3u")
    _refuse_foreign(connection)


def refuse_extension(connection: psycopg.Connection[Any]) -> None:
    """Leaves alone what came in by the other door."""
    row = connection.execute("SELECT FROM pg_extension WHERE extname = 'pg_mdistinct'").fetchone()
    if row is not None:
        raise InstallError(
            f"pg_mdistinct is an extension in {connection.info.dbname}",
            hint="Use ALTER EXTENSION pg_mdistinct UPDATE, or DROP EXTENSION pg_mdistinct.",
        )


def lock_cluster(connection: psycopg.Connection[Any]) -> None:
    """Keeps other installers of the cluster out until the transaction ends.

    Roles and code folders belong to all databases, and advisory locks hold for one only; a lock on
    a shared catalog holds for all, and this one lets everybody log in meanwhile.
    """
    connection.execute("LOCK TABLE pg_catalog.pg_authid IN SHARE ROW EXCLUSIVE MODE")


def rendering(connection: psycopg.Connection[Any]) -> Rendering:
    """What the placeholders stand for on this server."""
    version = pg_mdistinct.__version__
    return Rendering(
        code=code.version_folder(connection, version),
        version=version,
        load=(resources.sql_dir() / "load.py.in").read_text(encoding="utf-8"),
        modules=code.server_modules(),
    )


def run_schema(connection: psycopg.Connection[Any], revision: str) -> None:
    """Executes the files of `sql/schema` as they were at the given revision."""
    for path in sources.schema_files(revision):
        run_schema_file(connection, path)


def run_step(connection: psycopg.Connection[Any], former: str, revision: str) -> None:
    """Executes what leads from one revision to the next."""
    for path in sources.step_files(former, revision):
        run_schema_file(connection, path)


def run_schema_file(connection: psycopg.Connection[Any], path: Path) -> None:
    """Executes one schema file as the role that its number stands for."""
    as_owner = sources.runs_as_owner(path)
    if as_owner:
        connection.execute("SET LOCAL ROLE mdistinct_owner")
    _execute(connection, path, path.read_text(encoding="utf-8"))
    if as_owner:
        connection.execute("RESET ROLE")


def run_functions(connection: psycopg.Connection[Any], filled: Rendering) -> None:
    """Creates or replaces every function, hands it to its owner and checks its body.

    Views that call functions come and go with them.
    """
    folder = resources.sql_dir()
    for path in sorted((folder / "functions").glob("*.sql")):
        _execute(connection, path, render(path, filled))
    for path in sorted((folder / "views").glob("*.sql")):
        _execute_plain(connection, path)
    _execute_plain(connection, folder / "ownership.sql")
    _execute_plain(connection, folder / "pg_cron.sql")
    connection.execute("SET LOCAL check_function_bodies = on")
    _execute_plain(connection, folder / "validate.sql")


def count_functions(connection: psycopg.Connection[Any]) -> int:
    """How many functions of the plugin the database has."""
    row = connection.execute(
        "SELECT count(*) FROM pg_catalog.pg_proc AS p"
        " JOIN pg_catalog.pg_namespace AS n ON n.oid = p.pronamespace"
        " WHERE n.nspname = 'mdistinct' OR n.nspname = 'public' AND p.proname LIKE 'mdistinct\\_%'"
    ).fetchone()
    assert row is not None
    return int(row[0])


def from_files(connection: psycopg.Connection[Any]) -> None:
    """Builds all objects from `sql/` as it is now, without alembic: the migrations' yardstick."""
    with connection.transaction():
        prepare(connection)
        lock_cluster(connection)
        for path in sorted((resources.sql_dir() / "schema").glob("*.sql")):
            run_schema_file(connection, path)
        run_functions(connection, rendering(connection))


def _refuse_foreign(connection: psycopg.Connection[Any]) -> None:
    # CREATE OR REPLACE and IF NOT EXISTS would build on objects that somebody else controls.
    rows = [
        *connection.execute(_FOREIGN_SCHEMAS, (list(SCHEMAS),)),
        *connection.execute(_FOREIGN_ROUTINES, ()),
    ]
    if rows:
        raise InstallError(
            "names of the plugin are taken by others: " + ", ".join(row[0] for row in rows),
            hint="Rename or drop them, then install again.",
        )


def _execute_plain(connection: psycopg.Connection[Any], path: Path) -> None:
    _execute(connection, path, path.read_text(encoding="utf-8"))


def _execute(connection: psycopg.Connection[Any], path: Path, text: str) -> None:
    # Without parameters psycopg sends the text as it is, % and : included.
    try:
        connection.execute(text)
    except psycopg.Error as error:
        raise InstallError(
            f"{path.parent.name}/{path.name}: {error.diag.message_primary or error}",
            detail=error.diag.context or error.diag.message_detail,
            hint=error.diag.message_hint or "Nothing was changed in the database.",
        ) from error
