"""The server's copy of the Python code: one folder per version, beside the data."""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg.conninfo import make_conninfo

from pg_mdistinct.install import remote
from pg_mdistinct.install.sources import server_files as server_files
from pg_mdistinct.install.sources import server_modules as server_modules


def base_folder(connection: psycopg.Connection[Any]) -> str:
    """The folder on the server that holds one folder per version."""
    row = connection.execute("SELECT current_setting('data_directory')").fetchone()
    assert row is not None
    return f"{row[0]}/pg_mdistinct"


def version_folder(connection: psycopg.Connection[Any], version: str) -> str:
    """The folder on the server that goes on `sys.path` for this version."""
    return f"{base_folder(connection)}/{version}"


def write(connection: psycopg.Connection[Any], version: str) -> bool:
    """Copies this package's server code to the server; False if it was there already."""
    written = remote.call(
        connection,
        "write_code",
        base=base_folder(connection),
        version=version,
        files=server_files(),
    )
    return bool(written)


def remove_unused(
    connection: psycopg.Connection[Any], dsn: str, keep: str | None
) -> tuple[list[str], list[str]]:
    """Removes the versions that no function of the cluster refers to, except the one to keep.

    Returns what was removed, and the databases that could not be looked into: as long as there
    are any, everything stays, for the folders belong to the whole cluster.
    """
    base = base_folder(connection)
    versions: list[str] = remote.call(connection, "list_code", base=base)
    used: set[str] = set()
    closed: list[str] = []
    for database in _databases(connection):
        found = _look(make_conninfo(dsn, dbname=database), base, versions)
        if found is not None:
            used |= found
        elif database in _databases(connection):
            closed.append(database)
    unused = [version for version in versions if version not in used | {keep}]
    if closed or not unused:
        return [], closed
    remote.call(connection, "remove_code", base=base, versions=unused)
    return unused, []


def _databases(connection: psycopg.Connection[Any]) -> list[str]:
    # Nothing can be installed in template0, the one that refuses connections by design, and
    # nothing is left to be used in one whose DROP has begun (its connection limit is -2 then).
    rows = connection.execute(
        "SELECT datname FROM pg_database WHERE datname <> 'template0' AND datconnlimit <> -2"
    )
    return [row[0] for row in rows]


def _look(dsn: str, base: str, versions: list[str]) -> set[str] | None:
    """The versions that a database uses; None if it cannot be looked into."""
    # DROP DATABASE (FORCE) ends our connection while the database is still listed. A second
    # connection waits until the drop is through, and so tells it from a database that is closed.
    for _ in range(2):
        try:
            return _used_versions(dsn, base, versions)
        except psycopg.Error:
            continue
    return None


def _used_versions(dsn: str, base: str, versions: list[str]) -> set[str]:
    # The folder stands in the functions' text as a Python literal: look for it as one.
    literals = [repr(f"{base}/{version}") for version in versions]
    with psycopg.connect(dsn, autocommit=True) as connection:
        rows = connection.execute(
            "SELECT version FROM unnest(%s::text[], %s::text[]) AS code(version, literal)"
            " WHERE EXISTS (SELECT FROM pg_catalog.pg_proc WHERE strpos(prosrc, literal) > 0)",
            (versions, literals),
        )
        return {row[0] for row in rows}
