"""mdistinct_alter: what a dataset was registered with changes, or is refused with the reason."""

from __future__ import annotations

import psycopg
import pytest
from psycopg import sql

from tests.fix_database import acting_as
from tests.integration.cases import (
    DISEASES,
    Connection,
    make_table,
    make_ward,
    one,
    publish,
    refused,
)


def alter(db: Connection, options: str) -> None:
    # The options are the test's own words.
    db.execute(f"SELECT mdistinct_alter('ward', {options})")


def violations(db: Connection) -> int:
    count: int = one(db, "SELECT count(*) FROM mdistinct_verify('ward')")
    return count


def rows_by_group(db: Connection, release: int) -> set[int]:
    rows = db.execute(
        "SELECT count(*) FROM mdistinct_published.ward WHERE release = %s GROUP BY gid", (release,)
    )
    return {row[0] for row in rows}


# m


def test_a_smaller_m_holds_for_new_records_and_old_ones_keep_theirs(db: Connection) -> None:
    make_ward(db, records=12, m=3)
    publish(db)
    alter(db, "m => 2")
    db.execute("INSERT INTO ward SELECT i, i, 'Flu' FROM generate_series(101, 112) AS i")
    publish(db)
    assert one(db, "SELECT m FROM mdistinct_published.releases WHERE release = 2") == 2
    fewest = (
        "SELECT min(cardinality(g.candidates)) FROM mdistinct.ward_membership AS w"
        " JOIN mdistinct_data.ward_groups AS g USING (release, gid)"
        " WHERE w.release = 2 AND w.record_id::int %s 100"
    )
    assert one(db, fewest.replace("%s", "<")) >= 3
    assert one(db, fewest.replace("%s", ">")) >= 2
    assert violations(db) == 0


def test_a_larger_m_is_refused_where_somebody_was_published_among_fewer(db: Connection) -> None:
    make_ward(db, records=12, m=2)
    publish(db)
    db.execute("DELETE FROM ward WHERE id <= 6")
    publish(db)
    with refused(db, "55000", "m = 3", "12 records"):
        alter(db, "m => 3")
    # Those who are away may come back.
    db.execute("TRUNCATE ward")
    publish(db)
    with refused(db, "55000", "m = 3", "12 records"):
        alter(db, "m => 3")


def test_a_larger_m_is_accepted_where_everybody_has_company_enough(db: Connection) -> None:
    make_ward(db, records=8, m=3)
    alter(db, "m => 4")
    publish(db)
    alter(db, "m => 2")
    publish(db)
    alter(db, "m => 4")
    publish(db)
    assert rows_by_group(db, 3) == {4}
    with refused(db, "55000", "m = 5"):
        alter(db, "m => 5")
    assert violations(db) == 0


# Variant and bound


def test_the_variant_changes_before_the_first_release_only(db: Connection) -> None:
    make_table(db)
    db.execute("SELECT mdistinct_register('ward', 'ward', 'id', '{age}', 'disease', 2)")
    for value in DISEASES:
        db.execute("SELECT mdistinct_allow_update('ward', %s, %s)", (value, [value]))
    alter(db, "variant => 'm-distinct*'")
    publish(db)
    assert one(db, "SELECT variant FROM mdistinct_published.releases") == "m-distinct*"
    with refused(db, "55000", "m-distinct*", "stays"):
        alter(db, "variant => 'm-distinct'")
    with refused(db, "22023", "no variant"):
        alter(db, "variant => 'k-anonymous'")


def test_a_bound_is_set_lowered_and_lifted_as_far_as_the_history_keeps_it(db: Connection) -> None:
    make_ward(db, m=2)
    publish(db)
    with refused(db, "MD007", "12 versions", "0.4"):
        alter(db, "max_risk => 0.4")
    alter(db, "max_risk => 0.5")
    assert publish(db)["max_risk"] == pytest.approx(0.5)
    # Nothing is above 1: the bound is lifted.
    alter(db, "max_risk => 1")
    for nonsense in ("0", "1.5", "'NaN'"):
        with refused(db, "22023", "max_risk"):
            alter(db, f"max_risk => {nonsense}")


# The source


@pytest.mark.parametrize(
    ("change", "source"),
    [
        ("ALTER TABLE ward RENAME TO renamed", "renamed"),
        ("CREATE SCHEMA moved; ALTER TABLE ward SET SCHEMA moved", "moved.ward"),
        (
            "ALTER TABLE ward ALTER age TYPE text, ALTER id TYPE bigint;"
            "CREATE VIEW as_before AS SELECT id::int, age::int, disease FROM ward",
            "as_before",
        ),
        (
            "CREATE TABLE copied (LIKE ward); INSERT INTO copied TABLE ward; DROP TABLE ward",
            "copied",
        ),
    ],
)
def test_a_renamed_moved_retyped_or_replaced_source(
    db: Connection, change: str, source: str
) -> None:
    make_ward(db)
    publish(db)
    db.execute(change)
    with pytest.raises(psycopg.Error) as caught:
        publish(db)
    assert caught.value.sqlstate in ("42P01", "MD004")
    assert "mdistinct_alter" in (caught.value.diag.message_hint or "")
    alter(db, f"source => '{source}'")
    assert publish(db)["records"] == 12
    assert one(db, "SELECT count(DISTINCT record_id) FROM mdistinct.ward_membership") == 12
    assert violations(db) == 0


