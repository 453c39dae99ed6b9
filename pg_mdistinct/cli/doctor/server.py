"""What the doctor checks of a server and of the plugin in one of its databases."""

from __future__ import annotations

import ast
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import psycopg

from pg_mdistinct import __version__
from pg_mdistinct.cli.doctor.findings import (
    Finding,
    findings_of,
    ok,
    problem,
    warning,
)

Connection = psycopg.Connection[Any]

INSTALL = "pg-mdistinct install --dsn DSN"
UPGRADE = "pg-mdistinct upgrade --dsn DSN"
GRANT_CRON = "GRANT USAGE ON SCHEMA cron TO mdistinct_scheduler"
# As sql/load.py.in has it: every function of the plugin names its version and its code.
_LOADS = re.compile(
    r'"there is no server code of pg_mdistinct (\S+) in " \+ (\'[^\n]*\'|"[^\n]*"),'
)


def server_findings(connection: Connection) -> Iterator[Finding]:
    """Looks at the server, then at the plugin."""
    checks = {
        "PostgreSQL": _postgresql,
        "PL/Python": _plpython,
        "plugin": _plugin,
        "server's Python": _python,
        "revision": _revision,
        "roles": _roles,
        "server code": _code,
        "kernels": _kernels,
        "pg_cron": _pg_cron,
    }
    return findings_of(
        connection,
        [(name, partial(look, connection, name)) for name, look in checks.items()],
        foundations=("PostgreSQL", "PL/Python", "plugin"),
    )


def one(connection: Connection, query: str, *parameters: object) -> tuple[Any, ...] | None:
    """The first row of a query."""
    return connection.execute(query.encode(), parameters or None).fetchone()


def value(connection: Connection, query: str, *parameters: object) -> Any:
    """The first column of the only row of a query."""
    row = one(connection, query, *parameters)
    assert row is not None
    return row[0]


@dataclass(frozen=True)
class _Loaded:
    """The version of the plugin's functions, and the folder on the server that they load."""

    version: str
    folder: str


def _loaded(connection: Connection) -> _Loaded | None:
    row = one(
        connection,
        "SELECT p.prosrc FROM pg_catalog.pg_proc AS p"
        " WHERE p.pronamespace = 'public'::pg_catalog.regnamespace"
        " AND p.proname = 'mdistinct_publish'",
    )
    found = row and _LOADS.search(row[0])
    return _Loaded(found[1], ast.literal_eval(found[2])) if found else None


def _is_extension(connection: Connection) -> bool:
    query = "SELECT FROM pg_catalog.pg_extension WHERE extname = 'pg_mdistinct'"
    return one(connection, query) is not None


def _update(connection: Connection) -> str:
    if _is_extension(connection):
        return "ALTER EXTENSION pg_mdistinct UPDATE"
    return UPGRADE


def _postgresql(connection: Connection, name: str) -> Finding:
    from pg_mdistinct.install.checks import OLDEST_POSTGRESQL

    version = value(connection, "SELECT pg_catalog.current_setting('server_version')")
    if connection.info.server_version // 10000 < OLDEST_POSTGRESQL:
        return problem(name, version, f"Use a server of version {OLDEST_POSTGRESQL} or later.")
    if value(connection, "SELECT pg_catalog.pg_is_in_recovery()"):
        return warning(name, f"{version}, a standby", "Publish on its primary.")
    return ok(name, version)


def _plpython(connection: Connection, name: str) -> Finding:
    row = one(
        connection,
        "SELECT e.installed_version FROM pg_catalog.pg_available_extensions AS e"
        " WHERE e.name = 'plpython3u'",
    )
    major = connection.info.server_version // 10000
    if row is None:
        package = f"postgresql-plpython3-{major}"
        return problem(name, "missing", f"Run on the server: apt-get install {package}")
    if row[0] is None:
        return problem(name, "not in this database", f"Run: {INSTALL}")
    return ok(name, f"plpython3u {row[0]}")


def _plugin(connection: Connection, name: str) -> Finding:
    loaded = _loaded(connection)
    if loaded is None:
        return problem(name, "not in this database", f"Run: {INSTALL}")
    if loaded.version == __version__:
        return ok(name, f"pg_mdistinct {loaded.version}, as here")
    return problem(
        name,
        f"pg_mdistinct {loaded.version}, but {__version__} here",
        f"Run: {_update(connection)}, or use pg-mdistinct {loaded.version}",
    )


