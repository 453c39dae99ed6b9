"""Whole histories through SQL: every kind of model, gaps, skew, large m, and a break in between."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import psycopg
import pytest
from psycopg import sql

from pg_mdistinct.install import install, uninstall
from tests.integration.cases import Connection, make_ward, one, publish, refused
from tests.strategies import HistorySpec, random_history

Model = Mapping[str, Sequence[str]]


def make_patients(db: Connection, model: Model, m: int, variant: str = "m-distinct") -> None:
    """Make the empty table "patients" and the dataset of the same name."""
    db.execute("CREATE TABLE patients (id text PRIMARY KEY, age integer, disease text)")
    db.execute(
        "SELECT mdistinct_register('patients', 'patients', 'id', '{age}', 'disease', %s, %s)",
        (m, variant),
    )
    for old, new in model.items():
        db.execute("SELECT mdistinct_allow_update('patients', %s, %s)", (old, list(new)))


def publish_patients(db: Connection, **disease: str) -> dict[str, Any]:
    """Publish these patients and nobody else; what they were asked for is what they are."""
    db.execute("TRUNCATE patients")
    for age, (name, value) in enumerate(disease.items(), 20):
        db.execute("INSERT INTO patients VALUES (%s, %s, %s)", (name, age, value))
    return publish(db, "patients")


def candidates(db: Connection, record: str) -> dict[int, set[str]]:
    """What each release lets one suspect of a record."""
    rows = db.execute(
        "SELECT m.release, array_agg(p.disease) FROM mdistinct.patients_membership AS m"
        " JOIN mdistinct_published.patients AS p USING (release, gid)"
        " WHERE m.record_id = %s GROUP BY m.release",
        (record,),
    )
    return {release: set(values) for release, values in rows}


def violations(db: Connection, dataset: str = "patients") -> list[Any]:
    return db.execute("SELECT * FROM mdistinct_verify(%s)", (dataset,)).fetchall()


# Every kind of model


def play(db: Connection, name: str, spec: HistorySpec) -> None:
    """Publish a history of the generator as a dataset of its own."""
    table = sql.Identifier(name)
    qi = [f"q{i}" for i in range(len(spec.qi_is_set))]
    columns = sql.SQL(", ").join(
        sql.SQL("{} {}").format(sql.Identifier(column), sql.SQL("text" if is_set else "integer"))
        for column, is_set in zip(qi, spec.qi_is_set, strict=True)
    )
    db.execute(sql.SQL("CREATE TABLE {} (id text, {}, value text)").format(table, columns))
    db.execute(
        "SELECT mdistinct_register(%s, %s, 'id', %s, 'value', %s, %s)",
        (name, name, qi, spec.m, spec.variant),
    )
    for old, new in spec.model.by_label.items():
        db.execute(
            "SELECT mdistinct_allow_update(%s, %s, %s, %s)",
            (name, old, list(new), list(new.values())),
        )
    for snapshot in spec.snapshots:
        db.execute(sql.SQL("TRUNCATE {}").format(table))
        with db.cursor().copy(sql.SQL("COPY {} FROM STDIN").format(table)) as copy:
            for record, row in snapshot.items():
                copy.write_row((record, *map(str, row.qi), spec.model.labels[row.value]))
        assert publish(db, name)["records"] == len(snapshot)
    assert violations(db, name) == []


@pytest.mark.parametrize("batch", range(4))
def test_random_histories_of_every_kind(db: Connection, batch: int) -> None:
    for seed in range(10 * batch, 10 * batch + 10):
        play(db, f"history_{seed}", random_history(seed))


# Models in which values have to move

WEEK = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


def test_values_that_cannot_stay(db: Connection) -> None:
    following = dict(zip(WEEK, (*WEEK[1:], WEEK[0]), strict=True))
    make_patients(db, {day: [following[day]] for day in WEEK}, 3)
    today = {f"p{i}": WEEK[i * i % 7] for i in range(15)}
    for _ in range(4):
        publish_patients(db, **today)
        today = {name: following[day] for name, day in today.items()}
    assert violations(db) == []
    # Each candidate has one successor, so the candidates of everybody move on together.
    seen = candidates(db, "p1")
    assert all(new == {following[day] for day in old} for old, new in pairwise(seen.values()))


def test_a_value_that_did_not_move_is_refused(db: Connection) -> None:
    make_patients(db, {"a": ["b"], "b": ["a"], "c": ["c"]}, 2)
    publish_patients(db, x="a", y="b", z="c")
    with refused(db, "MD002", "x (a -> a)", "y (b -> b)"):
        publish(db, "patients")


def test_a_model_that_leaves_no_legal_release_names_the_values(db: Connection) -> None:
    make_patients(db, {"a": ["c"], "b": ["c"], "c": ["c"]}, 2)
    with refused(db, "MD006", '"a"', '"c"'):
        publish(db, "patients")


# Records that come back


def test_a_record_that_comes_back_may_have_taken_several_steps(db: Connection) -> None:
    chain = {"a": "ab", "b": "bc", "c": "cd", "d": "d", "x": "xy", "y": "xy"}
    make_patients(db, {old: tuple(new) for old, new in chain.items()}, 2)
    publish_patients(db, gone="a", stays="x")
    for _ in range(2):
        publish_patients(db, stays="y")
    # In release 4 it has had three steps: enough to be d, and so has the other candidate.
    publish_patients(db, gone="d", stays="x")
    assert violations(db) == []
    assert list(candidates(db, "gone")) == [1, 4]
    assert len(candidates(db, "gone")[4]) >= 2


def test_a_record_cannot_have_taken_more_steps_than_there_were_releases(db: Connection) -> None:
    chain = {"a": "ab", "b": "bc", "c": "cd", "d": "d", "x": "xy", "y": "xy"}
    make_patients(db, {old: tuple(new) for old, new in chain.items()}, 2)
    publish_patients(db, gone="a", stays="x")
    publish_patients(db, stays="y")
    db.execute("INSERT INTO patients VALUES ('gone', 30, 'd')")
    with refused(db, "MD002", "gone (a -> d)"):
        publish(db, "patients")


def test_everybody_leaves_and_comes_back_one_by_one(db: Connection) -> None:
    make_ward(db, records=20, m=3)
    publish(db)
    db.execute("CREATE TABLE everybody AS TABLE ward")
    db.execute("TRUNCATE ward")
    publish(db)
    for last in range(4, 21, 4):
        db.execute(
            "INSERT INTO ward SELECT * FROM everybody WHERE id BETWEEN %s AND %s", (last - 3, last)
        )
        assert publish(db)["records"] == last
    assert violations(db, "ward") == []
    assert one(db, "SELECT count(*) FROM mdistinct_data.ward_absent") == 0


# Few records, skewed ones, large m


def test_one_record_all_its_life(db: Connection) -> None:
    make_patients(db, {"a": "ab", "b": "abc", "c": "bcd", "d": "cd"}, 3)
    for value in "abcdcba":
        row = publish_patients(db, alone=value)
        assert (row["groups"], row["counterfeits"]) == (1, 2)
    assert violations(db) == []
    for release, seen in candidates(db, "alone").items():
        assert "abcdcba"[release - 1] in seen
        assert len(seen) == 3


def test_a_source_that_is_empty_for_ever(db: Connection) -> None:
    make_patients(db, {"a": "ab", "b": "ab"}, 2)
    for release in range(1, 4):
        row = publish(db, "patients")
        assert (row["release"], row["records"], row["groups"], row["ncp"]) == (release, 0, 0, 0)
    assert violations(db) == []


@pytest.mark.parametrize("variant", ["m-distinct", "m-distinct*"])
def test_a_value_that_nearly_everybody_has(db: Connection, variant: str) -> None:
    values = {"Flu": ["Flu"], "Cold": ["Cold"], "Gout": ["Gout"], "Gripe": ["Gripe"]}
    make_patients(db, values, 3, variant)
    flu = {f"p{i}": "Flu" for i in range(27)}
    for _ in range(3):
        row = publish_patients(db, **flu, q1="Cold", q2="Cold", q3="Gout")
        # Each Flu needs a group of three: 81 rows, 30 of them real.
        assert (row["records"], row["groups"], row["counterfeits"]) == (30, 27, 51)
    assert violations(db) == []


def test_everybody_has_the_same_value(db: Connection) -> None:
    make_patients(db, {"a": "ab", "b": "ab", "c": "c"}, 3)
    row = publish_patients(db, x="a", y="a", z="a")
    assert (row["groups"], row["counterfeits"]) == (3, 6)
    row = publish_patients(db, x="b", y="a", z="b")
    assert row["records"] == 3
    assert violations(db) == []


@pytest.mark.parametrize("values", [16, 24])
def test_m_16(db: Connection, values: int) -> None:
    """As many values as m, so that every group shows all of them, and some more."""
    labels = [f"value {i}" for i in range(values)]
    make_patients(db, {v: [v, labels[(i + 1) % values]] for i, v in enumerate(labels)}, 16)
    code = {f"p{i}": i * i % values for i in range(90)}
    for release in range(4):
        row = publish_patients(db, **{name: labels[c] for name, c in code.items()})
        assert row["records"] == 90
        code = {n: (c + (c + release) % 2) % values for n, c in code.items()}
    assert violations(db) == []
    assert min(len(seen) for seen in candidates(db, "p7").values()) >= 16


def test_records_that_are_all_in_the_same_place(db: Connection) -> None:
    make_patients(db, {"a": "ab", "b": "ab", "c": "cd", "d": "cd"}, 2)
    db.execute("INSERT INTO patients SELECT 'p' || i, 30, 'a' FROM generate_series(1, 9) AS i")
    row = publish(db, "patients")
    assert (row["ncp"], row["counterfeits"]) == (0, 9)
    # The column has one value, so nothing is lost; but no group may spell out its only record.
    ranges = (
        "SELECT count(*) FROM mdistinct_published.patients WHERE age @> 30 AND age <> '[30,30]'"
    )
    assert one(db, ranges) == 18


# What happens in between


def test_a_model_that_allows_more_later(db: Connection) -> None:
    make_patients(db, {"a": "a", "b": "b", "c": "c"}, 2)
    publish_patients(db, x="a", y="b", z="c")
    db.execute("SELECT mdistinct_allow_update('patients', 'a', '{a,c,d}')")
    db.execute("SELECT mdistinct_allow_update('patients', 'd', '{d}')")
    publish_patients(db, x="d", y="b", z="c", new="d")
    publish_patients(db, x="d", y="b", z="c", new="d")
    assert violations(db) == []


def test_a_history_survives_uninstalling(dsn: str) -> None:
    """Functions go and come back; what was published stays readable, and publishing goes on."""
    releases = "SELECT * FROM mdistinct_published.releases ORDER BY release"
    published = "SELECT * FROM mdistinct_published.ward ORDER BY 1, 2, 3, 4"
    membership = "SELECT * FROM mdistinct.ward_membership ORDER BY 1, 2"
    with psycopg.connect(dsn, autocommit=True) as db:
        make_ward(db, records=40, m=3)
        publish(db)
        db.execute("DELETE FROM ward WHERE id <= 10")
        publish(db)
        before = [db.execute(query).fetchall() for query in (releases, published, membership)]
    uninstall(dsn, on_message=lambda _: None)
    with psycopg.connect(dsn, autocommit=True) as db:
        assert db.execute(releases).fetchall() == before[0]
        assert db.execute(published).fetchall() == before[1]
        with pytest.raises(psycopg.errors.UndefinedFunction):
            publish(db)
    install(dsn, on_message=lambda _: None)
    with psycopg.connect(dsn, autocommit=True) as db:
        assert [db.execute(q).fetchall() for q in (releases, published, membership)] == before
        db.execute("INSERT INTO ward SELECT i, i, 'Flu' FROM generate_series(1, 5) AS i")
        row = publish(db)
        assert (row["release"], row["records"]) == (3, 35)
        assert violations(db, "ward") == []
