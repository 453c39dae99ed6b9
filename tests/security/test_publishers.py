"""What a publisher hears when something goes wrong: counts, no record and no value."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, field

import psycopg
import pytest

from tests.fix_database import Connection, acting_as
from tests.integration.cases import one, publish

# Longer than any OID, which debugging messages may tell.
SECRETS = ("patient-", "illness-", "4711471", "Springfield")
VALUES = ("illness-a", "illness-b", "illness-c", "illness-d")


@dataclass
class Heard:
    """All that the client was sent."""

    sqlstate: str | None = None
    texts: list[str] = field(default_factory=list)

    def add(self, told: psycopg.errors.Diagnostic) -> None:
        fields = (
            told.message_primary,
            told.message_detail,
            told.message_hint,
            told.context,
            told.internal_query,
            told.column_name,
            told.datatype_name,
        )
        self.texts += [text for text in fields if text]


@pytest.fixture
def clinic(db: Connection) -> Connection:
    """A dataset whose identifiers and values can be told from all other words."""
    db.execute(
        "CREATE TABLE public.clinic (id text, age integer, share float8, town text, disease text)"
    )
    db.execute(
        "INSERT INTO public.clinic SELECT 'patient-' || i, 471147100 + i, 0.4711471,"
        " 'Springfield-' || i, (%s::text[])[1 + i %% 4] FROM generate_series(1, 24) AS i",
        (list(VALUES),),
    )
    db.execute(
        "SELECT mdistinct_register('clinic', 'clinic', 'id', '{age,share,town}', 'disease', 2)"
    )
    for value in VALUES:
        allowed = VALUES[:2] if value == VALUES[0] else VALUES
        db.execute("SELECT mdistinct_allow_update('clinic', %s, %s)", (value, list(allowed)))
    publish(db, "clinic")
    return db


def heard_by_publisher(
    db: Connection,
    call: str = "SELECT mdistinct_publish('clinic')",
    *,
    in_transaction: bool = True,
) -> Heard:
    heard = Heard()
    db.add_notice_handler(heard.add)
    with acting_as(db, "mdistinct_publisher"):
        db.execute("SET client_min_messages = debug1")
        try:
            with db.transaction() if in_transaction else nullcontext():
                db.execute(call)
        except psycopg.Error as error:
            heard.sqlstate = error.sqlstate
            heard.add(error.diag)
        db.execute("RESET client_min_messages")
    db.remove_notice_handler(heard.add)
    return heard


def view(expression: str) -> str:
    """Put a view in the table's place that computes a column in this way."""
    return (
        "ALTER TABLE public.clinic RENAME TO people;"
        f" CREATE VIEW public.clinic AS SELECT id, {expression} AS age, share, town, disease"
        " FROM public.people"
    )


def raising(statement: str) -> str:
    return (
        "CREATE FUNCTION public.f(p public.clinic) RETURNS integer LANGUAGE plpgsql AS"
        f" $$ BEGIN {statement}; RETURN p.age; END $$;" + view("public.f(people)")
    )


FAILURES: dict[str, tuple[str, str]] = {
    "no identifier": ("UPDATE clinic SET id = NULL WHERE id = 'patient-1'", "23502"),
    "identifiers twice": ("UPDATE clinic SET id = 'patient-1' WHERE age < 471147105", "23505"),
    "no quasi-identifier": ("UPDATE clinic SET town = NULL WHERE age < 471147105", "23502"),
    "not a number": ("UPDATE clinic SET share = 'NaN' WHERE age < 471147105", "MD005"),
    "no value": ("UPDATE clinic SET disease = NULL WHERE age < 471147105", "23502"),
    "unknown value": ("UPDATE clinic SET disease = 'illness-x' WHERE age < 471147105", "MD001"),
    "impossible update": (
        "UPDATE clinic SET disease = 'illness-c' WHERE disease = 'illness-a'",
        "MD002",
    ),
    "model contradicts history": (
        "UPDATE clinic SET disease = 'illness-c' WHERE disease = 'illness-b';"
        " SELECT mdistinct_publish('clinic');"
        " SELECT mdistinct_allow_update('clinic', 'illness-b', '{illness-b}')",
        "MD002",
    ),
    "m out of reach": ("UPDATE mdistinct.datasets SET m = 9", "MD003"),
    "risk out of bounds": ("UPDATE mdistinct.datasets SET max_risk = 0.01", "MD007"),
    "source gone": ("DROP TABLE clinic", "42P01"),
    "column gone": ("ALTER TABLE clinic DROP town", "MD004"),
    "column changed": ("ALTER TABLE clinic ALTER town TYPE varchar(60)", "MD004"),
    "division by zero": (view("age / (age - 471147101)"), "22012"),
    "value in the message": (view("(town || age)::integer"), "22P02"),
    "overflow": (view("(age::bigint * 4711471100)::integer"), "22003"),
    "raised": (
        raising(
            "RAISE EXCEPTION 'bad %', p.id USING DETAIL = p.disease, HINT = p.town,"
            " COLUMN = p.id, DATATYPE = p.disease"
        ),
        "P0001",
    ),
    "domain": (
        "CREATE DOMAIN public.small AS integer CHECK (VALUE < 471147110);"
        + view("(age::public.small)::integer"),
        "23514",
    ),
    "dataset unknown": ("DELETE FROM mdistinct.datasets", "42704"),
}


