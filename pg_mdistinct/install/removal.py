"""Takes the plugin out of a database; the history goes only when asked for by name."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, LiteralString

import psycopg
from psycopg import sql

from pg_mdistinct.install import build, connect
from pg_mdistinct.install.commands import OnMessage, remove_unused_code
from pg_mdistinct.install.errors import InstallError

# Their owners tell the plugin's functions from others of a similar name.
_ROUTINES = """
SELECT p.oid::regprocedure::text FROM pg_catalog.pg_proc AS p
JOIN pg_catalog.pg_namespace AS n ON n.oid = p.pronamespace
WHERE p.proowner IN (to_regrole('mdistinct_owner'), to_regrole('mdistinct_scheduler'))
    AND (n.nspname = 'mdistinct' OR n.nspname = 'public' AND p.proname LIKE 'mdistinct\\_%')
"""
_JOBS = """
SELECT cron.unschedule(jobid) FROM cron.job
WHERE username = 'mdistinct_scheduler' AND database = current_database()
"""
_FOREIGN_VIEWS = """
SELECT DISTINCT v.oid::regclass::text FROM pg_catalog.pg_depend AS d
JOIN pg_catalog.pg_rewrite AS r ON r.oid = d.objid
JOIN pg_catalog.pg_class AS v ON v.oid = r.ev_class
JOIN pg_catalog.pg_class AS t ON t.oid = d.refobjid
WHERE d.classid = 'pg_catalog.pg_rewrite'::regclass
    AND d.refclassid = 'pg_catalog.pg_class'::regclass
    AND t.relnamespace::regnamespace::text = ANY (%(schemas)s)
    AND v.relnamespace::regnamespace::text <> ALL (%(schemas)s)
"""


@dataclass(frozen=True)
class UninstallReport:
    """What an uninstallation removed, and which roles had to stay, each with the reason."""

    database: str
    functions: int
    history_kept: bool
    roles_dropped: tuple[str, ...] = ()
    roles_kept: dict[str, str] = field(default_factory=dict)
    removed_code: tuple[str, ...] = ()


def uninstall(
    dsn: str, *, purge_history: bool = False, on_message: OnMessage = print
) -> UninstallReport:
    """Drops the functions; with `purge_history` everything, what was published included."""
    with connect.open_connection(dsn) as connection:
        _require_superuser(connection)
        database = connection.info.dbname
        connection.execute("SET LOCAL search_path = pg_catalog, pg_temp")
        connection.execute("SET LOCAL client_min_messages = warning")
        build.refuse_extension(connection)
        build.lock_cluster(connection)
        _unschedule(connection)
        functions = _drop_functions(connection)
        on_message(f"dropped {functions} functions in {database}")
        dropped: tuple[str, ...] = ()
        kept: dict[str, str] = {}
        if purge_history:
            _drop_schemas(connection)
            dropped, kept = _drop_roles(connection)
        has_python = _has_python(connection)
    _tell(purge_history, dropped, kept, on_message)
    return UninstallReport(
        database=database,
        functions=functions,
        history_kept=not purge_history,
        roles_dropped=dropped,
        roles_kept=kept,
        removed_code=remove_unused_code(dsn, on_message) if has_python else (),
    )


def _require_superuser(connection: psycopg.Connection[Any]) -> None:
    row = connection.execute("SHOW is_superuser").fetchone()
    if row is None or row[0] != "on":
        raise InstallError(
            f"{connection.info.user} is not a superuser",
            hint="Connect as the one who may install: only a superuser can take the plugin out.",
        )


def _unschedule(connection: psycopg.Connection[Any]) -> None:
    """Ends the schedules, whose jobs could only fail from now on."""
    if _has_pg_cron(connection):
        connection.execute(_JOBS)
    if _exists(connection, "SELECT WHERE to_regclass('mdistinct.schedules') IS NOT NULL"):
        connection.execute("DELETE FROM mdistinct.schedules")


def _drop_functions(connection: psycopg.Connection[Any]) -> int:
    routines = [row[0] for row in connection.execute(_ROUTINES)]
    if not routines:
        return 0
    try:
        connection.execute("DROP VIEW IF EXISTS mdistinct.schedule, mdistinct.audit")
        # One statement, so that functions that depend on each other go together.
        connection.execute("DROP ROUTINE " + ", ".join(routines))
    except psycopg.errors.DependentObjectsStillExist as error:
        raise InstallError(
            "other objects of the database use functions of the plugin",
            detail=error.diag.message_detail,
            hint="Drop those first; nothing was changed.",
        ) from error
    return len(routines)


def _drop_schemas(connection: psycopg.Connection[Any]) -> None:
    # CASCADE is for what is inside the schemas: nothing of anybody else's may go with it.
    rows = connection.execute(_FOREIGN_VIEWS, {"schemas": list(build.SCHEMAS)})
    if views := [row[0] for row in rows]:
        raise InstallError(
            f"views outside the plugin read its relations: {', '.join(sorted(views))}",
            hint="Drop those first; nothing was changed.",
        )
    connection.execute(
        sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(_identifiers(build.SCHEMAS))
    )


def _drop_roles(connection: psycopg.Connection[Any]) -> tuple[tuple[str, ...], dict[str, str]]:
    rows = connection.execute(
        "SELECT rolname FROM pg_roles WHERE rolname = ANY (%s)", (list(build.ROLES),)
    )
    existing = {row[0] for row in rows}
    roles = [role for role in build.ROLES if role in existing]
    if roles:
        _revoke_grants(connection, roles)
    dropped: list[str] = []
    kept: dict[str, str] = {}
    for role in roles:
        try:
            with connection.transaction():
                connection.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(role)))
        except psycopg.errors.DependentObjectsStillExist as error:
            kept[role] = error.diag.message_detail or str(error)
        else:
            dropped.append(role)
    return tuple(dropped), kept


def _revoke_grants(connection: psycopg.Connection[Any], roles: list[str]) -> None:
    """Takes back what sql/schema granted on objects that stay; grants by others keep a role."""
    names = _identifiers(roles)
    connection.execute(sql.SQL("REVOKE USAGE ON SCHEMA public FROM {}").format(names))
    database = sql.Identifier(connection.info.dbname)
    connection.execute(sql.SQL("REVOKE TEMPORARY ON DATABASE {} FROM {}").format(database, names))
    if "mdistinct_scheduler" in roles and _has_pg_cron(connection):
        connection.execute("REVOKE USAGE ON SCHEMA cron FROM mdistinct_scheduler")


def _has_python(connection: psycopg.Connection[Any]) -> bool:
    return _exists(connection, "SELECT FROM pg_language WHERE lanname = 'plpython3u'")


def _has_pg_cron(connection: psycopg.Connection[Any]) -> bool:
    return _exists(connection, "SELECT FROM pg_extension WHERE extname = 'pg_cron'")


def _exists(connection: psycopg.Connection[Any], query: LiteralString) -> bool:
    return connection.execute(query).fetchone() is not None


def _tell(
    purged: bool, dropped: tuple[str, ...], kept: dict[str, str], on_message: OnMessage
) -> None:
    if not purged:
        on_message("kept the history: install again to go on with it")
        return
    on_message("dropped the history of all datasets")
    if dropped:
        on_message(f"dropped the roles {', '.join(dropped)}")
    for role, reason in kept.items():
        on_message(f"kept the role {role}, which is still in use: {reason}")


def _identifiers(names: Iterable[str]) -> sql.Composed:
    return sql.SQL(", ").join(map(sql.Identifier, names))
