"""Mallory's table, and what he hides behind it: a function that notes with whose rights it runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import psycopg
import pytest
from psycopg import sql

from tests.fix_database import Connection, acting_as
from tests.integration.cases import allow_all, make_table, one, publish

if TYPE_CHECKING:
    from tests.security.conftest import NewRole

REGISTER = "SELECT mdistinct_register(%s, %s, 'id', '{age}', 'disease', 2)"
OURS = ("mdistinct_owner", "mdistinct_admin", "mdistinct_publisher", "postgres")


def spring(db: Connection, statement: str) -> None:
    db.execute(
        "CREATE OR REPLACE FUNCTION mallory.trap(int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN"
        f" INSERT INTO mallory.seen VALUES (current_user, 'trap'); {statement}; RETURN $1; END $$"
    )


def seen(db: Connection) -> set[str]:
    """Return with whose rights it ran; numbers outlive what is rolled back."""
    who = {who for (who,) in db.execute("SELECT DISTINCT who FROM mallory.seen")}
    if not who and one(db, "SELECT is_called FROM mallory.seen_number_seq"):
        return {"somebody whose work was rolled back"}
    return who


def make_patients(db: Connection, mallory: str) -> None:
    """Make a table of Mallory's, registered by a superuser, with a history."""
    make_table(db)
    db.execute("ALTER TABLE public.ward SET SCHEMA mallory")
    db.execute(sql.SQL("ALTER TABLE mallory.ward OWNER TO {}").format(sql.Identifier(mallory)))
    db.execute(REGISTER, ("ward", "mallory.ward"))
    allow_all(db, "ward")
    publish(db)


def make_patients_of_an_admin(db: Connection, mallory: str, new_role: NewRole) -> str:
    """Make a table of Mallory's, registered by an admin who may read it; return his name."""
    make_table(db)
    db.execute("ALTER TABLE public.ward SET SCHEMA mallory")
    db.execute(sql.SQL("ALTER TABLE mallory.ward OWNER TO {}").format(sql.Identifier(mallory)))
    with acting_as(db, mallory):
        db.execute("GRANT SELECT ON mallory.ward TO mdistinct_admin")
    admin = new_role("admin", "mdistinct_admin")
    with acting_as(db, admin):
        db.execute(REGISTER, ("ward", "mallory.ward"))
        allow_all(db, "ward")
        publish(db)
    return admin


def put_view_in_place(db: Connection) -> None:
    db.execute("ALTER TABLE mallory.ward RENAME TO people")
    db.execute(
        "CREATE VIEW mallory.ward AS SELECT id, mallory.trap(age) AS age, disease"
        " FROM mallory.people"
    )


@contextmanager
def refused_for(db: Connection, sqlstate: str, *words: str) -> Iterator[None]:
    with pytest.raises(psycopg.Error) as caught:
        yield
    assert caught.value.sqlstate == sqlstate, caught.value
    for word in words:
        assert word in (caught.value.diag.message_primary or "")
    assert caught.value.diag.message_hint
