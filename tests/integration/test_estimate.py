"""mdistinct_estimate."""

from __future__ import annotations

import csv
import math
import random
import statistics
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql

from tests.fix_database import acting_as
from tests.integration.cases import (
    DISEASES,
    Connection,
    allow_all,
    one,
    publish,
    refused,
)
from tests.integration.estimate_cases import (
    COLUMNS,
    NUMBERS,
    TOWNS,
    estimate,
    make_clinic,
)
from tests.oracle.estimator import (
    Group,
    as_json,
    published_groups,
    reference,
)

SURVEY = Path(__file__).parents[3] / "shared" / "data" / "atus_occ50.csv"


@pytest.fixture
def clinic(db: Connection) -> Connection:
    make_clinic(db, 60, COLUMNS)
    publish(db, "clinic")
    return db


def random_predicate(groups: list[Group], draw: random.Random) -> dict[str, Any]:
    """Intervals between bounds that occur, sets of towns and diseases; of some of the columns."""
    predicate: dict[str, Any] = {}
    for name in draw.sample(list(COLUMNS), draw.randint(0, 4)):
        if name == "town":
            predicate[name] = draw.sample(TOWNS, draw.randint(1, 3))
        else:
            ends = [draw.choice(groups).qi[name] for _ in range(2)]
            predicate[name] = sorted((ends[0].lower, ends[1].upper))
    if draw.random() < 0.5:
        predicate["disease"] = draw.sample(DISEASES, draw.randint(1, 3))
    return predicate


def test_it_is_the_papers_estimator_for_every_type(clinic: Connection) -> None:
    clinic.execute("SET timezone = 'UTC'")
    groups = published_groups(clinic, 1)
    draw = random.Random(1)
    for _ in range(60):
        predicate = random_predicate(groups, draw)
        measure = draw.choice([None, *NUMBERS])
        expected = reference(groups, predicate, measure)
        found = estimate(
            clinic, {name: as_json(asked) for name, asked in predicate.items()}, measure
        )
        assert found["count"] == pytest.approx(expected["count"], abs=1e-9), predicate
        error = math.hypot(math.sqrt(expected["variance"]), expected["bias"])
        assert found["count_error"] == pytest.approx(error, abs=1e-6), predicate
        if measure is None:
            assert found["sum"] is None
            continue
        assert found["sum"] == pytest.approx(expected["sum"], rel=1e-9, abs=1e-9)
        error = math.hypot(math.sqrt(expected["sum_variance"]), expected["sum_bias"])
        assert found["sum_error"] == pytest.approx(error, rel=1e-6)
        if expected["count"]:
            assert found["avg"] == pytest.approx(expected["sum"] / expected["count"], rel=1e-9)


def test_counterfeits_are_excluded(db: Connection) -> None:
    # One value is so frequent that the others do not suffice to hide it.
    make_clinic(db, 40, {"age": "integer"}, m=2)
    db.execute("UPDATE clinic SET disease = 'Flu' WHERE id <= 30")
    row = publish(db, "clinic")
    assert row["counterfeits"] > 0
    found = estimate(db)
    assert (found["count"], found["count_error"]) == (40, 0)
    assert (found["at_least"], found["at_most"]) == (40, 40)
    # Each value alone is uncertain, for nobody knows which rows are made up; in sum they are not.
    alone = [estimate(db, {"disease": value}) for value in DISEASES]
    assert sum(one["count"] for one in alone) == pytest.approx(40)
    assert all(one["count_error"] > 0 for one in alone)


def test_the_truth_lies_between_the_certain_bounds(db: Connection) -> None:
    make_clinic(db, 200, {"age": "integer", "town": "text"})
    publish(db, "clinic")
    draw = random.Random(2)
    for _ in range(40):
        low, high = sorted(draw.sample(range(18, 78), 2))
        towns, diseases = draw.sample(TOWNS, 2), draw.sample(DISEASES, 2)
        truth = one(
            db,
            "SELECT count(*) FROM clinic WHERE age BETWEEN %s AND %s AND town = ANY (%s)"
            " AND disease = ANY (%s)",
            (low, high, towns, diseases),
        )
        asked = {"age": [low, high], "town": towns, "disease": diseases}
        found = estimate(db, asked)
        assert found["at_least"] <= truth <= found["at_most"]
        assert found["at_least"] <= found["count"] + 1e-9
        assert found["count"] <= found["at_most"] + 1e-9


AGGREGATES = {"count": "count(*)", "sum": "sum(weight)", "avg": "avg(weight)"}


