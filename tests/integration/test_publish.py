"""mdistinct_publish, mdistinct_preview, the phase functions and mdistinct_verify."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import psycopg
import pytest

from tests.fix_database import acting_as
from tests.integration.cases import (
    DISEASES,
    Connection,
    make_ward,
    one,
    publish,
    refused,
    state,
)


@pytest.fixture
def other(dsn: str) -> Iterator[Connection]:
    """A second session."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        yield connection


def test_a_publication_returns_its_figures(db: Connection) -> None:
    make_ward(db, records=13)
    row = publish(db)
    assert list(row) == [
        "dataset",
        "release",
        "records",
        "groups",
        "counterfeits",
        "withheld",
        "ncp",
        "max_risk",
        "seconds",
    ]
    assert (row["dataset"], row["release"], row["records"], row["withheld"]) == ("ward", 1, 13, 0)
    assert 0 < row["ncp"] < 1
    assert row["seconds"] > 0
    rows = "SELECT count(*) FROM mdistinct_published.ward"
    assert one(db, rows) == row["records"] + row["counterfeits"]
    assert one(db, "SELECT count(DISTINCT gid) FROM mdistinct_published.ward") == row["groups"]
    assert one(db, "SELECT count(*) FROM mdistinct.ward_membership") == 13
    listed = db.execute(
        "SELECT dataset, release, m, variant, rows, groups, counterfeits"
        " FROM mdistinct_published.releases"
    ).fetchall()
    counts = (row["records"] + row["counterfeits"], row["groups"], row["counterfeits"])
    assert listed == [("ward", 1, 2, "m-distinct", *counts)]


def test_ncp_is_what_the_contract_says(db: Connection) -> None:
    make_ward(db, records=14, age="integer", town="text")
    row = publish(db)
    ncp = one(
        db,
        """
        SELECT avg((width + (towns - 1) / 13.0) / 2)
        FROM mdistinct.ward_membership JOIN (
            SELECT DISTINCT release, gid, (upper(age) - 1 - lower(age)) / 13.0 AS width,
                cardinality(town) AS towns
            FROM mdistinct_published.ward
        ) AS groups USING (release, gid)
        """,
    )
    assert row["ncp"] == pytest.approx(float(ncp))


def test_records_come_change_leave_and_return(db: Connection) -> None:
    make_ward(db, records=24)
    publish(db)
    db.execute("DELETE FROM public.ward WHERE id <= 8")
    db.execute("UPDATE public.ward SET disease = 'Flu', age = age + 50 WHERE id BETWEEN 9 AND 11")
    publish(db)
    publish(db)
    db.execute("INSERT INTO public.ward SELECT i, 90 + i, 'Gastritis' FROM generate_series(1, 4) i")
    db.execute("INSERT INTO public.ward VALUES (100, 30, 'Flu'), (101, 31, 'Dyspepsia')")
    row = publish(db)
    assert (row["release"], row["records"]) == (4, 22)
    # Who is away: the rest of the first eight, with the version that was last published.
    absent = db.execute(
        "SELECT record_id, release FROM mdistinct_data.ward_absent ORDER BY record_id"
    ).fetchall()
    assert absent == [("5", 1), ("6", 1), ("7", 1), ("8", 1)]
    assert db.execute("SELECT * FROM mdistinct_verify('ward')").fetchall() == []


def test_every_group_shows_m_different_values_and_the_records_own(db: Connection) -> None:
    make_ward(db, records=30, m=3)
    publish(db)
    least = "SELECT min(n) FROM (SELECT count(DISTINCT disease) AS n FROM mdistinct_published.ward"
    assert one(db, least + " GROUP BY release, gid) AS g") >= 3
    hidden = one(
        db,
        """
        SELECT count(*) FROM mdistinct.ward_membership AS m JOIN public.ward AS w
            ON w.id::text = m.record_id
        WHERE NOT EXISTS (SELECT FROM mdistinct_published.ward AS p WHERE p.gid = m.gid
            AND p.disease = w.disease AND w.age <@ p.age)
        """,
    )
    assert hidden == 0


def test_an_empty_source(db: Connection) -> None:
    make_ward(db, records=0)
    row = publish(db)
    assert (row["records"], row["groups"], row["counterfeits"], row["ncp"]) == (0, 0, 0, 0)
    db.execute("INSERT INTO public.ward VALUES (1, 30, 'Flu'), (2, 40, 'Gastritis')")
    assert publish(db)["records"] == 2
    db.execute("TRUNCATE public.ward")
    assert publish(db)["records"] == 0
    assert one(db, "SELECT max(release) FROM mdistinct_published.releases") == 3


