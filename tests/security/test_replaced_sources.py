"""A source that becomes something else after it was registered, or while it is read."""

from __future__ import annotations

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from tests.concurrency.sessions import Background, wait_until_blocked
from tests.fix_database import Connection, acting_as
from tests.integration.cases import allow_all, make_table, publish
from tests.security.conftest import NewRole
from tests.security.traps import (
    REGISTER,
    make_patients,
    make_patients_of_an_admin,
    put_view_in_place,
    refused_for,
    seen,
    spring,
)


def test_a_view_cannot_be_registered_by_somebody_whose_rights_it_would_get(
    db: Connection, mallory: str, trap: str, new_role: NewRole
) -> None:
    make_patients(db, mallory)
    with acting_as(db, mallory):
        put_view_in_place(db)
        db.execute("GRANT SELECT ON mallory.ward TO mdistinct_admin")
    admin = new_role("admin", "mdistinct_admin")
    with acting_as(db, admin), refused_for(db, "42501", mallory, admin):
        db.execute(REGISTER, ("other", "mallory.ward"))
    assert not seen(db)


def test_a_table_that_an_admin_registered_cannot_become_a_trap(
    db: Connection, mallory: str, trap: str, new_role: NewRole
) -> None:
    admin = make_patients_of_an_admin(db, mallory, new_role)
    with acting_as(db, mallory):
        put_view_in_place(db)
        db.execute("GRANT SELECT ON mallory.ward TO mdistinct_admin")
    with acting_as(db, "mdistinct_publisher"), refused_for(db, "42501", mallory, admin):
        publish(db)
    assert not seen(db)


def test_types_of_a_table_that_an_admin_registered_cannot_be_a_trap(
    db: Connection, mallory: str, trap: str, new_role: NewRole
) -> None:
    with acting_as(db, mallory):
        db.execute("CREATE DOMAIN mallory.years AS int CHECK (mallory.trap(VALUE) > 0)")
        db.execute("CREATE TABLE mallory.ward (id int, age int, disease mallory.years)")
        db.execute("GRANT SELECT ON mallory.ward TO mdistinct_admin")
    admin = new_role("admin", "mdistinct_admin")
    with acting_as(db, admin), refused_for(db, "42501", mallory, admin):
        db.execute(REGISTER, ("ward", "mallory.ward"))
    assert not seen(db)


@pytest.mark.parametrize("isolation", ["read committed", "repeatable read"])
@pytest.mark.parametrize("call", ["mdistinct_publish('ward')", "mdistinct_preview('ward')"])
def test_a_source_that_is_swapped_between_check_and_reading(
    db: Connection,
    dsn: str,
    mallory: str,
    trap: str,
    new_role: NewRole,
    isolation: str,
    call: str,
) -> None:
    """Whoever holds a lock on his table decides what is there when we have waited for it."""
    admin = make_patients_of_an_admin(db, mallory, new_role)
    with psycopg.connect(dsn) as swapping:
        with acting_as(swapping, mallory):
            put_view_in_place(swapping)
            swapping.execute("GRANT SELECT ON mallory.ward TO mdistinct_admin")
        escaped = isolation.replace(" ", "\\ ")
        session = make_conninfo(dsn, options=f"-c default_transaction_isolation={escaped}")
        waiting = Background(session, f"SELECT {call} IS NULL")
        wait_until_blocked(db, waiting.pid)
        swapping.commit()
    with pytest.raises(psycopg.Error) as caught:
        waiting.answer()
    if isolation == "read committed":
        assert caught.value.sqlstate == "42501"
        assert admin in str(caught.value)
    else:
        # The transaction does not see what is there now, and must not read it.
        assert caught.value.sqlstate == "MD004"
    assert not seen(db)


def test_a_transaction_that_does_not_see_what_the_source_has_become(
    db: Connection, dsn: str, mallory: str, trap: str, new_role: NewRole
) -> None:
    """It would check the table as it was, and read it as it is."""
    admin = make_patients_of_an_admin(db, mallory, new_role)
    with acting_as(db, mallory):
        db.execute(
            "CREATE TYPE mallory.mood AS ENUM ('Flu', 'Pneumonia', 'Gastritis', 'Dyspepsia');"
            "CREATE FUNCTION mallory.say(mallory.mood) RETURNS text LANGUAGE plpgsql AS"
            " $$ BEGIN PERFORM mallory.trap(1); RETURN 'Flu'; END $$;"
            "CREATE CAST (mallory.mood AS text) WITH FUNCTION mallory.say(mallory.mood)"
        )
    with psycopg.connect(dsn) as late:
        late.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        late.execute("SELECT")
        with acting_as(db, mallory):
            db.execute(
                "ALTER TABLE mallory.ward ALTER disease TYPE mallory.mood"
                " USING disease::mallory.mood"
            )
        with refused_for(late, "25001", mallory, admin):
            publish(late)
        late.rollback()
    assert not seen(db)


