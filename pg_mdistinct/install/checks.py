"""What a server must have before the plugin goes in, and what to run where it is missing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import psycopg

from pg_mdistinct.install import remote
from pg_mdistinct.install.errors import NotReadyError, Problem

OLDEST_POSTGRESQL = 14
OLDEST_PYTHON = (3, 11)
MODULES = ("numpy", "numba")

_FACTS = """
SELECT current_database(), current_user::text,
    (SELECT rolsuper FROM pg_catalog.pg_roles WHERE rolname = current_user),
    current_setting('server_version_num')::int / 10000,
    pg_catalog.pg_is_in_recovery(),
    EXISTS (SELECT FROM pg_catalog.pg_available_extensions WHERE name = 'plpython3u')
"""


@dataclass(frozen=True)
class DatabaseFacts:
    """What SQL tells about the server and the connection."""

    database: str
    user: str
    superuser: bool
    major: int
    standby: bool
    plpython: bool


@dataclass(frozen=True)
class PythonFacts:
    """What the server's own interpreter tells about itself; None for a module it cannot import."""

    version: tuple[int, ...]
    modules: dict[str, str | None]

    def __str__(self) -> str:
        parts = [f"Python {'.'.join(map(str, self.version))}"]
        parts += [f"{name} {version}" for name, version in self.modules.items() if version]
        return ", ".join(parts)


def check_database(connection: psycopg.Connection[Any]) -> DatabaseFacts:
    """Raises `NotReadyError` with everything that SQL alone can tell to be missing."""
    row = connection.execute(_FACTS).fetchone()
    assert row is not None
    facts = DatabaseFacts(*row)
    _raise_if_any(database_problems(facts))
    return facts


def check_python(connection: psycopg.Connection[Any], facts: DatabaseFacts) -> PythonFacts:
    """Asks the server's interpreter, by a temporary function; raises `NotReadyError`."""
    answer = remote.call(connection, "probe", modules=MODULES)
    python = PythonFacts(tuple(answer["version"]), answer["modules"])
    _raise_if_any(python_problems(python, facts.major))
    return python


def database_problems(facts: DatabaseFacts) -> list[Problem]:
    """What is wrong with the connection or the server."""
    problems = []
    if facts.major < OLDEST_POSTGRESQL:
        problems.append(
            Problem(
                f"PostgreSQL {facts.major} is too old",
                f"Use a server of version {OLDEST_POSTGRESQL} or later.",
            )
        )
    if not facts.superuser:
        problems.append(
            Problem(
                f"{facts.user} is not a superuser, and only one may make PL/Python functions",
                f'Connect as one, for instance --dsn "dbname={facts.database} user=postgres",'
                f" or let one run: ALTER ROLE {facts.user} SUPERUSER",
            )
        )
    if facts.standby:
        problems.append(Problem("this server is a standby", "Connect to its primary."))
    if not facts.plpython:
        problems.append(
            Problem(
                "the server has no PL/Python (extension plpython3u)",
                f"Run on the server: apt-get install postgresql-plpython3-{facts.major}",
            )
        )
    return problems


def python_problems(facts: PythonFacts, major: int) -> list[Problem]:
    """What is wrong with the server's interpreter.

    The code goes to the server as source, so its minor version need not be the one of this
    interpreter: what counts is that it is not older than the oldest one that the code is for.
    """
    problems = []
    if facts.version[:2] < OLDEST_PYTHON:
        wanted = ".".join(map(str, OLDEST_PYTHON))
        problems.append(
            Problem(
                f"the server's PL/Python runs Python {'.'.join(map(str, facts.version))},"
                f" and {wanted} is the oldest that will do",
                f"Use a postgresql-plpython3-{major} that is built for Python {wanted} or later"
                " (Debian 12 has one).",
            )
        )
    missing = [name for name, version in facts.modules.items() if version is None]
    if missing:
        packages = " ".join(f"python3-{name}" for name in facts.modules)
        problems.append(
            Problem(
                f"the server's Python cannot import {' and '.join(missing)}",
                f"Run on the server: apt-get install {packages}",
            )
        )
    return problems


def _raise_if_any(problems: list[Problem]) -> None:
    if problems:
        raise NotReadyError(problems)
