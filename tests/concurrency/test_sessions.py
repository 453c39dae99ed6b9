"""Publications, changes and readers at the same time: who waits for whom, and who sees what."""

from __future__ import annotations

import threading

import psycopg
import pytest

from tests.concurrency.sessions import (
    Background,
    gate_shut,
    make_gated_ward,
    wait_until_blocked,
)
from tests.integration.cases import Connection, make_ward, one, publish, refused


@pytest.fixture
def ward(db: Connection) -> Connection:
    """A dataset with one release, whose next publication can be held up half-way."""
    make_gated_ward(db, "ward")
    publish(db)
    return db


def publication(dsn: str, name: str = "ward", options: str = "") -> Background:
    return Background(dsn, f"SELECT release FROM mdistinct_publish('{name}'{options})")


def test_a_second_publication_fails_at_once_or_waits_as_it_likes(
    ward: Connection, dsn: str
) -> None:
    with gate_shut(dsn, "ward"):
        first = publication(dsn)
        wait_until_blocked(ward, first.pid)
        ward.execute("SET lock_timeout = '5s'")
        with refused(ward, "55P03", '"ward"', "being published"):
            publish(ward)
        second = publication(dsn, options=", wait => true")
        wait_until_blocked(ward, second.pid)
    assert (first.answer(), second.answer()) == ([(2,)], [(3,)])
    assert one(ward, "SELECT count(*) FROM mdistinct_verify('ward')") == 0
    # The second began to read when the first had ended, not half-way.
    starts = "SELECT bool_and(b.published_at > a.published_at) FROM mdistinct.releases AS a"
    assert one(ward, f"{starts} JOIN mdistinct.releases AS b ON b.release = a.release + 1")


def test_different_datasets_are_published_side_by_side(ward: Connection, dsn: str) -> None:
    make_gated_ward(ward, "other")
    with gate_shut(dsn, "ward"):
        held_up = publication(dsn)
        wait_until_blocked(ward, held_up.pid)
        ward.execute("SET lock_timeout = '10s'")
        # One publication is half-way through; all of another one takes place meanwhile.
        assert publish(ward, "other")["release"] == 1
        assert publish(ward, "other")["release"] == 2
        assert held_up.is_running
    assert held_up.answer() == [(2,)]


def test_two_that_are_both_half_way(ward: Connection, dsn: str) -> None:
    make_gated_ward(ward, "other")
    with gate_shut(dsn, "other"):
        with gate_shut(dsn, "ward"):
            both = [publication(dsn, name) for name in ("ward", "other")]
            for each in both:
                wait_until_blocked(ward, each.pid)
        assert both[0].answer() == [(2,)]
        assert both[1].is_running
    assert both[1].answer() == [(1,)]


def test_an_uncommitted_publication_holds_up_no_other_dataset(ward: Connection, dsn: str) -> None:
    make_gated_ward(ward, "other")
    with psycopg.connect(dsn) as slow:
        publish(slow)
        ward.execute("SET lock_timeout = '5s'")
        assert publish(ward, "other")["release"] == 1
        slow.rollback()


def test_the_source_is_read_as_of_one_moment(db: Connection, dsn: str) -> None:
    """Others move records between two tables, and swap values, all the time."""
    db.execute("CREATE TABLE here (id int PRIMARY KEY, age int, disease text)")
    db.execute("CREATE TABLE there (LIKE here)")
    db.execute(
        "INSERT INTO here SELECT i, i, CASE WHEN i % 2 = 0 THEN 'Flu' ELSE 'Gout' END"
        " FROM generate_series(1, 200) AS i"
    )
    db.execute("CREATE VIEW people AS TABLE here UNION ALL TABLE there")
    db.execute("SELECT mdistinct_register('people', 'people', 'id', '{age}', 'disease', 2)")
    for value in ("Flu", "Gout"):
        db.execute("SELECT mdistinct_allow_update('people', %s, '{Flu,Gout}')", (value,))
    stop = threading.Event()
    moves = threading.Thread(target=_move_about, args=(dsn, stop))
    moves.start()
    try:
        for _ in range(12):
            assert publish(db, "people")["records"] == 200
    finally:
        stop.set()
        moves.join()
    versions = (
        "(SELECT v.release, m.* FROM mdistinct_data.people_versions AS v,"
        " unnest(v.record_id, v.label) AS m (record_id, label))"
    )
    rows = db.execute(
        "SELECT count(*), count(DISTINCT v.record_id), count(*) FILTER (WHERE v.label = 'Flu')"
        f" FROM {versions} AS v GROUP BY release".encode()
    ).fetchall()
    assert rows == [(200, 200, 100)] * 12
    changes = (
        f"SELECT count(*) FROM {versions} AS a JOIN {versions} AS b"
        " ON b.record_id = a.record_id AND b.release = a.release + 1 AND b.label <> a.label"
    )
    assert one(db, changes) > 0


def _move_about(dsn: str, stop: threading.Event) -> None:
    with psycopg.connect(dsn, autocommit=True) as db:
        while not stop.is_set():
            # Each statement keeps the records, and as many of them with one value as the other.
            db.execute(
                "WITH gone AS (DELETE FROM here WHERE random() < 0.2 RETURNING *)"
                " INSERT INTO there TABLE gone"
            )
            db.execute(
                "WITH back AS (DELETE FROM there WHERE random() < 0.5 RETURNING *)"
                " INSERT INTO here TABLE back"
            )
            db.execute(
                "WITH flu AS (SELECT id FROM here WHERE disease = 'Flu' ORDER BY random() LIMIT 9),"
                " gout AS (SELECT id FROM here WHERE disease = 'Gout' ORDER BY random()"
                " LIMIT (SELECT count(*) FROM flu)), few AS (SELECT id FROM flu LIMIT"
                " (SELECT count(*) FROM gout))"
                " UPDATE here SET disease = CASE disease WHEN 'Flu' THEN 'Gout' ELSE 'Flu' END"
                " WHERE id IN (TABLE few UNION ALL TABLE gout)"
            )


