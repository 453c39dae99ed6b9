"""Quasi-identifiers, identifiers and sensitive values of every kind of type."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import psycopg
import pytest
from psycopg import sql

from pg_mdistinct.install import install
from tests.integration.cases import Connection, one, publish

# Every value of the source, as it stood in each release, with the group that shows it.
SHOWN = """
    SELECT t.q, p.q FROM public.t AS t JOIN mdistinct.t_membership AS m ON m.record_id = t.id::text
    JOIN (SELECT DISTINCT release, gid, q FROM mdistinct_published.t) AS p USING (release, gid)
"""
INSIDE = SHOWN.replace("SELECT t.q, p.q", "SELECT count(*), count(*) FILTER (WHERE {})")


@dataclass(frozen=True)
class Kind:
    declared: str
    generalized: str
    values: Sequence[str]
    inside: str = "t.q <@ p.q"


RANGES = (
    Kind("smallint", "int4range", ["-32768", "0", "7", "32767"], "t.q::int <@ p.q"),
    Kind("integer", "int4range", ["-2147483648", "0", "7", "2147483646", "2147483647"]),
    Kind(
        "bigint",
        "int8range",
        ["-9223372036854775808", "0", "9007199254740993", "9223372036854775807"],
    ),
    Kind("numeric", "numrange", ["-1e400", "0.1", "0.10000000000000000000001", "1e-300", "1e400"]),
    Kind("numeric(8, 3)", "numrange", ["-1.5", "0.001", "0.002", "99999.999"]),
    Kind(
        "real",
        "numrange",
        ["-3.4e38", "1e-40", "0.1", "36.6", "16777217", "3.4e38"],
        "t.q::numeric <@ p.q AND t.q::text::numeric <@ p.q",
    ),
    Kind(
        "double precision",
        "numrange",
        ["-1.7e308", "5e-324", "0.1", "36.6", "0.30000000000000004", "1.7e308"],
        "t.q::numeric <@ p.q AND t.q::text::numeric <@ p.q",
    ),
    Kind("date", "daterange", ["4713-01-01 BC", "2024-02-29", "9999-12-31", "5874897-12-31"]),
    Kind(
        "timestamp",
        "tsrange",
        [
            "4713-01-01 BC",
            "1969-12-31 23:59:59.999999",
            "2024-02-29 12:00:00.000001",
            "290000-01-01 00:00:00.000001",
            "294276-12-31 23:59:59.999999",
        ],
    ),
    Kind(
        "timestamptz",
        "tstzrange",
        [
            "4713-01-02 00:00 BC",
            "1969-12-31 23:59:59.999999+05",
            "2024-02-29 12:00Z",
            "294276-12-31 23:59:59.999999Z",
        ],
    ),
)
SETS = (
    Kind("text", "text[]", ['a"b', "back\\slash", "", "NULL", "{x,y}", "ä🙂", " space "]),
    Kind("varchar(10)", "text[]", ["b", "a", "B", "ab"]),
    Kind("char(4)", "text[]", ["b", "a", "abcd"], "t.q::text = ANY (p.q)"),
    Kind("boolean", "text[]", ["true", "false"]),
    Kind(
        "uuid",
        "text[]",
        ["00000000-0000-0000-0000-000000000001", "f" * 8 + "-ffff" * 3 + "-" + "f" * 12],
    ),
    Kind("inet", "text[]", ["10.0.0.1/32", "::1/128"]),
    Kind("bytea", "text[]", ["\\x00", "\\xff"]),
    Kind("interval", "text[]", ["1 day", "02:00:00"]),
    Kind("time", "text[]", ["01:02:03", "23:59:59"]),
    Kind("jsonb", "text[]", ['{"a": 1}', "[1, 2]"]),
    Kind("json", "text[]", ['{"a":1}', "[1,2]"]),
    Kind("integer[]", "text[]", ["{1,2}", "{}"]),
    Kind("int4range", "text[]", ["[1,5)", "empty"]),
    Kind("money", "text[]", ["$1.00", "-$2.50"]),
)


def make(db: Connection, kind: str, values: Sequence[str]) -> None:
    db.execute(f"CREATE TABLE public.t (id int PRIMARY KEY, q {kind}, s text)")
    for i, value in enumerate([*values, *values]):
        db.execute("INSERT INTO public.t VALUES (%s, %s, %s)", (i, value, "ab"[i % 2]))
    db.execute("SELECT mdistinct_register('t', 'public.t', 'id', '{q}', 's', 2)")
    db.execute("SELECT mdistinct_allow_update('t', 'a', '{a,b}')")
    db.execute("SELECT mdistinct_allow_update('t', 'b', '{a,b}')")


@pytest.mark.parametrize("kind", RANGES, ids=lambda kind: kind.declared)
def test_types_that_become_ranges(db: Connection, kind: Kind) -> None:
    make(db, kind.declared, kind.values)
    # Settings of the session must not matter.
    db.execute(
        "SET datestyle = 'German'; SET timezone = 'Asia/Kolkata'; SET extra_float_digits = -5"
    )
    ncp = publish(db, "t")["ncp"]
    publish(db, "t")
    db.execute("RESET datestyle; RESET timezone; SET extra_float_digits = 1")
    assert 0 <= ncp <= 1
    assert one(db, "SELECT pg_typeof(q)::text FROM mdistinct_published.t") == kind.generalized
    count, inside = db.execute(INSIDE.format(kind.inside)).fetchall()[0]
    assert (count, inside) == (4 * len(kind.values), count)


@pytest.mark.parametrize("kind", SETS, ids=lambda kind: kind.declared)
def test_types_that_become_sets(db: Connection, kind: Kind) -> None:
    make(db, kind.declared, kind.values)
    db.execute("SET bytea_output = 'escape'; SET intervalstyle = 'iso_8601'")
    publish(db, "t")
    publish(db, "t")
    db.execute("RESET bytea_output; RESET intervalstyle")
    assert one(db, "SELECT pg_typeof(q)::text FROM mdistinct_published.t") == kind.generalized
    condition = "t.q::text = ANY (p.q)"
    count, inside = db.execute(INSIDE.format(condition)).fetchall()[0]
    assert (count, inside) == (4 * len(kind.values), count)
    for (shown,) in db.execute("SELECT DISTINCT q FROM mdistinct_published.t"):
        assert shown == sorted(set(shown))


@pytest.mark.parametrize("kind", ["real", "double precision"])
def test_ranges_of_floats_hold_the_exact_binary_values(db: Connection, kind: str) -> None:
    make(db, kind, ["0.1", "0.2", "0.3", "36.6", "1e22", "1e-7", "-7.7", "123456789"])
    publish(db, "t")
    db.execute("SET extra_float_digits = 1")
    for value, shown in db.execute(SHOWN).fetchall():
        low, high = shown.lower, shown.upper
        assert isinstance(low, Decimal)
        assert Fraction(low) <= Fraction(value) <= Fraction(high)


def test_whole_numbers_keep_their_looks_as_floats(db: Connection) -> None:
    make(db, "float8", ["20", "23.5"])
    publish(db, "t")
    assert {str(q) for (q,) in db.execute("SELECT q::text FROM mdistinct_published.t")} <= {
        "[20,20]",
        "[23.5,23.5]",
        "[20,23.5]",
    }


def test_the_greatest_value_of_a_discrete_type_leaves_the_range_open(db: Connection) -> None:
    make(db, "int4", ["2147483647", "2147483647"])
    publish(db, "t")
    assert one(db, "SELECT bool_and(upper_inf(q)) FROM mdistinct_published.t")


def test_domains_and_enums(db: Connection) -> None:
    db.execute("CREATE DOMAIN public.age AS int CHECK (VALUE BETWEEN 0 AND 150)")
    db.execute("CREATE DOMAIN public.old_age AS public.age CHECK (VALUE > 60)")
    db.execute("CREATE TYPE public.mood AS ENUM ('sad', 'ok', 'glad')")
    db.execute("CREATE TABLE public.t (id int, a public.old_age, b public.mood, s public.mood)")
    db.execute("INSERT INTO public.t VALUES (1, 61, 'sad', 'ok'), (2, 99, 'ok', 'glad')")
    db.execute("SELECT mdistinct_register('t', 'public.t', 'id', '{a,b}', 's', 2)")
    db.execute("SELECT mdistinct_allow_update('t', 'ok', '{ok,glad}')")
    publish(db, "t")
    rows = db.execute(
        "SELECT a::text, b, s::text, pg_typeof(s)::text FROM mdistinct_published.t ORDER BY 3 DESC"
    ).fetchall()
    assert rows == [
        ("[61,100)", ["ok", "sad"], "ok", "mood"),
        ("[61,100)", ["ok", "sad"], "glad", "mood"),
    ]


@pytest.mark.parametrize(
    ("kind", "values", "published"),
    [
        ("text", ["a", "b"], "text"),
        ("varchar(5)", ["a", "b"], "character varying"),
        ("char(5)", ["a", "b"], "character"),
        ("integer", ["1", "2"], "integer"),
        ("numeric(5, 2)", ["1.50", "2.00"], "numeric"),
        ("float8", ["0.1", "-0"], "double precision"),
        ("boolean", ["true", "false"], "boolean"),
        ("date", ["2024-02-29", "infinity"], "date"),
        ("timestamptz", ["2024-02-29 10:00+02", "2024-03-01"], "timestamp with time zone"),
        ("bytea", ["\\x00ff", "\\x01"], "bytea"),
        ("integer[]", ["{1,2}", "{3}"], "integer[]"),
        ("jsonb", ['{"a": 1}', '{"a":2}'], "jsonb"),
        ("int4range", ["[1,3)", "[1,4]"], "int4range"),
        ("uuid", ["0" * 31 + "1", "0" * 31 + "2"], "uuid"),
        ("bit(3)", ["101", "110"], "bit"),
    ],
)
def test_sensitive_values_of_any_type(
    db: Connection, kind: str, values: list[str], published: str
) -> None:
    db.execute(f"CREATE TABLE public.t (id int, q int, s {kind})")
    for i in range(6):
        db.execute("INSERT INTO public.t VALUES (%s, %s, %s)", (i, i, values[i % 2]))
    db.execute("SELECT mdistinct_register('t', 'public.t', 'id', '{q}', 's', 2)")
    for value in values:
        db.execute("SELECT mdistinct_allow_update('t', %s, %s)", (value, values))
    assert publish(db, "t")["records"] == 6
    assert one(db, "SELECT pg_typeof(s)::text FROM mdistinct_published.t") == published
    strange = "SELECT count(*) FROM mdistinct_published.t AS p WHERE NOT EXISTS"
    assert one(db, f"{strange} (SELECT FROM public.t WHERE t.s = p.s)") == 0


def test_composite_sensitive_values_are_published_as_text(db: Connection) -> None:
    db.execute("CREATE TYPE public.pair AS (a int, b text)")
    db.execute("CREATE TABLE public.t (id int, q int, s public.pair)")
    db.execute("INSERT INTO public.t VALUES (1, 1, '(1,x)'), (2, 2, '(2,y z)')")
    db.execute("SELECT mdistinct_register('t', 'public.t', 'id', '{q}', 's', 2)")
    db.execute("SELECT mdistinct_allow_update('t', '(1,x)', %s)", (["(1,x)", '(2,"y z")'],))
    publish(db, "t")
    assert {s for (s,) in db.execute("SELECT s FROM mdistinct_published.t")} == {
        "(1,x)",
        '(2,"y z")',
    }


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("bigint", ["9223372036854775807", "1"]),
        ("uuid", ["00000000-0000-0000-0000-000000000001", "00000000-0000-0000-0000-000000000002"]),
        ("bytea", ["\\x00", "\\x0001"]),
        ("timestamptz", ["2024-01-01 00:00:00+00", "2024-01-01 00:00:01+00"]),
        ("numeric", ["1.5", "2"]),
        ("jsonb", ['{"a": 1}', "[]"]),
        ("integer[]", ["{1}", "{}"]),
        ("text", ["", "ä'\"\\"]),
        ("float8", ["0.1", "1e+300"]),
        ("inet", ["10.0.0.0/8", "10.0.0.1/32"]),
    ],
)
def test_identifiers_of_any_type(db: Connection, kind: str, values: list[str]) -> None:
    db.execute(f"CREATE TABLE public.t (id {kind}, q int, s text)")
    for i, value in enumerate(values):
        db.execute("INSERT INTO public.t VALUES (%s, %s, %s)", (value, i, "ab"[i]))
    db.execute("SELECT mdistinct_register('t', 'public.t', 'id', '{q}', 's', 2)")
    db.execute("SELECT mdistinct_allow_update('t', 'a', '{a,b}')")
    db.execute("SET timezone = 'Asia/Kolkata'; SET bytea_output = 'escape'; SET datestyle = 'SQL'")
    publish(db, "t")
    db.execute("RESET timezone; RESET bytea_output; RESET datestyle; SET extra_float_digits = -3")
    publish(db, "t")
    members = db.execute("SELECT record_id, count(*) FROM mdistinct.t_membership GROUP BY 1")
    assert dict(members.fetchall()) == dict.fromkeys(values, 2)


def test_a_table_of_many_columns(db: Connection) -> None:
    columns = [f"c{i}" for i in range(30)]
    declared = sql.SQL(", ").join(sql.SQL("{} int").format(sql.Identifier(c)) for c in columns)
    db.execute(sql.SQL("CREATE TABLE public.t (id int, {}, s int)").format(declared))
    values = ", ".join(f"(i * {k + 3}) % 17" for k in range(30))
    db.execute(f"INSERT INTO public.t SELECT i, {values}, i % 3 FROM generate_series(1, 50) AS i")
    db.execute("SELECT mdistinct_register('t', 'public.t', 'id', %s, 's', 2)", (columns,))
    for value in "012":
        db.execute("SELECT mdistinct_allow_update('t', %s, '{0,1,2}')", (value,))
    assert publish(db, "t")["records"] == 50


@pytest.mark.parametrize("variant", ["m-distinct", "m-invariance"])
def test_texts_of_a_database_that_is_not_in_utf_8(
    new_database: Callable[..., str], variant: str
) -> None:
    dsn = new_database(options="ENCODING 'LATIN1' LOCALE 'C'")
    install(dsn, on_message=lambda _: None)
    with psycopg.connect(dsn, autocommit=True) as db:
        db.execute("CREATE TABLE public.t (id text, q text, s text)")
        for i in range(8):
            db.execute("INSERT INTO public.t VALUES (%s, %s, %s)", (f"ä{i}", "éè"[i % 2], i))
        register = "SELECT mdistinct_register('t', 'public.t', 'id', '{q}', 's', 2, %s)"
        db.execute(register, (variant,))
        if variant == "m-distinct":
            db.execute("SELECT mdistinct_allow_update('t', s, ARRAY[s]) FROM public.t")
        publish(db, "t")
        publish(db, "t")
        assert one(db, INSIDE.format("t.q = ANY (p.q)")) == 16
        assert {f"ä{i}" for i in range(8)} == {
            record_id for (record_id,) in db.execute("SELECT record_id FROM mdistinct_risk('t')")
        }
