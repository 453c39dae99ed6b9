"""Any legal identifier as dataset, schema, table or column name."""

from __future__ import annotations

import pytest
from psycopg import sql

from tests.integration.cases import Connection, one, publish

NAMES = (
    "Upper Case",
    'with "quotes"',
    "it's",
    "semi;colon -- /* */",
    "back\\slash %s {} $1",
    "größe 漢字 🙂",
    "select",
    " leading and trailing ",
    "1st",
    "a.b",
    "record_id",
    "q1",
    "sensitive",
    "value",
    "label",
    "first",
    "seq",
    "candidates",
    "x" * 50,
    "ö" * 25,
)


@pytest.mark.parametrize("name", NAMES)
def test_a_name_in_every_place(db: Connection, name: str) -> None:
    column = [f"{name[:20]} {place}" for place in ("id", "qi", "set", "sens")]
    if len(name.encode()) < 20:
        column[1] = name
    schema, table = sql.Identifier(f"s {name}"), sql.Identifier(f"s {name}", name)
    db.execute(sql.SQL("CREATE SCHEMA {}").format(schema))
    db.execute(
        sql.SQL("CREATE TABLE {} ({} text, {} int, {} text, {} text)").format(
            table, *(sql.Identifier(part) for part in column)
        )
    )
    for i in range(1, 7):
        row = (f"{name}{i}", i, f"{i}{name}", f"{name}{i % 2}")
        # Literals, for a % in the name would be taken for a placeholder.
        values = sql.SQL(", ").join(map(sql.Literal, row))
        db.execute(sql.SQL("INSERT INTO {} VALUES ({})").format(table, values))
    relation = one(db, "SELECT format('%%I.%%I', %s::text, %s::text)", (f"s {name}", name))
    db.execute(
        "SELECT mdistinct_register(%s, %s, %s, %s, %s, 2)",
        (name, relation, column[0], column[1:3], column[3]),
    )
    diseases = [f"{name}0", f"{name}1"]
    for disease in diseases:
        db.execute("SELECT mdistinct_allow_update(%s, %s, %s)", (name, disease, diseases))
    publish(db, name)
    db.execute(sql.SQL("DELETE FROM {} WHERE {} = 1").format(table, sql.Identifier(column[1])))
    assert publish(db, name)["records"] == 5
    cursor = db.execute(
        sql.SQL("SELECT * FROM {}").format(sql.Identifier("mdistinct_published", name))
    )
    assert cursor.description is not None
    shown = [found.name for found in cursor.description]
    assert shown == ["release", "gid", *column[1:]]
    rows = cursor.fetchall()
    assert {row[4] for row in rows} == set(diseases)
    assert {item for row in rows for item in row[3]} == {f"{i}{name}" for i in range(1, 7)}
    members = sql.Identifier("mdistinct", f"{name}_membership")
    record = db.execute(sql.SQL("SELECT min(record_id) FROM {}").format(members)).fetchall()
    assert record == [(f"{name}1",)]
    assert db.execute("SELECT * FROM mdistinct_verify(%s)", (name,)).fetchall() == []
    db.execute("SELECT mdistinct_drop(%s)", (name,))
    assert one(db, "SELECT count(*) FROM pg_tables WHERE schemaname = 'mdistinct_data'") == 0


def test_names_that_differ_only_in_case_or_suffix_live_side_by_side(db: Connection) -> None:
    db.execute(
        "CREATE TABLE public.t AS SELECT i AS id, i AS q, i % 2 AS s FROM generate_series(1, 4) i"
    )
    names = ("a", "A", "a_", "_a", "a_v1", "a_groups", "a_membership", "datasets", "updates")
    for name in names:
        db.execute("SELECT mdistinct_register(%s, 'public.t', 'id', '{q}', 's', 2)", (name,))
        db.execute("SELECT mdistinct_allow_update(%s, '0', '{0,1}')", (name,))
        publish(db, name)
    assert one(db, "SELECT count(DISTINCT dataset) FROM mdistinct_published.releases") == len(names)
    for name in names:
        db.execute("SELECT mdistinct_drop(%s)", (name,))