def test_what_a_publisher_hears(clinic: Connection) -> None:
    for name, (statement, sqlstate) in FAILURES.items():
        for call in ("publish", "preview"):
            if (name, call) == ("risk out of bounds", "preview"):
                continue
            with clinic.transaction(force_rollback=True):
                clinic.execute(statement)
                heard = heard_by_publisher(clinic, f"SELECT mdistinct_{call}('clinic')")
            assert heard.sqlstate == sqlstate, f"{name}: {heard.texts}"
            assert any(text.startswith("pg_mdistinct: ") for text in heard.texts), name
            assert_discreet(heard)


def test_notices_and_warnings_of_a_source(clinic: Connection) -> None:
    clinic.execute(raising("RAISE NOTICE 'saw %', p.id; RAISE WARNING '%', p.disease"))
    heard = heard_by_publisher(clinic)
    assert heard.sqlstate is None
    assert_discreet(heard)


def test_a_statement_of_ours_that_fails_unforeseen(clinic: Connection) -> None:
    """PostgreSQL's own messages quote the row at fault."""
    clinic.execute("ALTER TABLE mdistinct_data.clinic_absent ADD CHECK (record_id = 'nobody')")
    clinic.execute("DELETE FROM clinic WHERE id = 'patient-7'")
    heard = heard_by_publisher(clinic)
    assert heard.sqlstate == "23514"
    assert_discreet(heard)
    assert any("mdistinct.audit" in text for text in heard.texts)
    told = one(
        clinic,
        "SELECT message FROM mdistinct.audit WHERE outcome = 'failed' AND action = 'publish'",
    )
    assert "clinic_absent" in told


@pytest.mark.tampered
def test_code_of_ours_that_fails_unforeseen(clinic: Connection) -> None:
    """What Python says of an error quotes values, too."""
    clinic.execute("UPDATE mdistinct.datasets SET variant = 'm-distinct', m = 2")
    clinic.execute("ALTER TABLE mdistinct_data.clinic_domain DROP COLUMN value CASCADE")
    clinic.execute("UPDATE mdistinct_data.clinic_domain SET code = code + 4711471")
    heard = heard_by_publisher(clinic)
    assert heard.sqlstate is not None
    assert_discreet(heard)


def test_a_publication_that_another_one_keeps_waiting(clinic: Connection, dsn: str) -> None:
    with psycopg.connect(dsn) as other:
        other.execute("SELECT FROM mdistinct.datasets FOR UPDATE")
        heard = heard_by_publisher(clinic)
    assert heard.sqlstate == "55P03"
    assert_discreet(heard)


def test_the_test_is_not_deaf(clinic: Connection) -> None:
    """To an admin the same calls do name records and values."""
    clinic.execute("UPDATE clinic SET disease = 'illness-x' WHERE age < 471147105")
    with pytest.raises(psycopg.Error, match="illness-x"):
        publish(clinic, "clinic")
    heard = Heard(texts=["saw patient-7"])
    with pytest.raises(AssertionError):
        assert_discreet(heard)


def test_a_run_keeps_for_admins_what_publishers_may_hear(clinic: Connection) -> None:
    clinic.execute("UPDATE clinic SET disease = 'illness-x' WHERE age < 471147105")
    heard = heard_by_publisher(clinic, "CALL mdistinct_publish_all()", in_transaction=False)
    assert_discreet(heard)
    assert heard.texts


def assert_discreet(heard: Heard) -> None:
    for text in heard.texts:
        for secret in SECRETS:
            assert secret not in text, text
