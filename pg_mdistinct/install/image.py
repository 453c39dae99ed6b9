"""What the Docker image calls: the server code when it is built, the plugin when it first starts.

Debian's packages have psycopg, but not everywhere a SQLAlchemy that alembic could use with it. A
new database needs no migration: it gets what `sql/` says now, and the latest revision's stamp.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

import psycopg

import pg_mdistinct
from pg_mdistinct.install import build, checks, code, on_server, sources

# As alembic makes it, before the files of sql/ find its schema there.
_VERSION_TABLE = """
CREATE SCHEMA mdistinct;
CREATE TABLE mdistinct.alembic_version (
    version_num character varying(32) NOT NULL,
    CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
"""
# Layers of an image keep whole seconds, and Numba knows its sources by their time.
_TIME = 1_600_000_000


def latest_revision() -> str:
    """The revision that `sql/` stands for."""
    return sources.revisions()[-1]


def write_code(base: Path) -> Path:
    """Writes the server code to the folder of this version, which it returns."""
    on_server.write_code(str(base), pg_mdistinct.__version__, sources.server_files())
    folder = base / pg_mdistinct.__version__
    for path in folder.rglob("*.py"):
        os.utime(path, (_TIME, _TIME))
    return folder


def install_new(dsn: str) -> None:
    """Puts the plugin into a database that does not have it, in one transaction."""
    with psycopg.connect(dsn) as connection:
        _install(connection)
    with psycopg.connect(dsn, autocommit=True) as connection:
        # Compiles nothing where the image was built for this kind of processor.
        connection.execute("SELECT mdistinct.warm_up()")


def _install(connection: psycopg.Connection[Any]) -> None:
    facts = checks.check_database(connection)
    build.prepare(connection)
    checks.check_python(connection, facts)
    build.lock_cluster(connection)
    code.write(connection, pg_mdistinct.__version__)
    connection.execute(_VERSION_TABLE)
    connection.execute(
        "INSERT INTO mdistinct.alembic_version (version_num) VALUES (%s)", (latest_revision(),)
    )
    build.run_schema(connection, latest_revision())
    build.run_functions(connection, build.rendering(connection))


def main() -> None:
    """`python3 -m pg_mdistinct.install.image code FOLDER`, or `install DSN`."""
    parser = argparse.ArgumentParser(prog="pg_mdistinct.install.image")
    parser.add_argument("action", choices=("code", "install"))
    parser.add_argument("target", help="a folder for the code, the DSN of a new database")
    arguments = parser.parse_args()
    if arguments.action == "code":
        write_code(Path(arguments.target))
    else:
        install_new(arguments.target)


if __name__ == "__main__":
    main()