def test_nobody_changes_the_source_of_a_publication_that_is_under_way(
    db: Connection, dsn: str, mallory: str, trap: str, new_role: NewRole
) -> None:
    make_patients_of_an_admin(db, mallory, new_role)
    with psycopg.connect(dsn) as publishing:
        publish(publishing)
        with acting_as(db, mallory):
            db.execute("CREATE DOMAIN mallory.years AS int CHECK (mallory.trap(VALUE) > 0)")
            db.execute("SET lock_timeout = '50ms'")
            for change in (
                "ALTER TABLE mallory.ward RENAME TO people",
                "ALTER TABLE mallory.ward ALTER age TYPE bigint",
                "ALTER TABLE mallory.ward ALTER age TYPE mallory.years",
                "DROP TABLE mallory.ward",
            ):
                with pytest.raises(psycopg.errors.LockNotAvailable):
                    db.execute(change)
            db.execute("RESET lock_timeout")


@pytest.mark.parametrize(
    "hiding_place",
    [
        "CREATE INDEX ON mallory.ward ((mallory.sly(1)))",
        "CREATE INDEX ON mallory.ward (age) WHERE mallory.sly(1) > 0",
        "CREATE INDEX ON mallory.ward ((1 OPERATOR(mallory.+) 1))",
        "CREATE STATISTICS mallory.s ON age, (mallory.sly(1)) FROM mallory.ward",
        "CREATE TABLE mallory.part () INHERITS (mallory.ward);"
        "CREATE INDEX ON mallory.part ((mallory.sly(1)))",
    ],
)
def test_what_is_computed_before_a_table_is_read_cannot_be_a_trap(
    db: Connection, mallory: str, trap: str, new_role: NewRole, hiding_place: str
) -> None:
    """PostgreSQL computes constants in these when it plans, with the rights of whoever reads."""
    admin = make_patients_of_an_admin(db, mallory, new_role)
    with acting_as(db, mallory):
        db.execute(
            "CREATE FUNCTION mallory.sly(int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS"
            " $$ BEGIN RETURN mallory.trap($1); END $$;"
            "CREATE FUNCTION mallory.sly(int, int) RETURNS int IMMUTABLE LANGUAGE sql AS"
            " 'SELECT mallory.sly($1)';"
            "CREATE OPERATOR mallory.+ (LEFTARG = int, RIGHTARG = int, FUNCTION = mallory.sly)"
        )
        db.execute(hiding_place.encode())
        db.execute("TRUNCATE mallory.seen RESTART IDENTITY")
    with acting_as(db, "mdistinct_publisher"), refused_for(db, "42501", mallory, admin):
        publish(db)
    assert not seen(db)


def test_indexes_of_ones_own_are_no_trouble(
    db: Connection, mallory: str, trap: str, new_role: NewRole
) -> None:
    make_patients_of_an_admin(db, mallory, new_role)
    db.execute("CREATE FUNCTION public.plain(int) RETURNS int IMMUTABLE LANGUAGE sql RETURN $1")
    with acting_as(db, mallory):
        db.execute("CREATE INDEX ON mallory.ward (lower(disease)) WHERE public.plain(age) > 1")
        db.execute("CREATE STATISTICS mallory.s ON age, (public.plain(age)) FROM mallory.ward")
    with acting_as(db, "mdistinct_publisher"):
        assert publish(db)["release"] == 2


def test_the_first_function_of_a_session_changes_no_settings(
    db: Connection, dsn: str, mallory: str, trap: str
) -> None:
    """PL/pgSQL brings settings of its own when it is loaded; that is no harm."""
    make_patients(db, mallory)
    with acting_as(db, mallory):
        put_view_in_place(db)
    with psycopg.connect(dsn, autocommit=True) as fresh:
        assert publish(fresh)["release"] == 2
    with acting_as(db, mallory):
        spring(db, "SET plpgsql.extra_warnings = 'all'")
    with (
        psycopg.connect(dsn, autocommit=True) as fresh,
        pytest.raises(psycopg.Error, match=r"changed the setting plpgsql\.extra_warnings"),
    ):
        publish(fresh)


def test_a_superusers_table_in_somebody_elses_schema_cannot_become_a_trap(
    db: Connection, mallory: str, trap: str
) -> None:
    """The owner of a schema may drop what is in it, and put something of his own there."""
    make_table(db)
    db.execute("ALTER TABLE public.ward SET SCHEMA mallory")
    db.execute(REGISTER, ("ward", "mallory.ward"))
    allow_all(db, "ward")
    publish(db)
    with acting_as(db, mallory):
        db.execute("DROP TABLE mallory.ward")
        db.execute(
            "CREATE VIEW mallory.ward AS SELECT 1 AS id, mallory.trap(1) AS age, 'Flu' AS disease"
        )
    with acting_as(db, "mdistinct_publisher"), refused_for(db, "42501", mallory, "postgres"):
        publish(db)
    assert not seen(db)
