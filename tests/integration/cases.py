"""What the tests of the SQL interface share: a small ward, and a way to see a refusal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from psycopg import sql

Connection = psycopg.Connection[Any]

DISEASES = ("Flu", "Pneumonia", "Gastritis", "Dyspepsia")


def make_ward(db: Connection, records: int = 12, m: int = 2, **columns: str) -> None:
    """Make the table "ward" and the dataset of the same name, whose values may become each other.

    Columns by name with their type; each record's value is its number, cast to that type.
    """
    make_table(db, records, **columns)
    names = list(columns) or ["age"]
    db.execute("SELECT mdistinct_register('ward', 'ward', 'id', %s, 'disease', %s)", (names, m))
    allow_all(db, "ward")


def make_table(db: Connection, records: int = 12, **columns: str) -> None:
    """Make the table "ward" alone."""
    chosen = columns or {"age": "integer"}
    # The types are the test's own words.
    declared = ", ".join(f"{name} {kind}" for name, kind in chosen.items())
    db.execute(f"CREATE TABLE public.ward (id integer PRIMARY KEY, {declared}, disease text)")
    values = ", ".join(f"i::text::{kind}" for kind in chosen.values())
    db.execute(
        f"INSERT INTO public.ward SELECT i, {values}, (%s::text[])[1 + i %% 4]"
        " FROM generate_series(1, %s) AS i",
        (list(DISEASES), records),
    )


def allow_all(db: Connection, dataset: str, values: tuple[str, ...] = DISEASES) -> None:
    """Let every value become every other one."""
    for value in values:
        db.execute("SELECT mdistinct_allow_update(%s, %s, %s)", (dataset, value, list(values)))


def publish(db: Connection, dataset: str = "ward") -> dict[str, Any]:
    """Publish, and return the row by column name."""
    cursor = db.execute("SELECT * FROM mdistinct_publish(%s)", (dataset,))
    row = cursor.fetchone()
    assert row is not None
    assert cursor.description is not None
    return dict(zip((column.name for column in cursor.description), row, strict=True))


def one(db: Connection, query: str, parameters: tuple[Any, ...] = ()) -> Any:
    """Return the only value of a query."""
    row = db.execute(query, parameters).fetchone()
    assert row is not None
    return row[0]


def state(db: Connection) -> dict[str, Any]:
    """Return all that the plugin has in the database: relations, functions and rows."""
    relations = db.execute(
        "SELECT n.nspname, c.relname FROM pg_class AS c JOIN pg_namespace AS n"
        " ON n.oid = c.relnamespace WHERE n.nspname ~ '^(mdistinct|pg_temp)' ORDER BY 1, 2"
    ).fetchall()
    functions = db.execute(
        "SELECT p.oid::regprocedure::text FROM pg_proc AS p JOIN pg_namespace AS n"
        " ON n.oid = p.pronamespace WHERE n.nspname LIKE 'mdistinct%%' ORDER BY 1"
    ).fetchall()
    tables = db.execute(
        "SELECT schemaname, tablename FROM pg_tables WHERE schemaname LIKE 'mdistinct%%'"
        # The trail stays, whatever becomes of what it tells of.
        " AND tablename <> 'audit_trail'"
    ).fetchall()
    rows = {
        name: db.execute(
            sql.SQL("SELECT t::text FROM {} AS t ORDER BY 1").format(sql.Identifier(*name))
        ).fetchall()
        for name in tables
    }
    return {"relations": relations, "functions": functions, "rows": rows}


@contextmanager
def refused(db: Connection, sqlstate: str, *words: str) -> Iterator[None]:
    """Expect an error with this SQLSTATE and these words, a HINT, and that nothing was written."""
    before = state(db)
    with pytest.raises(psycopg.Error) as caught:
        yield
    error = caught.value
    message = error.diag.message_primary or ""
    assert error.sqlstate == sqlstate, f"{error.sqlstate}: {message}"
    assert message.startswith("pg_mdistinct: ")
    for word in words:
        assert word in message
    assert error.diag.message_hint
    assert state(db) == before
