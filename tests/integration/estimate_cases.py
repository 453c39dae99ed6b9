"""A clinic with a column of every kind, and the question about it."""

from __future__ import annotations

import json
from datetime import date
from typing import Any

from psycopg.rows import dict_row

from tests.integration.cases import DISEASES, Connection, allow_all

ESTIMATE = "SELECT * FROM mdistinct_estimate(%s, %s, %s, %s)"
# Whole numbers, lines, and sets.
COLUMNS = {
    "age": "integer",
    "ward": "smallint",
    "number": "bigint",
    "income": "numeric(10,2)",
    "weight": "double precision",
    "born": "date",
    "came": "timestamp",
    "went": "timestamptz",
    "town": "text",
}
NUMBERS = ("age", "ward", "number", "income", "weight")
TOWNS = ("Ayr", "Bath", "Cork", "Deal")
EPOCH = date(2000, 1, 1)


def estimate(
    db: Connection,
    predicate: dict[str, Any] | None = None,
    measure: str | None = None,
    release: int | None = None,
    dataset: str = "clinic",
) -> dict[str, Any]:
    with db.cursor(row_factory=dict_row) as cursor:
        asked = (dataset, release, json.dumps(predicate or {}), measure)
        row = cursor.execute(ESTIMATE, asked).fetchone()
    assert row is not None
    return row


def make_clinic(db: Connection, records: int, columns: dict[str, str], m: int = 3) -> None:
    """A table of uniform random values, registered as a dataset in which all is possible."""
    values = {
        "integer": "18 + (random() * 60)::int",
        "smallint": "(random() * 9)::int",
        "bigint": "9007199254740993 + (random() * 50)::int",
        "numeric(10,2)": "(random() * 5000)::numeric(10,2)",
        "double precision": "40 + random() * 80",
        "date": "DATE '1990-01-01' + (random() * 9000)::int",
        "timestamp": "TIMESTAMP '2020-01-01' + random() * INTERVAL '300 days'",
        "timestamptz": "TIMESTAMPTZ '2021-01-01Z' + random() * INTERVAL '300 days'",
        "text": f"(ARRAY{list(TOWNS)!r})[1 + floor(random() * 4)]",
    }
    declared = ", ".join(f"{name} {kind}" for name, kind in columns.items())
    chosen = ", ".join(values[kind] for kind in columns.values())
    db.execute("SELECT setseed(0.25)")
    db.execute(f"CREATE TABLE clinic (id integer PRIMARY KEY, {declared}, disease text)")
    db.execute(
        f"INSERT INTO clinic SELECT i, {chosen}, (%s::text[])[1 + floor(random() * 4)]"
        " FROM generate_series(1, %s) AS i",
        (list(DISEASES), records),
    )
    db.execute(
        "SELECT mdistinct_register('clinic', 'clinic', 'id', %s, 'disease', %s)",
        (list(columns), m),
    )
    allow_all(db, "clinic")