def z_scores(db: Connection) -> dict[str, list[float]]:
    """How many standard errors the truth is away from each figure, for random queries."""
    draw = random.Random(3)
    scores: dict[str, list[float]] = {name: [] for name in AGGREGATES}
    for _ in range(150):
        low = draw.uniform(40, 100)
        high = low + draw.uniform(4, 40)
        first, last = sorted(draw.sample(range(18, 79), 2))
        diseases = draw.sample(DISEASES, draw.randint(1, 4))
        truth = db.execute(
            f"SELECT {', '.join(AGGREGATES.values())} FROM clinic WHERE weight BETWEEN %s AND %s"
            " AND age BETWEEN %s AND %s AND disease = ANY (%s)",
            (low, high, first, last, diseases),
        ).fetchone()
        asked = {"weight": [low, high], "age": [first, last], "disease": diseases}
        found = estimate(db, asked, "weight")
        assert truth is not None
        if truth[0] == 0 or found["count"] < 5:
            continue
        for name, true in zip(AGGREGATES, truth, strict=True):
            scores[name].append((float(true) - found[name]) / found[f"{name}_error"])
    return scores


def test_the_standard_errors_are_honest(db: Connection) -> None:
    make_clinic(db, 1500, {"age": "integer", "weight": "double precision"})
    publish(db, "clinic")
    for name, scores in z_scores(db).items():
        assert len(scores) > 80
        covered = sum(abs(score) <= 1.96 for score in scores) / len(scores)
        typical = math.sqrt(sum(score * score for score in scores) / len(scores))
        assert covered >= 0.88, (name, covered, typical)
        assert 0.4 < typical < 1.25, (name, covered, typical)


def test_real_data(db: Connection) -> None:
    # Nothing is uniform here: docs/queries.md tells what that does to the standard error.
    if not SURVEY.exists():
        pytest.skip(f"{SURVEY.name} is not on this machine")
    columns = ("id", "age", "marital", "edu", "occ")
    db.execute("CREATE TABLE clinic (id text, age int, marital text, edu text, occ text)")
    with (
        SURVEY.open(newline="", encoding="utf-8") as lines,
        db.cursor().copy("COPY clinic FROM STDIN") as copy,
    ):
        for row in random.Random(1).sample(list(csv.DictReader(lines)), 5000):
            copy.write_row([row[name] for name in columns])
    db.execute(
        "CREATE VIEW changes AS SELECT a.occ AS old_value, b.occ AS new_value"
        " FROM (SELECT DISTINCT occ FROM clinic) AS a, (SELECT DISTINCT occ FROM clinic) AS b"
    )
    db.execute("SELECT mdistinct_register('clinic', 'clinic', 'id', '{age,marital,edu}', 'occ', 4)")
    db.execute("SELECT mdistinct_load_updates('clinic', 'changes')")
    publish(db, "clinic")
    values = {
        name: [row[0] for row in db.execute(f"SELECT DISTINCT {name} FROM clinic ORDER BY 1")]
        for name in ("marital", "edu", "occ")
    }
    draw = random.Random(2)
    misses, covered = [], []
    for _ in range(80):
        low = draw.randint(15, 60)
        asked: dict[str, Any] = {"age": [low, low + draw.randint(5, 25)]}
        for name in draw.sample(sorted(values), 2):
            asked[name] = draw.sample(values[name], len(values[name]) // 2)
        truth = one(
            db,
            "SELECT count(*) FROM clinic WHERE age BETWEEN %s AND %s"
            + "".join(f" AND {name} = ANY (%s)" for name in asked if name != "age"),
            (*asked["age"], *(asked[name] for name in asked if name != "age")),
        )
        found = estimate(db, asked)
        assert found["at_least"] <= truth <= found["at_most"]
        if found["count"] >= 20:
            misses.append(abs(found["count"] - truth) / found["count"])
            covered.append(abs(found["count"] - truth) <= 2 * found["count_error"])
    assert len(misses) > 40
    assert statistics.median(misses) < 0.05
    assert statistics.mean(covered) > 0.6, statistics.mean(covered)


def test_the_forms_of_a_predicate(clinic: Connection) -> None:
    whole = estimate(clinic)["count"]
    assert whole == 60
    for predicate, same in (
        ({"age": [20, 40]}, {"age": "[20,41)"}),
        ({"age": 30}, {"age": [30, 30]}),
        ({"age": [None, 40]}, {"age": "(,40]"}),
        ({"town": "Ayr"}, {"town": ["Ayr"]}),
        ({"disease": "Flu"}, {"disease": ["Flu", "Flu", "unheard of"]}),
        ({"born": ["1995-01-01", None]}, {"born": "[1995-01-01,)"}),
        ({"income": [10.5, 2000]}, {"income": ["10.50", "2e3"]}),
    ):
        found = estimate(clinic, predicate)
        assert found == estimate(clinic, same)
        assert 0 < found["count"] < whole, predicate


def test_a_release_is_chosen(clinic: Connection) -> None:
    clinic.execute("DELETE FROM clinic WHERE id > 50")
    publish(clinic, "clinic")
    assert [estimate(clinic, release=n)["count"] for n in (1, 2, None)] == [60, 50, 50]


def test_a_column_that_came_later(db: Connection) -> None:
    make_clinic(db, 40, {"age": "integer", "town": "text"})
    publish(db, "clinic")
    db.execute("ALTER TABLE clinic ADD weight integer DEFAULT 70")
    db.execute("SELECT mdistinct_alter('clinic', qi_columns => '{age,town,weight}')")
    publish(db, "clinic")
    assert estimate(db, {"weight": [0, 140]}, release=2)["count"] == pytest.approx(40)
    assert estimate(db, {"age": [18, 78]}, release=1)["count"] == 40
    with refused(db, "42703", "release 1", "weight"):
        estimate(db, {"weight": [60, 80]}, release=1)
    with refused(db, "42703", "release 1", "weight"):
        estimate(db, measure="weight", release=1)


def test_the_greatest_values_have_a_range_without_an_end(db: Connection) -> None:
    db.execute(
        "CREATE TABLE ward AS SELECT id, 2147483648 - id AS age,"
        " 9223372036854775807 - id + 1 AS number, DATE '5874897-12-31' - id::int + 1 AS born,"
        " (%s::text[])[1 + id %% 4] AS disease FROM generate_series(1::bigint, 12) AS id",
        (list(DISEASES),),
    )
    db.execute("ALTER TABLE ward ALTER age TYPE integer")
    db.execute("SELECT mdistinct_register('ward', 'ward', 'id', '{age,number,born}', 'disease', 2)")
    allow_all(db, "ward")
    publish(db, "ward")
    everything = {
        "age": [2147483636, None],
        "number": ["9223372036854775796", None],
        "born": "[5874897-12-01,)",
    }
    found = estimate(db, everything, "age", dataset="ward")
    assert found["count"] == pytest.approx(12)
    assert found["avg"] == pytest.approx(2147483641.5, abs=0.5)
    assert 0 < found["avg_error"] < 2


def test_readers_may_ask_and_others_not(clinic: Connection) -> None:
    expected = estimate(clinic)
    with acting_as(clinic, "mdistinct_reader"):
        assert estimate(clinic) == expected
    with (
        acting_as(clinic, "mdistinct_publisher"),
        pytest.raises(psycopg.errors.InsufficientPrivilege, match="mdistinct_estimate"),
    ):
        estimate(clinic)


def test_who_may_not_read_a_release_may_not_ask_about_it(clinic: Connection) -> None:
    clinic.execute("REVOKE SELECT ON mdistinct_published.clinic FROM mdistinct_reader")
    clinic.execute("SET ROLE mdistinct_reader")
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="may not read"):
        estimate(clinic)


