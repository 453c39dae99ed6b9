"""mdistinct_allow_update and mdistinct_load_updates."""

from __future__ import annotations

import psycopg
import pytest

from tests.fix_database import acting_as
from tests.integration.cases import Connection, make_table, make_ward, one, publish, refused

ALLOW = "SELECT mdistinct_allow_update(%s, %s, %s)"
ALLOW_WITH = "SELECT mdistinct_allow_update(%s, %s, %s, %s)"
LOAD = "SELECT mdistinct_load_updates(%s, %s)"


@pytest.fixture
def ward(db: Connection) -> Connection:
    """A registered dataset without a model."""
    make_table(db)
    db.execute("SELECT mdistinct_register('ward', 'ward', 'id', '{age}', 'disease', 2)")
    return db


def model(db: Connection) -> dict[tuple[str, str], float]:
    rows = db.execute("SELECT old_value, new_value, probability FROM mdistinct.updates").fetchall()
    return {(old, new): probability for old, new, probability in rows}


def test_without_probabilities_all_are_equally_likely(ward: Connection) -> None:
    ward.execute(ALLOW, ("ward", "Flu", ["Flu", "Pneumonia", "Gastritis"]))
    assert set(model(ward).values()) == {1 / 3}


def test_called_again_it_replaces_the_row(ward: Connection) -> None:
    ward.execute(ALLOW, ("ward", "Flu", ["Flu", "Pneumonia"]))
    ward.execute(ALLOW, ("ward", "Gastritis", ["Gastritis"]))
    ward.execute(ALLOW_WITH, ("ward", "Flu", ["Flu", "Dyspepsia"], [0.25, 0.75]))
    assert model(ward) == {
        ("Flu", "Flu"): 0.25,
        ("Flu", "Dyspepsia"): 0.75,
        ("Gastritis", "Gastritis"): 1.0,
    }


def test_probabilities_are_normalized(ward: Connection) -> None:
    ward.execute(ALLOW_WITH, ("ward", "Flu", ["Flu", "Gastritis", "Dyspepsia"], [0.3333334] * 3))
    assert sum(model(ward).values()) == pytest.approx(1, abs=1e-15)


def test_an_update_of_probability_zero_is_impossible(db: Connection) -> None:
    make_ward(db)
    db.execute(
        ALLOW_WITH,
        ("ward", "Flu", ["Flu", "Pneumonia", "Gastritis", "Dyspepsia"], [0.5, 0.5, 0.0, 0.0]),
    )
    publish(db)
    db.execute("UPDATE public.ward SET disease = 'Gastritis' WHERE disease = 'Flu'")
    with refused(db, "MD002", "3 records", "(Flu -> Gastritis)"):
        publish(db)


def test_values_have_one_text_whatever_way_they_are_written(db: Connection) -> None:
    db.execute("CREATE TABLE public.t (id int, q int, code numeric(6, 2))")
    db.execute("INSERT INTO public.t VALUES (1, 1, 1.5), (2, 2, 2), (3, 3, 1.5), (4, 4, 2)")
    db.execute("SELECT mdistinct_register('t', 'public.t', 'id', '{q}', 'code', 2)")
    db.execute(ALLOW, ("t", "1.50", ["1.500", "2.0"]))
    db.execute(ALLOW, ("t", " 2 ", ["2.00", "1.5"]))
    assert set(model(db)) == {("1.5", "1.5"), ("1.5", "2"), ("2", "2"), ("2", "1.5")}
    assert publish(db, "t")["records"] == 4


def test_what_allow_update_refuses(ward: Connection) -> None:
    for arguments, sqlstate, word in (
        (("nope", "Flu", ["Flu"]), "42704", '"nope"'),
        ((None, "Flu", ["Flu"]), "22004", '"dataset"'),
        (("ward", None, ["Flu"]), "22004", '"old_value"'),
        (("ward", "Flu", None), "22004", '"new_values"'),
        (("ward", "Flu", ["Flu", None]), "22004", "NULL"),
        (("ward", "Flu", [["Flu"], ["Pneumonia"]]), "22004", "array"),
        (("ward", "Flu", []), "22023", '"Flu"'),
        (("ward", "Flu", ["Flu", "Flu"]), "22023", '"Flu" -> "Flu"'),
    ):
        with refused(ward, sqlstate, word):
            ward.execute(ALLOW, arguments)


