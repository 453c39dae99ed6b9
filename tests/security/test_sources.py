"""A source's owner who is up to something: his code runs with his rights, or it does not run."""

from __future__ import annotations

from typing import LiteralString

import psycopg
import pytest
from psycopg import sql

from tests.fix_database import Connection, acting_as
from tests.integration.cases import allow_all, make_table, one, publish, refused
from tests.security.conftest import NewRole
from tests.security.traps import (
    OURS,
    REGISTER,
    make_patients,
    put_view_in_place,
    seen,
    spring,
)


def test_functions_behind_a_view_run_as_its_owner(
    db: Connection, mallory: str, trap: str, new_role: NewRole
) -> None:
    make_patients(db, mallory)
    with acting_as(db, mallory):
        put_view_in_place(db)
    with acting_as(db, new_role("publisher", "mdistinct_publisher")):
        publish(db)
        db.execute("SELECT mdistinct_preview('ward')")
    with acting_as(db, "mdistinct_admin"):
        for call in ("create_buckets", "assign_records", "split_buckets", "preview_risk"):
            db.execute(f"SELECT * FROM mdistinct_{call}('ward')")
    publish(db)
    assert seen(db) == {mallory}


def test_code_behind_a_source_sees_our_statement_but_no_secret(
    db: Connection, mallory: str
) -> None:
    """What stands between texts on their way to us could be put into a text otherwise."""
    make_patients(db, mallory)
    with acting_as(db, mallory):
        db.execute(
            "CREATE FUNCTION mallory.look() RETURNS integer LANGUAGE plpgsql VOLATILE AS"
            " $$ DECLARE called text; BEGIN GET DIAGNOSTICS called = PG_CONTEXT;"
            " RAISE EXCEPTION '%', called; END $$"
        )
        db.execute("ALTER TABLE mallory.ward RENAME TO patients")
        db.execute(
            "CREATE VIEW mallory.ward AS SELECT id, age + mallory.look() AS age, disease"
            " FROM mallory.patients"
        )
    with pytest.raises(psycopg.errors.RaiseException) as caught:
        publish(db)
    told = caught.value.diag.message_primary or ""
    assert "INSERT INTO mdistinct_data.ward_v2" in told
    assert not {"\x01", "\x02"} & set(told)


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
    with acting_as(db, mallory):
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
    with acting_as(db, mallory):
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
    with acting_as(db, mallory):
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
    with acting_as(db, mallory):
        put_view_in_place(db)
        spring(db, "CREATE TEMPORARY TABLE IF NOT EXISTS people (id int)")
    with refused(db, "39000", "temporary"):
        publish(db)
    assert one(db, "SELECT to_regclass('pg_temp.people')") is None


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
            " (record_id text[], q1 integer[], label mallory.box[]) LANGUAGE sql SECURITY DEFINER"
            " AS $$ SELECT '{1}'::text[], '{1}'::int[], ARRAY[row('Flu')::mallory.box] $$"
        )
        db.execute("GRANT EXECUTE ON FUNCTION mdistinct_sources.ward() TO mdistinct_owner")
        with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match="own"):
            publish(db)
    assert not seen(db)


def test_triggers_and_rules_of_a_source_do_not_fire(
    db: Connection, mallory: str, trap: str
) -> None:
    make_patients(db, mallory)
    with acting_as(db, mallory):
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
    with acting_as(db, mallory):
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
    with acting_as(db, mallory):
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
    with acting_as(db, mallory):
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