@pytest.mark.tampered
def test_no_microdata_are_read(clinic: Connection) -> None:
    expected = estimate(clinic, {"age": [20, 50]}, "age")
    clinic.execute("DROP TABLE clinic")
    for table in ("versions", "placement", "absent", "knowledge"):
        clinic.execute(
            sql.SQL("ALTER TABLE {} RENAME TO hidden_{}").format(
                sql.Identifier("mdistinct_data", f"clinic_{table}"), sql.SQL(table)
            )
        )
    assert estimate(clinic, {"age": [20, 50]}, "age") == expected


BAD_PREDICATES: tuple[tuple[dict[str, Any], str, str], ...] = (
    ({"height": 3}, "42703", "height"),
    ({"age": [1, 2, 3]}, "22023", "age"),
    ({"age": None}, "22023", "age"),
    ({"age": ["young", "old"]}, "22023", "age"),
    ({"age": [40, 20]}, "22023", "age"),
    ({"age": {"from": 1}}, "22023", "age"),
    ({"age": '["1","2"]\'; DROP TABLE clinic; --'}, "22023", "age"),
    ({"town": []}, "22023", "town"),
    ({"town": [None]}, "22023", "town"),
    ({"disease": [["Flu"]]}, "22023", "disease"),
)


def test_refusals(clinic: Connection) -> None:
    for predicate, sqlstate, word in BAD_PREDICATES:
        with refused(clinic, sqlstate, word):
            estimate(clinic, predicate)
    with refused(clinic, "42704", "nowhere"):
        estimate(clinic, dataset="nowhere")
    with refused(clinic, "42704", "clinic_counterfeits"):
        estimate(clinic, dataset="clinic_counterfeits")
    with refused(clinic, "22023", "no release 2"):
        estimate(clinic, release=2)
    with refused(clinic, "42804", "born"):
        estimate(clinic, measure="born")
    with refused(clinic, "42703", "disease"):
        estimate(clinic, measure="disease")
    with refused(clinic, "22023", "not a JSON object"):
        clinic.execute("SELECT mdistinct_estimate('clinic', 1, '[1]')")
    with refused(clinic, "22004", "predicate"):
        clinic.execute("SELECT mdistinct_estimate('clinic', 1, NULL)")


def test_names_are_quoted(db: Connection) -> None:
    db.execute('CREATE TABLE "a ""b" (id int, "q1\'; x" int, "s" text)')
    db.execute('INSERT INTO "a ""b" SELECT i, i, \'v\' || i % 2 FROM generate_series(1, 8) AS i')
    db.execute("""SELECT mdistinct_register('a "b', '"a ""b"', 'id', ARRAY['q1''; x'], 's', 2)""")
    allow_all(db, 'a "b', ("v0", "v1"))
    publish(db, 'a "b')
    assert estimate(db, {"q1'; x": [1, 8], "s": "v1"}, "q1'; x", dataset='a "b')["count"] == 4