def test_a_source_with_other_columns_is_refused(db: Connection) -> None:
    make_ward(db)
    publish(db)
    db.execute("CREATE TABLE other (id integer, age text, disease text)")
    with refused(db, "MD004", '"age"', "integer", "text"):
        alter(db, "source => 'other'")
    db.execute("CREATE TABLE less (id integer, disease text)")
    with refused(db, "MD004", '"age"', "is gone"):
        alter(db, "source => 'less'")
    assert publish(db)["release"] == 2


def test_a_source_that_the_caller_may_not_read_is_refused(db: Connection) -> None:
    make_ward(db)
    db.execute("CREATE TABLE secret AS TABLE ward")
    with refused(db, "42501", "may not read"), acting_as(db, "mdistinct_admin"):
        alter(db, "source => 'secret'")
    with refused(db, "42501", "may not read"), acting_as(db, "mdistinct_admin"):
        alter(db, "qi_columns => '{age}'")
    with acting_as(db, "mdistinct_publisher"), pytest.raises(psycopg.errors.InsufficientPrivilege):
        alter(db, "m => 2")
    assert publish(db)["release"] == 1


# QI columns


@pytest.mark.parametrize("kind", ["integer", "numeric", "text", "date"])
def test_a_new_qi_column(db: Connection, kind: str) -> None:
    make_ward(db)
    publish(db)
    before = db.execute("SELECT gid, age, disease FROM mdistinct_published.ward").fetchall()
    db.execute(sql.SQL("ALTER TABLE ward ADD COLUMN more {}").format(sql.SQL(kind)))
    value = {"date": "date '2020-01-01' + id", "text": "'t' || id % 3"}.get(kind, "id")
    db.execute(f"UPDATE ward SET more = {value}")
    alter(db, "qi_columns => '{age,more}'")
    # The column has one value at first, which must not be taken from releases without it.
    db.execute("DELETE FROM ward WHERE id > 1")
    publish(db)
    db.execute("INSERT INTO ward SELECT i, i, 'Flu' FROM generate_series(2, 9) AS i")
    db.execute(f"UPDATE ward SET more = {value}, disease = 'Flu'")
    publish(db)
    columns = db.execute("SELECT * FROM mdistinct_published.ward").description
    assert [c.name for c in columns or ()] == ["release", "gid", "age", "more", "disease"]
    shown = "SELECT count(*) FILTER (WHERE more IS NULL) FROM mdistinct_published.ward"
    assert one(db, f"{shown} WHERE release = 1") == len(before)
    assert one(db, f"{shown} WHERE release > 1") == 0
    old = "SELECT gid, age, disease FROM mdistinct_published.ward WHERE release = 1"
    assert sorted(db.execute(old), key=str) == sorted(before, key=str)
    assert violations(db) == 0
    with acting_as(db, "mdistinct_reader"):
        assert one(db, "SELECT count(*) FROM mdistinct_published.ward_counterfeits") > 0


def test_qi_columns_that_cannot_be_had(db: Connection) -> None:
    make_ward(db, age="integer", zip="integer")
    publish(db)
    for columns, sqlstate, word in (
        ("{age}", "22023", '"age", "zip"'),
        ("{zip,age}", "22023", '"age", "zip"'),
        ("{age,zip,shoe}", "42703", '"shoe"'),
        ("{age,zip,disease}", "42701", '"disease"'),
        ("{age,zip,NULL}", "22023", "NULL"),
        ("{}", "22023", "empty"),
    ):
        with refused(db, sqlstate, word):
            alter(db, f"qi_columns => '{columns}'")
    db.execute("ALTER TABLE ward ADD COLUMN shoe integer NOT NULL DEFAULT 40")
    db.execute("CREATE VIEW mine AS SELECT age FROM mdistinct_published.ward")
    with refused(db, "2BP01", "other views"):
        alter(db, "qi_columns => '{age,zip,shoe}'")


# All of them


def test_what_is_not_named_stays(db: Connection) -> None:
    make_ward(db)
    row = "SELECT d::text FROM mdistinct.datasets AS d"
    before = one(db, row)
    db.execute("SELECT mdistinct_alter('ward')")
    alter(db, "source => 'ward', qi_columns => '{age}', m => 2, variant => 'm-distinct'")
    assert one(db, row) == before
    with refused(db, "42704", '"nope"'):
        db.execute("SELECT mdistinct_alter('nope', m => 3)")
    with refused(db, "22004", '"dataset"'):
        db.execute("SELECT mdistinct_alter(NULL, m => 3)")
    with refused(db, "22023", "m is 1"):
        alter(db, "m => 1")


def test_a_running_publication_ends_as_it_began(db: Connection, dsn: str) -> None:
    make_ward(db, m=3)
    with psycopg.connect(dsn, autocommit=True) as other, db.transaction():
        publish(db)
        other.execute("SET lock_timeout = '200ms'")
        with pytest.raises(psycopg.errors.LockNotAvailable):
            alter(other, "m => 2")
    alter(db, "m => 2")
    publish(db)
    assert db.execute("SELECT m FROM mdistinct.releases ORDER BY release").fetchall() == [
        (3,),
        (2,),
    ]