def test_probabilities_that_are_refused(ward: Connection) -> None:
    for probabilities, word in (
        ([1.0], "1 probabilities"),
        ([0.5, 0.6], "sum to 1.1"),
        ([0.5, 0.49999], "sum to 0.99999"),
        ([1.5, -0.5], "-0.5"),
        ([float("nan"), 0.5], "nan"),
        ([float("inf"), 0.5], "inf"),
        ([0.5, None], "some have none"),
    ):
        with refused(ward, "22023", word):
            ward.execute(ALLOW_WITH, ("ward", "Flu", ["Flu", "Pneumonia"], probabilities))


def test_a_value_that_is_none_of_the_columns_type(db: Connection) -> None:
    db.execute("CREATE TABLE public.t (id int, q int, code int)")
    db.execute("SELECT mdistinct_register('t', 'public.t', 'id', '{q}', 'code', 2)")
    with refused(db, "22P02", '"two"', '"code"', "integer"):
        db.execute(ALLOW, ("t", "1", ["1", "two"]))


def test_a_whole_table(ward: Connection) -> None:
    ward.execute(ALLOW, ("ward", "Flu", ["Flu"]))
    ward.execute(ALLOW, ("ward", "Cold", ["Cold"]))
    ward.execute(
        "CREATE VIEW public.allowed AS SELECT * FROM (VALUES ('Flu', 'Flu', 0.5),"
        " ('Flu', 'Pneumonia', 0.5), ('Pneumonia', 'Pneumonia', NULL), ('Pneumonia', 'Flu', NULL))"
        " AS v (old_value, new_value, probability)"
    )
    assert one(ward, LOAD, ("ward", "allowed")) == 4
    assert model(ward) == {
        ("Cold", "Cold"): 1,
        ("Flu", "Flu"): 0.5,
        ("Flu", "Pneumonia"): 0.5,
        ("Pneumonia", "Flu"): 0.5,
        ("Pneumonia", "Pneumonia"): 0.5,
    }


def test_the_probability_column_may_be_absent(ward: Connection) -> None:
    ward.execute(
        'CREATE TABLE public."Allowed ""x" AS SELECT a AS old_value, b AS new_value'
        " FROM unnest('{Flu,Pneumonia}'::text[]) AS a, unnest('{Flu,Pneumonia}'::text[]) AS b"
    )
    ward.execute(LOAD, ("ward", 'public."Allowed ""x"'))
    assert model(ward)[("Flu", "Pneumonia")] == 0.5


def test_tables_of_updates_that_are_refused(ward: Connection) -> None:
    for rows, sqlstate, word in (
        ("('Flu', 'Flu', 0.5), ('Flu', 'Pneumonia', NULL)", "22023", "some have none"),
        ("('Flu', 'Flu', 0.5), ('Flu', 'Pneumonia', 0.6)", "22023", "sum to 1.1"),
        ("('Flu', 'Flu', NULL), ('Flu', 'Flu', NULL)", "22023", '"Flu" -> "Flu"'),
        ("('Flu', NULL, NULL::float8)", "22004", "NULL"),
        # One value is no company for m = 2.
        ("('Flu', 'Flu', 1)", "MD003", "m = 2"),
        # Every value must become the one and same other.
        ("('Flu', 'Pneumonia', 1), ('Gastritis', 'Pneumonia', 1)", "MD006", "Flu"),
    ):
        ward.execute(
            "CREATE OR REPLACE VIEW public.allowed AS SELECT old_value::text, new_value::text,"
            f" probability::float8 FROM (VALUES {rows}) AS v (old_value, new_value, probability)"
        )
        with refused(ward, sqlstate, word):
            ward.execute(LOAD, ("ward", "allowed"))
    ward.execute("CREATE TABLE public.empty (old_value text, new_value text)")
    with refused(ward, "22023", "no updates"):
        ward.execute(LOAD, ("ward", "empty"))
    ward.execute("CREATE TABLE public.other (old_value text)")
    with refused(ward, "42703", '"new_value"'):
        ward.execute(LOAD, ("ward", "other"))


def test_a_table_of_updates_is_read_with_the_rights_of_the_caller(ward: Connection) -> None:
    ward.execute("CREATE TABLE public.allowed AS SELECT 'Flu' AS old_value, 'Flu' AS new_value")
    with acting_as(ward, "mdistinct_admin"), pytest.raises(psycopg.errors.InsufficientPrivilege):
        ward.execute(LOAD, ("ward", "public.allowed"))


def test_a_model_that_cannot_work_is_refused_at_publishing(ward: Connection) -> None:
    ward.execute("UPDATE public.ward SET disease = 'Flu'")
    ward.execute(ALLOW, ("ward", "Flu", ["Flu"]))
    with refused(ward, "MD003", "m = 2"):
        publish(ward)
    with refused(ward, "MD003", "m = 2"):
        ward.execute("SELECT mdistinct_preview('ward')")
