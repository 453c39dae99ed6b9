"""A database of its own for every test, cloned from a template that has the plugin installed."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, LiteralString

import psycopg
import pytest
from psycopg import sql

from pg_mdistinct import resources
from pg_mdistinct.install import code, install
from tests import compiled
from tests.fix_server import Server
from tests.oracle.check_database import check_database

Connection = psycopg.Connection[Any]
_PREFIX = "mdistinct_template_"
_LOCK = 0x6D64_6973


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "tampered: breaks the history on purpose, so the checker is not asked at the end"
    )


@pytest.fixture(scope="session")
def template(server: Server, pytestconfig: pytest.Config) -> str:
    """The name of the template; the first worker that asks makes it."""
    name = _PREFIX + _digest()
    with server.maintenance() as connection:
        # Held until the connection closes. Other workers wait here, and find it made.
        connection.execute("SELECT pg_advisory_lock(%s)", (_LOCK,))
        if not _exists(connection, name):
            _make_template(server, connection, name, pytestconfig)
    return name


@pytest.fixture
def new_database(
    server: Server, template: str, request: pytest.FixtureRequest
) -> Iterator[Callable[..., str]]:
    """Makes databases, from `template0` or the template given, and drops them after the test.

    Whatever was published in any of them is checked first. The template comes first in any case:
    with it the server's code is there and compiled.
    """
    names: list[str] = []

    def make(template: str = "template0", options: LiteralString = "") -> str:
        names.append(f"test_{secrets.token_hex(6)}")
        _create(server, names[-1], template, options)
        return server.dsn(names[-1])

    yield make
    with server.maintenance() as connection:
        try:
            if request.node.get_closest_marker("tampered") is None:
                for name in names:
                    if _exists(connection, name):
                        _check(server.dsn(name))
        finally:
            for name in names:
                _drop(connection, name)


@pytest.fixture
def empty_dsn(new_database: Callable[..., str]) -> str:
    """The DSN of a database without the plugin."""
    return new_database()


@pytest.fixture
def dsn(new_database: Callable[..., str], template: str) -> str:
    """The DSN of a database with the plugin."""
    return new_database(template)


@pytest.fixture
def db(dsn: str) -> Iterator[Connection]:
    """A connection as superuser, in autocommit mode, to a database with the plugin."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        yield connection


def _check(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        row = connection.execute("SELECT to_regclass('mdistinct_published.releases')").fetchone()
        if row is None or row[0] is None:
            return
        if violations := check_database(connection):
            pytest.fail("the independent checker objects:\n" + "\n".join(violations))


def _make_template(
    server: Server, connection: Connection, name: str, config: pytest.Config
) -> None:
    for (stale,) in connection.execute(
        "SELECT datname FROM pg_database WHERE starts_with(datname, %s)", (_PREFIX,)
    ).fetchall():
        _drop(connection, stale)
    # It gets its name when it is complete, so that an interrupted run leaves no half of one.
    unfinished = f"{_PREFIX}unfinished"
    _create(server, unfinished, "template0")
    messages: list[str] = []
    with compiled.kept(server, config):
        install(server.dsn(unfinished), on_message=messages.append)
    connection.execute(
        sql.SQL("ALTER DATABASE {} RENAME TO {}").format(
            sql.Identifier(unfinished), sql.Identifier(name)
        )
    )


def _create(server: Server, name: str, template: str, options: LiteralString = "") -> None:
    # On a connection of its own: the template's maker holds a lock on the other one.
    with server.maintenance() as connection:
        connection.execute(
            sql.SQL("CREATE DATABASE {} TEMPLATE {} {}").format(
                sql.Identifier(name), sql.Identifier(template), sql.SQL(options)
            )
        )


def _drop(connection: Connection, name: str) -> None:
    connection.execute(
        sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name))
    )


def _exists(connection: Connection, name: str) -> bool:
    row = connection.execute("SELECT FROM pg_database WHERE datname = %s", (name,)).fetchone()
    return row is not None


def _digest() -> str:
    """Stands for all that goes into the template, so that a changed file makes a new one."""
    digest = hashlib.sha256()
    for name, text in code.server_files().items():
        digest.update(f"{name}\0{text}\0".encode())
    for folder in (resources.sql_dir(), resources.migrations_dir()):
        for path in _files(folder):
            digest.update(str(path.relative_to(folder)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc")


@contextmanager
def acting_as(connection: Connection, role: str) -> Iterator[Connection]:
    """Runs a block of statements with the rights of another role."""
    connection.execute(sql.SQL("SET ROLE {}").format(sql.Identifier(role)))
    try:
        yield connection
    finally:
        connection.execute("RESET ROLE")
