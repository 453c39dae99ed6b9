"""What makes a publication fail: message, HINT and SQLSTATE, and that nothing was written.

Refusals of arguments are tested where the arguments are: test_register.py and test_updates.py.
"""

from __future__ import annotations

import re

import psycopg
import pytest
from psycopg import sql

from tests.fix_database import acting_as
from tests.integration.cases import (
    Connection,
    make_ward,
    publish,
    refused,
    state,
)

CALLS = (
    "SELECT mdistinct_publish(%s)",
    "SELECT mdistinct_preview(%s)",
    "SELECT * FROM mdistinct_create_buckets(%s)",
    "SELECT * FROM mdistinct_assign_records(%s)",
    "SELECT * FROM mdistinct_split_buckets(%s)",
)


def everything_refuses(db: Connection, sqlstate: str, *words: str) -> None:
    """All that reads the source refuses in the same words."""
    for call in CALLS:
        with refused(db, sqlstate, *words):
            db.execute(call, ("ward",))


def test_an_unknown_dataset(db: Connection) -> None:
    calls = (*CALLS, "SELECT * FROM mdistinct_verify(%s)", "SELECT mdistinct_drop(%s)")
    for call in calls:
        with refused(db, "42704", '"nope"'):
            db.execute(call, ("nope",))
        with refused(db, "22004", '"dataset"'):
            db.execute(call, (None,))


def test_a_null_identifier(db: Connection) -> None:
    make_ward(db)
    publish(db)
    db.execute("ALTER TABLE public.ward DROP CONSTRAINT ward_pkey")
    db.execute("ALTER TABLE public.ward ALTER id DROP NOT NULL")
    db.execute("UPDATE public.ward SET id = NULL WHERE id <= 2")
    everything_refuses(db, "23502", '"id"', "2 rows")


def test_duplicate_identifiers(db: Connection) -> None:
    make_ward(db)
    publish(db)
    db.execute("ALTER TABLE public.ward DROP CONSTRAINT ward_pkey")
    db.execute("INSERT INTO public.ward SELECT * FROM public.ward WHERE id IN (3, 5)")
    everything_refuses(db, "23505", '"id"', "2 identifiers", "3 (2 rows), 5 (2 rows)")


def test_null_in_a_qi_column(db: Connection) -> None:
    make_ward(db, age="integer", town="text")
    publish(db)
    db.execute("UPDATE public.ward SET town = NULL WHERE id IN (4, 7)")
    everything_refuses(db, "23502", '"town"', "2 records", "4, 7")


def test_null_in_the_sensitive_column(db: Connection) -> None:
    make_ward(db)
    publish(db)
    db.execute("UPDATE public.ward SET disease = NULL WHERE id = 4")
    everything_refuses(db, "23502", '"disease"', "1 record: 4")


@pytest.mark.parametrize("column", ["id", "age", "town", "disease"])
def test_null_of_a_lone_record_is_no_empty_text(db: Connection, column: str) -> None:
    make_ward(db, age="integer", town="text")
    db.execute("ALTER TABLE public.ward DROP CONSTRAINT ward_pkey, ALTER id DROP NOT NULL")
    db.execute("DELETE FROM public.ward WHERE id > 1")
    db.execute(f"UPDATE public.ward SET {column} = NULL".encode())
    everything_refuses(db, "23502", f'"{column}"', "1 r")


def test_a_sensitive_value_that_the_model_does_not_know(db: Connection) -> None:
    make_ward(db)
    publish(db)
    db.execute("UPDATE public.ward SET disease = 'Cold' WHERE id IN (4, 7)")
    db.execute("UPDATE public.ward SET disease = 'Gout' WHERE id = 1")
    everything_refuses(
        db, "MD001", '"disease"', "2 values", '"Cold" (2 records), "Gout" (1 record)'
    )


def test_a_value_that_only_a_former_model_knew(db: Connection) -> None:
    make_ward(db)
    db.execute("SELECT mdistinct_allow_update('ward', 'Flu', '{Flu,Cold}')")
    db.execute("SELECT mdistinct_allow_update('ward', 'Flu', '{Flu,Gastritis}')")
    db.execute("UPDATE public.ward SET disease = 'Cold' WHERE id = 4")
    with refused(db, "MD001", '"Cold"'):
        publish(db)