def test_a_single_record_is_hidden_among_counterfeits(db: Connection) -> None:
    make_ward(db, records=1, m=3)
    row = publish(db)
    assert (row["records"], row["groups"], row["counterfeits"]) == (1, 1, 2)
    assert db.execute("TABLE mdistinct_published.ward_counterfeits").fetchall() == [(1, 1, 2)]
    assert one(db, "SELECT count(*) FROM mdistinct_published.ward") == 3
    # Its range does not spell out the record's own value.
    assert one(db, "SELECT upper(age) - lower(age) FROM mdistinct_published.ward LIMIT 1") > 1


def test_a_view_as_source(db: Connection) -> None:
    make_ward(db)
    db.execute(
        "CREATE VIEW public.seniors AS SELECT id::text || '!' AS who, age, disease AS what"
        " FROM public.ward WHERE age > 4"
    )
    db.execute("SELECT mdistinct_register('seniors', 'public.seniors', 'who', '{age}', 'what', 2)")
    for disease in DISEASES:
        db.execute("SELECT mdistinct_allow_update('seniors', %s, %s)", (disease, list(DISEASES)))
    assert publish(db, "seniors")["records"] == 8
    assert one(db, "SELECT min(record_id) FROM mdistinct.seniors_membership") == "10!"


def test_a_replaced_source_of_the_same_shape_goes_on(db: Connection) -> None:
    make_ward(db)
    publish(db)
    db.execute("CREATE TABLE public.reloaded AS TABLE public.ward")
    db.execute("DROP TABLE public.ward; ALTER TABLE public.reloaded RENAME TO ward")
    assert publish(db)["release"] == 2


def test_a_preview_writes_nothing(db: Connection) -> None:
    make_ward(db)
    publish(db)
    before = state(db)
    row = db.execute("SELECT * FROM mdistinct_preview('ward')").fetchone()
    assert row is not None
    assert row[:3] == ("ward", 2, 12)
    assert state(db) == before
    assert publish(db)["release"] == 2


def test_the_phases_can_be_looked_at(db: Connection) -> None:
    make_ward(db, records=16)
    publish(db)
    before = state(db)
    buckets = db.execute("SELECT * FROM mdistinct_create_buckets('ward')").fetchall()
    assigned = db.execute("SELECT * FROM mdistinct_assign_records('ward')").fetchall()
    split = db.execute("SELECT * FROM mdistinct_split_buckets('ward')").fetchall()
    assert state(db) == before
    assert sum(records for *_, records in buckets) == 16
    entries = {(bucket, entry) for bucket, _, _, entry, _, _ in buckets}
    assert {(bucket, entry) for _, _, bucket, entry in assigned} <= entries
    reach = {(bucket, entry): values for bucket, _, _, entry, values, _ in buckets}
    assert all(value in reach[bucket, entry] for _, value, bucket, entry in assigned)
    everybody = sorted(str(i) for i in range(1, 17))
    assert sorted(record for record, *_ in assigned) == everybody
    assert sorted(record for record, *_ in split) == everybody
    assert {gid for _, _, gid in split} == set(range(1, max(gid for _, _, gid in split) + 1))


def test_looking_at_an_empty_source(db: Connection) -> None:
    make_ward(db, records=0)
    for function in ("create_buckets", "assign_records", "split_buckets", "verify"):
        assert db.execute(f"SELECT * FROM mdistinct_{function}('ward')").fetchall() == []


def test_a_second_publication_at_the_same_time_is_refused(
    db: Connection, other: Connection
) -> None:
    make_ward(db)
    with db.transaction():
        publish(db)
        with refused(other, "55P03", '"ward"'):
            publish(other)
        with refused(other, "55P03", '"ward"'):
            other.execute("SELECT mdistinct_preview('ward')")
    assert publish(other)["release"] == 2


def test_a_second_publication_can_wait_and_sees_the_first(
    db: Connection, other: Connection
) -> None:
    make_ward(db)
    publish(db)
    found: list[int] = []

    def wait() -> None:
        row = other.execute(
            "SELECT release FROM mdistinct_publish('ward', wait => true)"
        ).fetchone()
        found.append(row[0] if row else 0)

    with db.transaction():
        publish(db)
        thread = threading.Thread(target=wait)
        thread.start()
        thread.join(0.5)
        assert thread.is_alive()
    thread.join(60)
    assert found == [3]
    assert one(db, "SELECT count(*) FROM mdistinct_verify('ward')") == 0


def test_changing_the_model_waits_for_a_publication(db: Connection, other: Connection) -> None:
    make_ward(db)
    other.execute("SET lock_timeout = '200ms'")
    with db.transaction():
        publish(db)
        with pytest.raises(psycopg.errors.LockNotAvailable):
            other.execute("SELECT mdistinct_allow_update('ward', 'Flu', '{Flu,Gastritis}')")
        with pytest.raises(psycopg.errors.LockNotAvailable):
            other.execute("SELECT mdistinct_drop('ward')")


