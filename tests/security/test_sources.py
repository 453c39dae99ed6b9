"""A source's owner who is up to something: his code runs with his rights, or it does not run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import LiteralString

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from tests.concurrency.sessions import Background, wait_until_blocked
from tests.fix_database import Connection, acting_as
from tests.integration.cases import allow_all, make_table, one, publish, refused
from tests.security.conftest import NewRole

REGISTER = "SELECT mdistinct_register(%s, %s, 'id', '{age}', 'disease', 2)"
OURS = ("mdistinct_owner", "mdistinct_admin", "mdistinct_publisher", "postgres")


@contextmanager
def as_mallory(db: Connection, mallory: str) -> Iterator[None]:
    with acting_as(db, mallory):
        yield


@pytest.fixture
def trap(db: Connection, mallory: str) -> str:
    """A function that writes down with whose rights it runs, and does what the test makes it do."""
    with as_mallory(db, mallory):
        db.execute(
            "CREATE TABLE mallory.seen"
            " (who name, what text, number int GENERATED ALWAYS AS IDENTITY)"
        )
        db.execute("GRANT ALL ON mallory.seen TO PUBLIC")
        spring(db, "NULL")
    return "mallory.trap"


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
    with as_mallory(db, mallory):
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


def test_functions_behind_a_view_run_as_its_owner(
    db: Connection, mallory: str, trap: str, new_role: NewRole
) -> None:
    make_patients(db, mallory)
    with as_mallory(db, mallory):
        put_view_in_place(db)
    with acting_as(db, new_role("publisher", "mdistinct_publisher")):
        publish(db)
        db.execute("SELECT mdistinct_preview('ward')")
    with acting_as(db, "mdistinct_admin"):
        for call in ("create_buckets", "assign_records", "split_buckets", "preview_risk"):
            db.execute(f"SELECT * FROM mdistinct_{call}('ward')")
    publish(db)
    assert seen(db) == {mallory}


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM mdistinct_data.ward_v1",
        "UPDATE mdistinct.datasets SET m = 1",
        "PERFORM 1 FROM mdistinct.audit_trail",
        "PERFORM public.mdistinct_drop('ward')",
        "ALTER VIEW mdistinct_published.ward RENAME TO mine",
        "CREATE TABLE mdistinct_data.mine ()",
        "SET ROLE mdistinct_owner",
        "SET SESSION AUTHORIZATION mdistinct_owner",
        "RESET ROLE",
        "RESET SESSION AUTHORIZATION",
    ],
)
def test_code_behind_a_source_can_do_nothing_to_the_plugin(
    db: Connection, mallory: str, trap: str, statement: str
) -> None:
    make_patients(db, mallory)
    with as_mallory(db, mallory):
        put_view_in_place(db)
        spring(db, statement)
    before = one(db, "SELECT count(*) FROM mdistinct_data.ward_v1")
    with acting_as(db, "mdistinct_publisher"), pytest.raises(psycopg.Error) as caught:
        publish(db)
    assert caught.value.sqlstate in ("42501", "42704", "42P01", "22023")
    assert one(db, "SELECT count(*) FROM mdistinct_data.ward_v1") == before
    assert one(db, "SELECT current_user::text") == "postgres"


@pytest.mark.parametrize("is_local", ["true", "false"])
def test_code_behind_a_source_cannot_lead_our_statements_astray(
    db: Connection, mallory: str, trap: str, is_local: str
) -> None:
    """A search_path that it sets outlives it; then = would be an operator of its own."""
    make_patients(db, mallory)
    with as_mallory(db, mallory):
        put_view_in_place(db)
        for type_name in ("name", "text", "integer", "oid"):
            db.execute(
                f"CREATE FUNCTION mallory.equal({type_name}, {type_name}) RETURNS boolean"
                " LANGUAGE plpgsql AS $$ BEGIN"
                " INSERT INTO mallory.seen VALUES (current_user, 'operator'); RETURN true; END $$"
            )
            db.execute(
                f"CREATE OPERATOR mallory.= (LEFTARG = {type_name}, RIGHTARG = {type_name},"
                " FUNCTION = mallory.equal)"
            )
        spring(
            db,
            f"PERFORM pg_catalog.set_config('search_path', 'mallory, pg_catalog', {is_local})",
        )
    path = one(db, "SHOW search_path")
    if is_local == "true":
        # Ends with the function that reads the source.
        publish(db)
    else:
        with refused(db, "39000", "search_path"):
            publish(db)
    assert one(db, "SHOW search_path") == path
    assert not seen(db) & set(OURS)


@pytest.mark.parametrize("setting", ["statement_timeout", "DateStyle", "client_min_messages"])
def test_code_behind_a_source_leaves_the_session_as_it_is(
    db: Connection, mallory: str, trap: str, setting: str
) -> None:
    value = {"statement_timeout": "1234567", "DateStyle": "SQL, DMY"}.get(setting, "debug5")
    make_patients(db, mallory)
    with as_mallory(db, mallory):
        put_view_in_place(db)
        spring(db, f"PERFORM pg_catalog.set_config('{setting}', '{value}', false)")
    before = one(db, f"SHOW {setting}")
    with refused(db, "39000", setting):
        publish(db)
    assert one(db, f"SHOW {setting}") == before


def test_code_behind_a_source_leaves_no_table_in_the_session(
    db: Connection, mallory: str, trap: str
) -> None:
    """Unqualified names mean temporary tables first: his triggers would run as the caller."""
    make_patients(db, mallory)
    with as_mallory(db, mallory):
        put_view_in_place(db)
        spring(db, "CREATE TEMPORARY TABLE IF NOT EXISTS people (id int)")
    with refused(db, "39000", "temporary"):
        publish(db)
    assert one(db, "SELECT to_regclass('pg_temp.people')") is None


def test_a_view_cannot_be_registered_by_somebody_whose_rights_it_would_get(
    db: Connection, mallory: str, trap: str, new_role: NewRole
) -> None:
    make_patients(db, mallory)
    with as_mallory(db, mallory):
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
    with as_mallory(db, mallory):
        put_view_in_place(db)
        db.execute("GRANT SELECT ON mallory.ward TO mdistinct_admin")
    with acting_as(db, "mdistinct_publisher"), refused_for(db, "42501", mallory, admin):
        publish(db)
    assert not seen(db)


def test_types_of_a_table_that_an_admin_registered_cannot_be_a_trap(
    db: Connection, mallory: str, trap: str, new_role: NewRole
) -> None:
    with as_mallory(db, mallory):
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
    with as_mallory(db, mallory):
        db.execute(
            "CREATE TYPE mallory.mood AS ENUM ('Flu', 'Pneumonia', 'Gastritis', 'Dyspepsia');"
            "CREATE FUNCTION mallory.say(mallory.mood) RETURNS text LANGUAGE plpgsql AS"
            " $$ BEGIN PERFORM mallory.trap(1); RETURN 'Flu'; END $$;"
            "CREATE CAST (mallory.mood AS text) WITH FUNCTION mallory.say(mallory.mood)"
        )
    with psycopg.connect(dsn) as late:
        late.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        late.execute("SELECT")
        with as_mallory(db, mallory):
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
        with as_mallory(db, mallory):
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
    with as_mallory(db, mallory):
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
    with as_mallory(db, mallory):
        db.execute("CREATE INDEX ON mallory.ward (lower(disease)) WHERE public.plain(age) > 1")
        db.execute("CREATE STATISTICS mallory.s ON age, (public.plain(age)) FROM mallory.ward")
    with acting_as(db, "mdistinct_publisher"):
        assert publish(db)["release"] == 2


def test_the_first_function_of_a_session_changes_no_settings(
    db: Connection, dsn: str, mallory: str, trap: str
) -> None:
    """PL/pgSQL brings settings of its own when it is loaded; that is no harm."""
    make_patients(db, mallory)
    with as_mallory(db, mallory):
        put_view_in_place(db)
    with psycopg.connect(dsn, autocommit=True) as fresh:
        assert publish(fresh)["release"] == 2
    with as_mallory(db, mallory):
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
    with as_mallory(db, mallory):
        db.execute("DROP TABLE mallory.ward")
        db.execute(
            "CREATE VIEW mallory.ward AS SELECT 1 AS id, mallory.trap(1) AS age, 'Flu' AS disease"
        )
    with acting_as(db, "mdistinct_publisher"), refused_for(db, "42501", mallory, "postgres"):
        publish(db)
    assert not seen(db)


@contextmanager
def refused_for(db: Connection, sqlstate: str, *words: str) -> Iterator[None]:
    with pytest.raises(psycopg.Error) as caught:
        yield
    assert caught.value.sqlstate == sqlstate, caught.value
    for word in words:
        assert word in (caught.value.diag.message_primary or "")
    assert caught.value.diag.message_hint


def test_an_admin_cannot_put_types_of_his_own_into_the_reader(
    db: Connection, mallory: str, trap: str, new_role: NewRole
) -> None:
    """Their casts would run in our statement, with the rights of our owner."""
    make_table(db)
    db.execute("GRANT SELECT ON public.ward TO mdistinct_admin")
    admin = new_role("admin", "mdistinct_admin")
    db.execute(sql.SQL("GRANT ALL ON SCHEMA mallory TO {}").format(sql.Identifier(admin)))
    with acting_as(db, admin):
        db.execute(REGISTER, ("ward", "public.ward"))
        allow_all(db, "ward")
        db.execute("CREATE TYPE mallory.box AS (content text)")
        db.execute(
            "CREATE FUNCTION mallory.unbox(mallory.box) RETURNS text LANGUAGE plpgsql AS $$ BEGIN"
            " INSERT INTO mallory.seen VALUES (current_user, 'cast'); RETURN 'Flu'; END $$"
        )
        db.execute(
            "CREATE CAST (mallory.box AS text) WITH FUNCTION mallory.unbox(mallory.box) AS IMPLICIT"
        )
        db.execute("DROP FUNCTION mdistinct_sources.ward()")
        db.execute(
            "CREATE FUNCTION mdistinct_sources.ward() RETURNS TABLE"
            " (record_id text, q1 integer, sensitive mallory.box) LANGUAGE sql SECURITY DEFINER"
            " AS $$ SELECT '1', 1, row('Flu')::mallory.box $$"
        )
        db.execute("GRANT EXECUTE ON FUNCTION mdistinct_sources.ward() TO mdistinct_owner")
        with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match="own"):
            publish(db)
    assert not seen(db)


def test_triggers_and_rules_of_a_source_do_not_fire(
    db: Connection, mallory: str, trap: str
) -> None:
    make_patients(db, mallory)
    with as_mallory(db, mallory):
        db.execute(
            "CREATE FUNCTION mallory.fire() RETURNS trigger LANGUAGE plpgsql AS"
            " $$ BEGIN PERFORM mallory.trap(1); RETURN NULL; END $$"
        )
        db.execute(
            "CREATE TRIGGER t AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON mallory.ward"
            " EXECUTE FUNCTION mallory.fire()"
        )
        for event in ("INSERT", "UPDATE", "DELETE"):
            db.execute(
                f"CREATE RULE r_{event} AS ON {event} TO mallory.ward"
                " DO ALSO SELECT mallory.trap(1)"
            )
    with acting_as(db, "mdistinct_publisher"):
        publish(db)
    assert not seen(db)


def test_row_level_security_does_not_bind_the_owner(
    db: Connection, mallory: str, trap: str
) -> None:
    make_patients(db, mallory)
    with as_mallory(db, mallory):
        db.execute("ALTER TABLE mallory.ward ENABLE ROW LEVEL SECURITY")
        db.execute("CREATE POLICY p ON mallory.ward USING (mallory.trap(id) < 3)")
    with acting_as(db, "mdistinct_publisher"):
        assert publish(db)["records"] == 12
    assert not seen(db)


def test_row_level_security_that_would_hide_rows_is_refused(
    db: Connection, mallory: str, trap: str
) -> None:
    """A release without them would say that these records are gone."""
    make_patients(db, mallory)
    with as_mallory(db, mallory):
        db.execute("ALTER TABLE mallory.ward ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY")
        db.execute("CREATE POLICY p ON mallory.ward USING (mallory.trap(id) < 3)")
    with acting_as(db, "mdistinct_publisher"), pytest.raises(psycopg.Error) as caught:
        publish(db)
    assert caught.value.sqlstate == "42501"
    assert "row-level security" in (caught.value.diag.message_hint or "")
    assert not seen(db)


def test_policies_do_not_run_with_the_rights_of_an_admin(
    db: Connection, mallory: str, trap: str, new_role: NewRole
) -> None:
    make_table(db)
    db.execute("ALTER TABLE public.ward SET SCHEMA mallory")
    db.execute(sql.SQL("ALTER TABLE mallory.ward OWNER TO {}").format(sql.Identifier(mallory)))
    db.execute("GRANT SELECT ON mallory.ward TO mdistinct_admin")
    with acting_as(db, new_role("admin", "mdistinct_admin")):
        db.execute(REGISTER, ("ward", "mallory.ward"))
        allow_all(db, "ward")
        publish(db)
    with as_mallory(db, mallory):
        db.execute("ALTER TABLE mallory.ward ENABLE ROW LEVEL SECURITY")
        db.execute("CREATE POLICY p ON mallory.ward USING (mallory.trap(id) > 0)")
    with acting_as(db, "mdistinct_publisher"), pytest.raises(psycopg.Error) as caught:
        publish(db)
    assert caught.value.sqlstate == "42501"
    assert not seen(db)


def test_a_temporary_table_is_no_source(db: Connection) -> None:
    statement: LiteralString = "CREATE TEMPORARY TABLE passing (id int, age int, disease text)"
    db.execute(statement)
    with refused(db, "42809", "passing", "temporary"):
        db.execute(REGISTER, ("passing", "pg_temp.passing"))


def test_values_come_out_as_they_went_in(db: Connection) -> None:
    """Whatever the source holds is data, in every place that it passes."""
    nasty = (
        "'); DROP TABLE ward; --",
        '"quoted" $$dollar$$ $1 %s {0} {}',
        "back\\slash \\n E'\\x41'",
        "new\nline\ttab",
        "größe 漢字 🙂 \u202e",
        "NULL",
        "{a,b}",
        "",
        " ",
        "x" * 10_000,
    )
    db.execute("CREATE TABLE public.ward (id text, town text, disease text)")
    for i, value in enumerate(nasty):
        for j in range(2):
            db.execute(
                "INSERT INTO public.ward VALUES (%s, %s, %s)",
                (f"{value[:40]}{i}{j}", value, nasty[(i + j) % len(nasty)]),
            )
    db.execute("SELECT mdistinct_register('ward', 'ward', 'id', '{town}', 'disease', 2)")
    allow_all(db, "ward", nasty)
    publish(db)
    publish(db)
    shown = db.execute("SELECT town, disease FROM mdistinct_published.ward").fetchall()
    assert {value for towns, _ in shown for value in towns} == set(nasty)
    assert {disease for _, disease in shown} == set(nasty)
    members = db.execute("SELECT record_id FROM mdistinct.ward_membership WHERE release = 2")
    assert {name for (name,) in members} == {
        name for (name,) in db.execute("SELECT id FROM public.ward")
    }
    assert one(db, "SELECT count(*) FROM public.ward") == 2 * len(nasty)