def test_impossible_updates_name_ten_records(db: Connection) -> None:
    make_ward(db, records=48)
    db.execute("SELECT mdistinct_allow_update('ward', 'Flu', '{Flu,Pneumonia}')")
    publish(db)
    db.execute("UPDATE public.ward SET disease = 'Gastritis' WHERE disease = 'Flu'")
    everything_refuses(db, "MD002", "12 records", "4 (Flu -> Gastritis)", ", ...")
    with pytest.raises(psycopg.Error) as caught:
        publish(db)
    assert (caught.value.diag.message_primary or "").count("Flu -> Gastritis") == 10


def test_an_update_that_is_impossible_however_many_releases_passed(db: Connection) -> None:
    make_ward(db)
    db.execute("SELECT mdistinct_allow_update('ward', 'Flu', '{Flu}')")
    publish(db)
    db.execute("DELETE FROM public.ward WHERE id = 4")
    publish(db)
    db.execute("INSERT INTO public.ward VALUES (4, 4, 'Gastritis')")
    with refused(db, "MD002", "1 record", "4 (Flu -> Gastritis)"):
        publish(db)


def test_an_m_that_the_domain_cannot_meet(db: Connection) -> None:
    make_ward(db, m=5)
    everything_refuses(db, "MD003", "m = 5", "4 sensitive values")


def test_a_source_that_was_dropped(db: Connection) -> None:
    make_ward(db)
    publish(db)
    db.execute("DROP TABLE public.ward")
    everything_refuses(db, "42P01", "public.ward", '"ward"')


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("ALTER TABLE public.ward DROP age", ['"age"', "gone"]),
        ("ALTER TABLE public.ward RENAME age TO years", ['"age"', "gone"]),
        ("ALTER TABLE public.ward ALTER age TYPE text", ['"age"', "integer", "text"]),
        ("ALTER TABLE public.ward ALTER id TYPE text", ['"id"', "integer", "text"]),
        ("ALTER TABLE public.ward RENAME disease TO illness", ['"disease"', "gone"]),
    ],
)
def test_a_source_that_changed_its_columns(db: Connection, change: str, words: list[str]) -> None:
    make_ward(db)
    publish(db)
    db.execute(change)
    for call in CALLS[:2]:
        with refused(db, "MD004", "public.ward", *words):
            db.execute(call, ("ward",))


def test_columns_that_do_not_matter_may_change(db: Connection) -> None:
    make_ward(db, age="integer", town="varchar(20)")
    publish(db)
    db.execute("ALTER TABLE public.ward ADD remark text, ALTER town TYPE varchar(30)")
    assert publish(db)["release"] == 2


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("float8", ["NaN", "Infinity", "-Infinity"]),
        ("float4", ["NaN", "Infinity", "-Infinity"]),
        ("numeric", ["NaN", "Infinity", "-Infinity"]),
        ("date", ["infinity", "-infinity"]),
        ("timestamp", ["infinity", "-infinity"]),
        ("timestamptz", ["infinity", "-infinity"]),
    ],
)
def test_values_that_are_not_finite(db: Connection, kind: str, values: list[str]) -> None:
    make_ward(db)
    db.execute(f"CREATE TABLE public.odd (id int, q {kind}, disease text)")
    db.execute("SELECT mdistinct_register('odd', 'public.odd', 'id', '{q}', 'disease', 2)")
    db.execute("SELECT mdistinct_allow_update('odd', 'Flu', '{Flu,Gastritis}')")
    for value in values:
        db.execute("TRUNCATE public.odd")
        db.execute("INSERT INTO public.odd VALUES (17, %s, 'Flu')", (value,))
        with refused(db, "MD005", '"q"', "1 record: 17"):
            publish(db, "odd")


