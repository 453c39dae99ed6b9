"""mdistinct_index."""

from __future__ import annotations

import pytest

from tests.fix_database import acting_as
from tests.integration.cases import Connection, one, publish, refused
from tests.integration.estimate_cases import estimate, make_clinic


def indexes(db: Connection) -> list[tuple[str, str]]:
    return db.execute(
        "SELECT c.relname::text, a.amname::text FROM pg_index AS i"
        " JOIN pg_class AS c ON c.oid = i.indrelid JOIN pg_class AS x ON x.oid = i.indexrelid"
        " JOIN pg_am AS a ON a.oid = x.relam WHERE a.amname <> 'btree' ORDER BY 1, 2"
    ).fetchall()


def test_indexes_on_demand(db: Connection) -> None:
    make_clinic(db, 300, {"age": "integer", "weight": "double precision", "town": "text"})
    publish(db, "clinic")
    before = estimate(db, {"age": [30, 31], "town": ["Ayr"]}, "weight")
    with acting_as(db, "mdistinct_publisher"):
        assert one(db, "SELECT mdistinct_index('clinic')") == 1
        assert one(db, "SELECT mdistinct_index('clinic')") == 0
    assert indexes(db) == [("clinic_g1", "gin"), ("clinic_g1", "gist")]
    db.execute("SET enable_seqscan = off")
    plan = "\n".join(
        row[0]
        for row in db.execute(
            "EXPLAIN SELECT * FROM mdistinct_data.clinic_groups"
            " WHERE release = 1 AND q1 && int4range(30, 32)"
        )
    )
    assert "clinic_g1_q1_q2_idx" in plan
    after = estimate(db, {"age": [30, 31], "town": ["Ayr"]}, "weight")
    assert after == pytest.approx(before)
    # Publishing does not wait for indexes: a new release has none.
    publish(db, "clinic")
    assert len(indexes(db)) == 2
    assert one(db, "SELECT mdistinct_index('clinic')") == 1
    assert len(indexes(db)) == 4


def test_indexes_of_an_unknown_dataset(db: Connection) -> None:
    with refused(db, "42704", "nowhere"):
        db.execute("SELECT mdistinct_index('nowhere')")