def test_readers_never_wait(db: Connection, other: Connection) -> None:
    make_ward(db)
    publish(db)
    other.execute("SET lock_timeout = '200ms'")
    rows = one(other, "SELECT count(*) FROM mdistinct_published.ward")
    with db.transaction():
        publish(db)
        assert one(other, "SELECT count(*) FROM mdistinct_published.ward") == rows
        assert one(other, "SELECT count(*) FROM mdistinct.ward_membership") == 12


def test_a_publication_does_not_wait_for_readers(db: Connection, other: Connection) -> None:
    make_ward(db)
    publish(db)
    db.execute("SET lock_timeout = '200ms'")
    with other.transaction():
        other.execute("TABLE mdistinct_published.ward")
        assert publish(db)["release"] == 2


def test_a_rolled_back_publication_leaves_nothing(db: Connection) -> None:
    make_ward(db)
    before = state(db)
    with db.transaction(force_rollback=True):
        publish(db)
    assert state(db) == before
    assert publish(db)["release"] == 1


def test_gids_are_drawn_anew(db: Connection) -> None:
    make_ward(db, records=60)
    publish(db)
    publish(db)
    same = one(
        db,
        "SELECT count(*) FROM mdistinct.ward_membership AS a JOIN mdistinct.ward_membership AS b"
        " USING (record_id, gid) WHERE a.release = 1 AND b.release = 2",
    )
    assert same < 30


def test_publishers_and_readers(db: Connection) -> None:
    make_ward(db)
    with acting_as(db, "mdistinct_publisher"):
        publish(db)
        db.execute("SELECT mdistinct_preview('ward')")
    with acting_as(db, "mdistinct_reader"):
        assert one(db, "SELECT count(*) FROM mdistinct_published.ward") >= 12
        db.execute("TABLE mdistinct_published.ward_counterfeits")
        db.execute("TABLE mdistinct_published.releases")
    for role, statement in (
        ("mdistinct_reader", "SELECT mdistinct_publish('ward')"),
        ("mdistinct_reader", "TABLE mdistinct.ward_membership"),
        ("mdistinct_reader", "TABLE mdistinct_data.ward_versions"),
        ("mdistinct_publisher", "SELECT mdistinct_assign_records('ward')"),
        ("mdistinct_publisher", "SELECT mdistinct_verify('ward')"),
        ("mdistinct_publisher", "SELECT mdistinct_drop('ward')"),
        ("mdistinct_publisher", "SELECT mdistinct_sources.ward()"),
        ("mdistinct_publisher", "TABLE public.ward"),
        ("mdistinct_admin", "TABLE mdistinct_data.ward_versions"),
        ("mdistinct_admin", "SELECT mdistinct_sources.ward()"),
    ):
        with acting_as(db, role), pytest.raises(psycopg.errors.InsufficientPrivilege):
            db.execute(statement)


@pytest.mark.tampered
def test_verification_finds_what_was_tampered_with(db: Connection) -> None:
    make_ward(db)
    publish(db)
    publish(db)
    verify = "SELECT release, gid, record_id, rule FROM mdistinct_verify('ward')"
    assert db.execute(verify).fetchall() == []
    with db.transaction(force_rollback=True):
        db.execute(
            "UPDATE mdistinct_data.ward_g2 SET counterfeits = counterfeits + 1 WHERE gid = 1"
        )
        assert (2, 1, None, "counterfeit count") in db.execute(verify).fetchall()
    with db.transaction(force_rollback=True):
        db.execute("UPDATE mdistinct_data.ward_g1 SET candidates[1] = candidates[2] WHERE gid = 1")
        assert {(r, g) for r, g, *_ in db.execute(verify).fetchall()} >= {(1, 1)}
    db.execute("UPDATE mdistinct_data.ward_placement SET gids[1] = 999 WHERE release = 2")
    with refused(db, "MD008", '"ward"', "1 records"):
        db.execute(verify)


def test_verification_names_records(db: Connection) -> None:
    make_ward(db)
    publish(db)
    publish(db)
    # Under a narrower model the second release no longer follows from the first.
    with db.transaction(force_rollback=True):
        for disease in DISEASES:
            db.execute("SELECT mdistinct_allow_update('ward', %s, %s)", (disease, [disease]))
        found = db.execute("SELECT * FROM mdistinct_verify('ward')").fetchall()
        same = db.execute(
            "SELECT record_id, array_agg(disease ORDER BY disease) FROM mdistinct.ward_membership"
            " JOIN mdistinct_published.ward USING (release, gid) GROUP BY record_id, release"
        ).fetchall()
        moved = {
            record
            for record, _ in same
            if len({tuple(values) for other, values in same if other == record}) > 1
        }
        assert {
            record for _, _, record, rule, _ in found if rule == "legal update instance"
        } == moved