def test_publishers_hear_counts_but_neither_records_nor_values(db: Connection) -> None:
    make_ward(db, records=24, age="integer", share="float8")
    db.execute("SELECT mdistinct_allow_update('ward', 'Flu', '{Flu,Pneumonia}')")
    publish(db)
    db.execute("UPDATE public.ward SET id = id + 1000")
    db.execute("ALTER TABLE public.ward DROP CONSTRAINT ward_pkey, ALTER id DROP NOT NULL")
    for change, sqlstate in (
        ("UPDATE public.ward SET id = NULL WHERE id > 1020", "23502"),
        ("UPDATE public.ward SET id = 1001", "23505"),
        ("UPDATE public.ward SET age = NULL WHERE id > 1020", "23502"),
        ("UPDATE public.ward SET share = 'NaN' WHERE id > 1020", "MD005"),
        ("UPDATE public.ward SET disease = NULL WHERE id > 1020", "23502"),
        ("UPDATE public.ward SET disease = 'Secret' WHERE id > 1020", "MD001"),
        (
            "UPDATE public.ward SET id = id - 1000;"
            "UPDATE public.ward SET disease = 'Gastritis' WHERE disease = 'Flu'",
            "MD002",
        ),
    ):
        with db.transaction(force_rollback=True):
            db.execute(change)
            message = _as_publisher(db, sqlstate)
        told = message.replace("public.ward", "")
        assert re.search(r"\d+ (record|row|value|identifier)", told)
        assert not re.search(r"10\d\d|Secret|Gastritis|Flu", told)


def test_publishers_do_not_hear_what_a_failing_source_says(db: Connection) -> None:
    make_ward(db)
    db.execute("ALTER TABLE public.ward RENAME TO people")
    db.execute(
        "CREATE VIEW public.ward AS SELECT id, (disease || age)::int AS age, disease"
        " FROM public.people"
    )
    with db.transaction(force_rollback=True):
        message = _as_publisher(db, "22P02")
    assert "Flu" not in message
    with pytest.raises(psycopg.errors.InvalidTextRepresentation, match='"Pneumonia1"'):
        publish(db)


def _as_publisher(db: Connection, sqlstate: str) -> str:
    """Publish as somebody who may do nothing else; return all that the error says."""
    with (
        acting_as(db, "mdistinct_publisher"),
        pytest.raises(psycopg.Error) as caught,
        db.transaction(),
    ):
        publish(db)
    assert caught.value.sqlstate == sqlstate, caught.value.diag.message_primary
    assert caught.value.diag.message_hint
    told = (caught.value.diag.message_primary, caught.value.diag.message_detail)
    return " ".join(part for part in told if part)


def test_a_reader_function_that_would_run_as_our_owner_is_not_called(db: Connection) -> None:
    make_ward(db)
    db.execute("ALTER FUNCTION mdistinct_sources.ward() SECURITY INVOKER")
    with refused(db, "55000", "mdistinct_sources.ward()", "SECURITY DEFINER"):
        publish(db)
    db.execute("DROP FUNCTION mdistinct_sources.ward()")
    with refused(db, "55000", "mdistinct_sources.ward()", "does not exist"):
        publish(db)
    db.execute(
        "CREATE FUNCTION mdistinct_sources.ward() RETURNS TABLE (record_id text[], label text[])"
        " LANGUAGE sql SECURITY DEFINER AS $$ SELECT '{1}'::text[], '{Flu}'::text[] $$"
    )
    with refused(db, "55000", "mdistinct_sources.ward()", "other columns"):
        publish(db)


@pytest.mark.parametrize(
    ("ids", "ages", "labels"),
    [
        ("{1,2}", "{1,2,3}", "{Flu,Flu}"),
        ("{1,2}", "{{1,2},{3,4}}", "{Flu,Flu}"),
        ("{1,2,3,4}", "{{11,12},{13,14}}", "{Flu,Flu,Flu,Flu}"),
        ("{1,2}", "{1,2}", "{Flu,Flu,Flu}"),
        ("{1,2}", "{1,2}", "{{Flu,Flu}}"),
        ("{}", "{}", "{}"),
    ],
)
def test_a_reader_function_whose_columns_do_not_match(
    db: Connection, ids: str, ages: str, labels: str
) -> None:
    make_ward(db)
    _replace_reader(db, f"SELECT '{ids}'::text[], '{ages}'::integer[], '{labels}'::text[]")
    with refused(db, "55000", "public.ward", "all columns of every row"):
        publish(db)


def test_a_reader_function_that_leaves_values_out(db: Connection) -> None:
    """A header of a second dimension must not be taken for the fifth value."""
    make_ward(db)
    _replace_reader(
        db,
        "SELECT '{1,2,3,4,5}'::text[], '{{11,12},{13,14}}'::integer[],"
        " '{Flu,Flu,Flu,Flu,Flu}'::text[]",
    )
    with refused(db, "23502", '"age"', "1 record: 5"):
        publish(db)


