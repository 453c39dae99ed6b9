"""mdistinct_register and mdistinct_drop."""

from __future__ import annotations

import psycopg
import pytest
from psycopg import sql

from tests.fix_database import acting_as
from tests.integration.cases import (
    Connection,
    allow_all,
    make_table,
    make_ward,
    one,
    publish,
    refused,
    state,
)

REGISTER = "SELECT mdistinct_register(%s, %s, %s, %s, %s, %s)"


def test_registering_returns_the_row_of_the_dataset(db: Connection) -> None:
    make_table(db, age="integer", town="text")
    cursor = db.execute(
        "SELECT * FROM mdistinct_register('ward', 'ward', 'id', '{age,town}', 'disease', 3,"
        " variant => 'm-distinct*', max_risk => 0.5)"
    )
    assert cursor.description is not None
    names = [column.name for column in cursor.description]
    row = dict(zip(names, cursor.fetchall()[0], strict=True))
    assert row["dataset"] == "ward"
    assert (row["source_schema"], row["source_table"]) == ("public", "ward")
    assert (row["qi_columns"], row["qi_types"]) == (["age", "town"], ["integer", "text"])
    assert (row["m"], row["variant"], row["max_risk"]) == (3, "m-distinct*", 0.5)
    assert (row["last_release"], row["registered_by"]) == (0, one(db, "SELECT current_user::text"))


def test_the_relations_of_the_contract_exist_before_anything_is_published(db: Connection) -> None:
    make_ward(db)
    for name, columns in {
        "mdistinct_published.ward": ["release", "gid", "age", "disease"],
        "mdistinct_published.ward_counterfeits": ["release", "gid", "count"],
        "mdistinct.ward_membership": ["release", "record_id", "gid"],
        "mdistinct.updates": ["dataset", "old_value", "new_value", "probability"],
        "mdistinct_published.releases": [
            "dataset",
            "release",
            "published_at",
            "m",
            "variant",
            "rows",
            "groups",
            "counterfeits",
        ],
    }.items():
        cursor = db.execute(sql.SQL("SELECT * FROM {}").format(sql.Identifier(*name.split("."))))
        assert cursor.description is not None
        assert [column.name for column in cursor.description] == columns


REFUSED: list[tuple[dict[str, object], str, str]] = [
    ({"m": 1}, "22023", "m is 1"),
    ({"m": 0}, "22023", "m is 0"),
    ({"m": None}, "22004", '"m"'),
    ({"dataset": None}, "22004", '"dataset"'),
    ({"source": None}, "22004", '"source"'),
    ({"id": None}, "22004", '"id_column"'),
    ({"qi": None}, "22004", '"qi_columns"'),
    ({"sensitive": None}, "22004", '"sensitive_column"'),
    ({"qi": []}, "22023", "qi_columns"),
    ({"qi": ["age", None]}, "22023", "qi_columns"),
    ({"qi": [["age"], ["town"]]}, "22023", "qi_columns"),
    ({"qi": ["nope"]}, "42703", '"nope"'),
    ({"id": "nope"}, "42703", '"nope"'),
    ({"sensitive": "nope"}, "42703", '"nope"'),
    ({"id": "ctid"}, "42703", '"ctid"'),
    ({"qi": ["age", "age"]}, "42701", '"age"'),
    ({"qi": ["age", "id"]}, "42701", '"id"'),
    ({"qi": ["age", "disease"]}, "42701", '"disease"'),
    ({"sensitive": "id"}, "42701", '"id"'),
    ({"qi": ["gid"]}, "22023", '"gid"'),
    ({"sensitive": "release"}, "22023", '"release"'),
    ({"dataset": "x" * 51}, "22023", "51 bytes"),
    ({"dataset": "ä" * 26}, "22023", "52 bytes"),
    ({"dataset": ""}, "22023", "0 bytes"),
    ({"dataset": "releases"}, "42P07", "mdistinct_published.releases"),
    ({"source": "ward_pkey"}, "42809", "ward_pkey"),
    ({"source": "4000000000"}, "42P01", "4000000000"),
]


def test_what_registration_refuses(db: Connection) -> None:
    make_table(db, age="integer", town="text", gid="integer", release="text")
    good = {
        "dataset": "ward",
        "source": "ward",
        "id": "id",
        "qi": ["age"],
        "sensitive": "disease",
        "m": 2,
    }
    for change, sqlstate, word in REFUSED:
        with refused(db, sqlstate, word):
            db.execute(REGISTER, tuple((good | change).values()))


def test_options_that_registration_refuses(db: Connection) -> None:
    make_table(db)
    for option, value, word in (
        ("variant", "k-anonymity", "k-anonymity"),
        ("max_risk", 0, "max_risk is 0"),
        ("max_risk", 1.5, "max_risk is 1.5"),
        ("max_risk", float("nan"), "max_risk is nan"),
    ):
        statement = sql.SQL(
            "SELECT mdistinct_register('ward', 'ward', 'id', '{{age}}', 'disease', 2, {} => %s)"
        ).format(sql.Identifier(option))
        with refused(db, "22023", word):
            db.execute(statement, (value,))