def _python(connection: Connection, name: str) -> Finding:
    from pg_mdistinct.install import checks, remote

    answer = remote.call(connection, "probe", modules=checks.MODULES)
    facts = checks.PythonFacts(tuple(answer["version"]), answer["modules"])
    problems = checks.python_problems(facts, connection.info.server_version // 10000)
    if problems:
        return problem(
            name,
            "; ".join(each.message for each in problems),
            " ".join(each.hint for each in problems),
        )
    return ok(name, str(facts))


def _revision(connection: Connection, name: str) -> Finding:
    from pg_mdistinct.install.sources import revisions

    wanted = revisions()[-1]
    if _is_extension(connection):
        return ok(name, "kept by the extension")
    found = value(connection, "SELECT version_num FROM mdistinct.alembic_version")
    if found == wanted:
        return ok(name, wanted)
    return problem(name, f"{found}, but {wanted} is wanted", f"Run: {UPGRADE}")


_WEAK = """
SELECT r.rolname FROM pg_catalog.pg_roles AS r
WHERE r.rolname = ANY (%s) AND NOT (
    r.rolsuper OR r.rolcreatedb OR r.rolcreaterole OR r.rolreplication OR r.rolbypassrls)
"""
_MEMBERS = """
SELECT pg_catalog.pg_has_role('mdistinct_admin', 'mdistinct_reader', 'MEMBER')
    AND pg_catalog.pg_has_role('mdistinct_admin', 'mdistinct_publisher', 'MEMBER')
    AND pg_catalog.pg_has_role('mdistinct_scheduler', 'mdistinct_publisher', 'MEMBER')
"""


def _roles(connection: Connection, name: str) -> Finding:
    from pg_mdistinct.install.build import ROLES

    fine = {row[0] for row in connection.execute(_WEAK, [list(ROLES)])}
    if wrong := sorted(set(ROLES) - fine):
        detail = f"{', '.join(wrong)} missing, or with more power than they may have"
        return problem(name, detail, f"Run: {INSTALL}")
    if not value(connection, _MEMBERS):
        return problem(name, "they are not members of each other as they must", f"Run: {INSTALL}")
    return ok(name, ", ".join(sorted(ROLES)))


def _code(connection: Connection, name: str) -> Finding:
    loaded = _loaded(connection)
    assert loaded is not None
    package = f"{loaded.folder}/pg_mdistinct/__init__.py"
    if value(connection, "SELECT (pg_catalog.pg_stat_file(%s, true)).size", package) is None:
        repair = "make install-extension" if _is_extension(connection) else INSTALL
        return problem(name, f"missing in {loaded.folder}", f"Run: {repair}")
    return ok(name, loaded.folder)


_COMPILED = """
SELECT count(*) FROM pg_catalog.pg_ls_dir(%s, true, false) AS file (name)
WHERE file.name LIKE '%%.nbc'
"""


def _kernels(connection: Connection, name: str) -> Finding:
    loaded = _loaded(connection)
    assert loaded is not None
    cache = f"{loaded.folder}/pg_mdistinct/core/__pycache__"
    # An extension's folder belongs to root: Numba keeps what it compiled somewhere else.
    if not _is_extension(connection) and not value(connection, _COMPILED, cache):
        return problem(
            name,
            "not compiled, so that each session takes a minute to compile them",
            f"Run: {INSTALL}",
        )
    started = time.monotonic()
    connection.execute("SELECT mdistinct.warm_up()")
    return ok(name, f"compiled; they run, in {time.monotonic() - started:.1f} s")


def _pg_cron(connection: Connection, name: str) -> Finding:
    row = one(
        connection, "SELECT extversion FROM pg_catalog.pg_extension WHERE extname = 'pg_cron'"
    )
    if row is None:
        scheduled = value(connection, "SELECT count(*) FROM mdistinct.schedules")
        if not scheduled:
            return ok(name, "not in this database; only schedules need it")
        return problem(
            name,
            f"not in this database, but {scheduled} datasets are scheduled",
            "Set pg_cron up (docs/scheduling.md), or run: pg-mdistinct unschedule DATASET",
        )
    allowed = "SELECT pg_catalog.has_schema_privilege('mdistinct_scheduler', 'cron', 'USAGE')"
    if not value(connection, allowed):
        detail = f"pg_cron {row[0]}, but mdistinct_scheduler may not use it"
        return problem(name, detail, f"As a superuser: {GRANT_CRON}")
    return ok(name, f"pg_cron {row[0]}")