def test_a_reader_function_whose_parts_do_not_match(db: Connection) -> None:
    """As many values as identifiers in all, but not side by side."""
    make_ward(db)
    part = "SELECT '{{{},{}}}'::text[], '{}'::integer[], '{{Flu,Flu}}'::text[]"
    _replace_reader(db, f"{part.format(1, 2, '{1}')} UNION ALL {part.format(3, 4, '{2,3,4}')}")
    with pytest.raises(psycopg.Error) as caught:
        publish(db)
    assert caught.value.sqlstate in ("23502", "55000")


def _replace_reader(db: Connection, body: str) -> None:
    db.execute(
        "CREATE OR REPLACE FUNCTION mdistinct_sources.ward() RETURNS TABLE (record_id text[],"
        f" q1 integer[], label text[]) LANGUAGE sql SECURITY DEFINER AS $$ {body} $$".encode()
    )


def test_code_behind_the_types_of_a_source_does_not_run_as_our_owner(db: Connection) -> None:
    """Domains and casts can run functions of the source's owner: as that owner, never as ours."""
    db.execute("CREATE TABLE public.seen (who text)")
    db.execute("GRANT ALL ON public.seen TO PUBLIC")
    for name, argument in (("trap", "text"), ("trap", "int")):
        db.execute(
            f"CREATE FUNCTION public.{name}({argument}) RETURNS boolean LANGUAGE sql AS"
            " $$INSERT INTO public.seen VALUES (current_user); SELECT true$$"
        )
    db.execute("CREATE DOMAIN public.illness AS text CHECK (public.trap(VALUE))")
    db.execute("CREATE DOMAIN public.years AS int CHECK (public.trap(VALUE))")
    db.execute("CREATE TYPE public.mood AS ENUM ('sad', 'glad')")
    db.execute(
        "CREATE FUNCTION public.say(public.mood) RETURNS text LANGUAGE sql AS"
        " $$SELECT CASE WHEN public.trap('') THEN 'x' END$$"
    )
    db.execute("CREATE CAST (public.mood AS text) WITH FUNCTION public.say(public.mood)")
    db.execute("CREATE TABLE public.t (id public.years, q public.mood, what public.illness)")
    db.execute("INSERT INTO public.t VALUES (1, 'sad', 'Flu'), (2, 'glad', 'Gout')")
    db.execute("SELECT mdistinct_register('t', 'public.t', 'id', '{q}', 'what', 2)")
    db.execute("TRUNCATE public.seen")
    for value in ("Flu", "Gout"):
        db.execute("SELECT mdistinct_allow_update('t', %s, '{Flu,Gout}')", (value,))
    with acting_as(db, "mdistinct_publisher"):
        publish(db, "t")
    callers = {who for (who,) in db.execute("SELECT DISTINCT who FROM public.seen")}
    assert callers == {db.execute("SELECT current_user::text").fetchall()[0][0]}


def test_a_cancelled_publication_writes_nothing(db: Connection) -> None:
    make_ward(db)
    db.execute("ALTER TABLE public.ward RENAME TO people")
    db.execute(
        "CREATE VIEW public.ward AS SELECT people.* FROM public.people, pg_sleep(10) AS slept"
    )
    before = state(db)
    db.execute("SET statement_timeout = '300ms'")
    with pytest.raises(psycopg.errors.QueryCanceled):
        publish(db)
    db.execute("RESET statement_timeout")
    assert state(db) == before


def test_injection_through_names(db: Connection) -> None:
    evil = "x'); DROP TABLE public.ward; --\"$1 %s {0}"
    make_ward(db)
    column = sql.Identifier(evil)
    db.execute(sql.SQL("ALTER TABLE public.ward RENAME age TO {}").format(column))
    db.execute(
        "SELECT mdistinct_register(%s, 'public.ward', 'id', %s, 'disease', 2)", (evil, [evil])
    )
    db.execute("SELECT mdistinct_allow_update(%s, 'Flu', %s)", (evil, ["Flu", evil, "Gastritis"]))
    with refused(db, "MD001", '"Dyspepsia"'):
        publish(db, evil)
    db.execute("SELECT mdistinct_drop(%s)", (evil,))
    assert db.execute("SELECT count(*) FROM public.ward").fetchall() == [(12,)]