def test_readers_never_wait_and_never_see_a_part(ward: Connection, dsn: str) -> None:
    before = ward.execute("TABLE mdistinct_published.ward").fetchall()
    with gate_shut(dsn, "ward"):
        running = publication(dsn)
        wait_until_blocked(ward, running.pid)
        ward.execute("SET lock_timeout = '1s'")
        for view in ("ward", "ward_counterfeits", "releases"):
            ward.execute(f"TABLE mdistinct_published.{view}")
        assert ward.execute("TABLE mdistinct_published.ward").fetchall() == before
        assert one(ward, "SELECT count(*) FROM mdistinct_verify('ward')") == 0
    running.answer()
    assert one(ward, "SELECT max(release) FROM mdistinct_published.ward") == 2


def test_registering_during_a_publication(ward: Connection, dsn: str) -> None:
    with gate_shut(dsn, "ward"):
        running = publication(dsn)
        wait_until_blocked(ward, running.pid)
        ward.execute("SET lock_timeout = '5s'")
        with refused(ward, "42710", '"ward"'):
            ward.execute("SELECT mdistinct_register('ward', 'ward', 'id', '{age}', 'disease', 2)")
        make_gated_ward(ward, "other")
        assert publish(ward, "other")["release"] == 1
    assert running.answer() == [(2,)]


def test_a_change_of_the_model_waits_and_holds_from_the_next_release_on(
    ward: Connection, dsn: str
) -> None:
    with gate_shut(dsn, "ward"):
        running = publication(dsn)
        wait_until_blocked(ward, running.pid)
        change = Background(
            dsn, "SELECT mdistinct_allow_update('ward', 'Flu', '{Flu,Cold}') IS NULL"
        )
        wait_until_blocked(ward, change.pid)
    assert running.answer() == [(2,)]
    change.answer()
    ward.execute("SELECT mdistinct_allow_update('ward', 'Cold', '{Cold}')")
    ward.execute(
        "SELECT mdistinct_allow_update('ward', 'Flu', '{Flu,Pneumonia,Gastritis,Dyspepsia,Cold}')"
    )
    ward.execute("UPDATE ward_rows SET disease = 'Cold' WHERE id = 4")
    assert publish(ward)["release"] == 3


def test_dropping_waits_for_a_publication(ward: Connection, dsn: str) -> None:
    with gate_shut(dsn, "ward"):
        running = publication(dsn)
        wait_until_blocked(ward, running.pid)
        drop = Background(dsn, "SELECT mdistinct_drop('ward') IS NULL")
        wait_until_blocked(ward, drop.pid)
    assert running.answer() == [(2,)]
    drop.answer()
    assert one(ward, "SELECT count(*) FROM mdistinct.datasets") == 0
    assert one(ward, "SELECT count(*) FROM ward_rows") == 12


def test_whoever_waits_behind_a_drop_is_told(ward: Connection, dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as watcher, ward.transaction():
        ward.execute("SELECT mdistinct_drop('ward')")
        behind = publication(dsn, options=", wait => true")
        wait_until_blocked(watcher, behind.pid)
    with pytest.raises(psycopg.errors.UndefinedObject, match="not registered"):
        behind.answer()


def test_a_dataset_that_is_dropped_and_registered_again_meanwhile(
    ward: Connection, dsn: str
) -> None:
    with ward.transaction():
        ward.execute("SELECT mdistinct_drop('ward')")
        ward.execute("SELECT mdistinct_register('ward', 'ward', 'id', '{age}', 'disease', 2)")
        waiting = publication(dsn, options=", wait => true")
        with psycopg.connect(dsn, autocommit=True) as watcher:
            wait_until_blocked(watcher, waiting.pid)
    # It waited for a dataset that is no more; the new one has no model yet.
    with pytest.raises(psycopg.Error) as caught:
        waiting.answer()
    assert caught.value.sqlstate in ("42704", "MD001", "MD003")


def test_a_statement_that_was_planned_before_a_release_misses_nothing_of_it(
    db: Connection, dsn: str
) -> None:
    """It is executed after the commit, and so is told of the release."""
    make_ward(db)
    publish(db)
    # Planning can be held up by a table: constants of its partition's index are computed then.
    db.execute(
        "CREATE FUNCTION public.gate(int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS"
        " $$ BEGIN PERFORM pg_advisory_xact_lock_shared(4711); RETURN $1; END $$;"
        "CREATE TABLE public.brake (i int) PARTITION BY LIST (i);"
        "CREATE TABLE public.brake1 PARTITION OF public.brake FOR VALUES IN (1);"
        "CREATE INDEX ON public.brake1 ((public.gate(1)))"
    )
    with psycopg.connect(dsn) as keeper:
        keeper.execute("SELECT pg_advisory_xact_lock(4711)")
        reader = Background(
            dsn,
            "SELECT r.release, r.rows, coalesce(p.rows, 0) + b.none"
            " FROM mdistinct_published.releases AS r"
            " LEFT JOIN (SELECT release, count(*) AS rows FROM mdistinct_published.ward GROUP BY 1)"
            " AS p USING (release) CROSS JOIN (SELECT count(*) AS none FROM public.brake) AS b"
            " ORDER BY 1",
        )
        wait_until_blocked(db, reader.pid)
        publish(db)
        keeper.rollback()
    rows = reader.answer()
    assert [release for release, *_ in rows] == [1, 2]
    assert all(announced == shown for _, announced, shown in rows), rows