def test_a_dataset_is_registered_once(db: Connection) -> None:
    make_ward(db)
    with refused(db, "42710", '"ward"'):
        db.execute(REGISTER, ("ward", "ward", "id", ["age"], "disease", 2))


def test_datasets_whose_relations_would_collide(db: Connection) -> None:
    make_table(db)
    for first, second in (("x", "x_counterfeits"), ("y_counterfeits", "y")):
        db.execute(REGISTER, (first, "ward", "id", ["age"], "disease", 2))
        with refused(db, "42P07", "_counterfeits"):
            db.execute(REGISTER, (second, "ward", "id", ["age"], "disease", 2))


def test_a_relation_of_somebody_else_is_a_collision(db: Connection) -> None:
    make_table(db)
    db.execute("CREATE TABLE mdistinct.ward_membership ()")
    with refused(db, "42P07", "mdistinct.ward_membership"):
        db.execute(REGISTER, ("ward", "ward", "id", ["age"], "disease", 2))


def test_an_admin_registers_what_he_can_read(db: Connection) -> None:
    make_table(db)
    db.execute("GRANT SELECT ON ward TO mdistinct_admin")
    with acting_as(db, "mdistinct_admin"):
        db.execute(REGISTER, ("ward", "ward", "id", ["age"], "disease", 2))
        allow_all(db, "ward")
    with acting_as(db, "mdistinct_publisher"):
        assert publish(db)["records"] == 12
    # The functions that read the source belong to the admin, who could not give them away.
    owner = "SELECT DISTINCT proowner::regrole::text FROM pg_proc WHERE proname = 'ward'"
    assert one(db, owner) == "mdistinct_admin"
    with acting_as(db, "mdistinct_admin"):
        db.execute("SELECT mdistinct_drop('ward')")
    assert one(db, "SELECT count(*) FROM pg_proc WHERE proname = 'ward'") == 0


def test_an_admin_cannot_register_what_he_cannot_read(db: Connection) -> None:
    make_table(db)
    db.execute("GRANT SELECT (id, age) ON ward TO mdistinct_admin")
    with (
        acting_as(db, "mdistinct_admin"),
        pytest.raises(psycopg.errors.InsufficientPrivilege) as caught,
    ):
        db.execute(REGISTER, ("ward", "ward", "id", ["age"], "disease", 2))
    assert caught.value.diag.message_primary == "pg_mdistinct: you may not read public.ward"
    assert caught.value.diag.message_hint
    assert state(db)["rows"][("mdistinct", "datasets")] == []


def test_the_source_is_read_with_the_rights_of_its_owner(db: Connection) -> None:
    name = f"owner_{one(db, 'SELECT current_database()::text')}"
    owner = sql.Identifier(name)
    db.execute(sql.SQL("CREATE ROLE {}").format(owner))
    try:
        make_table(db)
        db.execute(sql.SQL("ALTER TABLE ward OWNER TO {}").format(owner))
        db.execute(REGISTER, ("ward", "ward", "id", ["age"], "disease", 2))
        allow_all(db, "ward")
        found = "SELECT DISTINCT proowner::regrole::text FROM pg_proc WHERE proname = 'ward'"
        assert one(db, found) == name
        with acting_as(db, "mdistinct_publisher"):
            publish(db)
        db.execute(sql.SQL("REVOKE ALL ON ward FROM {}").format(owner))
        with refused(db, "42501", "public.ward"):
            publish(db)
        db.execute(sql.SQL("GRANT SELECT ON ward TO {}").format(owner))
        publish(db)
    finally:
        db.execute("SELECT mdistinct_drop('ward')")
        db.execute(sql.SQL("DROP OWNED BY {}; DROP ROLE {}").format(owner, owner))


def test_dropping_leaves_nothing_but_the_source(db: Connection) -> None:
    make_table(db)
    before = state(db)
    source = db.execute("TABLE ward").fetchall()
    db.execute(REGISTER, ("ward", "ward", "id", ["age"], "disease", 2))
    allow_all(db, "ward")
    publish(db)
    publish(db)
    db.execute("SELECT mdistinct_drop('ward')")
    assert state(db) == before
    assert db.execute("TABLE ward").fetchall() == source


def test_dropping_does_not_need_the_source(db: Connection) -> None:
    make_ward(db)
    db.execute("DROP TABLE ward")
    db.execute("SELECT mdistinct_drop('ward')")
    assert one(db, "SELECT count(*) FROM mdistinct.datasets") == 0


def test_a_dropped_dataset_can_be_registered_again(db: Connection) -> None:
    make_ward(db)
    publish(db)
    db.execute("SELECT mdistinct_drop('ward')")
    db.execute(REGISTER, ("ward", "ward", "id", ["age"], "disease", 2))
    allow_all(db, "ward")
    assert publish(db)["release"] == 1


def test_dropping_refuses_to_break_views_of_others(db: Connection) -> None:
    make_ward(db)
    db.execute("CREATE VIEW mine AS SELECT * FROM mdistinct_published.ward")
    before = state(db)
    with pytest.raises(psycopg.errors.DependentObjectsStillExist):
        db.execute("SELECT mdistinct_drop('ward')")
    assert state(db) == before
