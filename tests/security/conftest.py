"""People of the attack tests: somebody who owns a table, and somebody who owns nothing."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator

import pytest
from psycopg import sql

from tests.fix_database import Connection, acting_as
from tests.security.traps import spring

NewRole = Callable[..., str]


@pytest.fixture
def new_role(db: Connection) -> Iterator[NewRole]:
    """Makes roles that are gone after the test; what they own then stays with the superuser."""
    made: list[str] = []

    def make(name: str, *memberships: str, login: bool = False) -> str:
        made.append(f"{name}_{secrets.token_hex(4)}")
        role = sql.Identifier(made[-1])
        db.execute(
            sql.SQL("CREATE ROLE {} {}").format(role, sql.SQL("LOGIN" if login else "NOLOGIN"))
        )
        for membership in memberships:
            db.execute(sql.SQL("GRANT {} TO {}").format(sql.Identifier(membership), role))
        return made[-1]

    yield make
    db.execute("RESET ROLE")
    for name in made:
        role = sql.Identifier(name)
        db.execute(sql.SQL("REASSIGN OWNED BY {} TO CURRENT_USER").format(role))
        db.execute(sql.SQL("DROP OWNED BY {}").format(role))
        db.execute(sql.SQL("DROP ROLE {}").format(role))


@pytest.fixture
def mallory(db: Connection, new_role: NewRole) -> str:
    """A role with a schema of its own, where it can make whatever it likes."""
    name = new_role("mallory")
    db.execute(sql.SQL("CREATE SCHEMA mallory AUTHORIZATION {}").format(sql.Identifier(name)))
    db.execute("GRANT USAGE ON SCHEMA mallory TO PUBLIC")
    return name


@pytest.fixture
def trap(db: Connection, mallory: str) -> str:
    """A function that writes down with whose rights it runs, and does what the test makes it do."""
    with acting_as(db, mallory):
        db.execute(
            "CREATE TABLE mallory.seen"
            " (who name, what text, number int GENERATED ALWAYS AS IDENTITY)"
        )
        db.execute("GRANT ALL ON mallory.seen TO PUBLIC")
        spring(db, "NULL")
    return "mallory.trap"
