"""mdistinct_learn_updates."""

from __future__ import annotations

import csv
import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fix_database import acting_as
from tests.integration.cases import Connection, make_table, one, publish, refused

DATA = Path(__file__).parents[3] / "shared" / "data"
LEARN = "SELECT * FROM mdistinct_learn_updates('ward', 'panel', 'who', 'at', 'what'{})"

Observation = tuple[Any, Any, Any]
Report = dict[tuple[str, str], tuple[int, float, str | None]]


@pytest.fixture
def ward(db: Connection) -> Connection:
    """A registered dataset without a model, with Flu, Pneumonia, Gastritis and Dyspepsia."""
    make_table(db)
    db.execute("SELECT mdistinct_register('ward', 'ward', 'id', '{age}', 'disease', 2)")
    return db


def observe(db: Connection, rows: Iterable[Observation], order_type: str = "integer") -> None:
    db.execute("DROP TABLE IF EXISTS panel")
    db.execute(f"CREATE TABLE panel (who text, at {order_type}, what text)")
    with db.cursor().copy("COPY panel FROM STDIN") as copy:
        for row in rows:
            copy.write_row(row)


def careers(*careers: str) -> list[Observation]:
    """One individual for each text; its letters stand for diseases, "-" for no value."""
    names = {"F": "Flu", "P": "Pneumonia", "G": "Gastritis", "D": "Dyspepsia", "-": None}
    return [
        (f"p{i}", at, names[letter])
        for i, career in enumerate(careers)
        for at, letter in enumerate(career)
    ]


def learn(db: Connection, options: str = "") -> Report:
    rows = db.execute(LEARN.format(f", {options}" if options else "")).fetchall()
    return {(old, new): (seen, p, note) for old, new, seen, p, note in rows}


def model(db: Connection) -> dict[tuple[str, str], float]:
    rows = db.execute("SELECT old_value, new_value, probability FROM mdistinct.updates").fetchall()
    return {(old, new): probability for old, new, probability in rows}


def notes(report: Report, note: str | None) -> set[tuple[str, str]]:
    return {pair for pair, row in report.items() if row[2] == note}


def test_counts_become_probabilities(ward: Connection) -> None:
    observe(ward, careers("FFFP", "FP", "PPG", "GG", "DD"))
    report = learn(ward, "smoothing => 0, rare => 2")
    # Flu was followed by itself twice and by pneumonia twice.
    assert report["Flu", "Flu"] == (2, 0.5, None)
    assert report["Flu", "Pneumonia"] == (2, 0.5, None)
    assert report["Pneumonia", "Gastritis"] == (1, 0.5, "rare")
    assert report["Gastritis", "Flu"] == (0, 0.0, "impossible")
    assert len(report) == 16
    assert model(ward) == {pair: p for pair, (_, p, note) in report.items() if note != "impossible"}


def test_the_order_is_that_of_the_column_and_not_of_the_table(ward: Connection) -> None:
    rows = careers("FPG", "FPG", "DD")
    random.Random(1).shuffle(rows)
    observe(ward, rows)
    report = learn(ward)
    assert report["Flu", "Pneumonia"][0] == report["Pneumonia", "Gastritis"][0] == 2
    assert report["Gastritis", "Dyspepsia"][0] == 0


def test_smoothing_is_added_to_what_is_possible(ward: Connection) -> None:
    observe(ward, careers("FFF", "FP", "PP", "GG", "DD"))
    report = learn(ward, "smoothing => 1")
    assert report["Flu", "Flu"][1] == pytest.approx((2 + 1) / (3 + 2))
    assert report["Flu", "Pneumonia"][1] == pytest.approx((1 + 1) / (3 + 2))
    assert report["Flu", "Gastritis"][1] == 0


def test_every_value_may_stay_what_it_is(ward: Connection) -> None:
    observe(ward, careers("FP", "PF", "GD", "DG"))
    report = learn(ward)
    for value in ("Flu", "Pneumonia", "Gastritis", "Dyspepsia"):
        assert report[value, value] == (0, 0.25, "unseen")
    publish(ward)
    with refused(ward, "22023", "could not become", "Dyspepsia"):
        learn(ward, "smoothing => 0")


@pytest.mark.parametrize(("possible", "pairs"), [("observed", 1), ("symmetric", 2), ("all", 12)])
def test_which_updates_are_possible(ward: Connection, possible: str, pairs: int) -> None:
    observe(ward, careers("FFP", "PP", "GG", "DD"))
    report = learn(ward, f"possible => '{possible}'")
    changes = [pair for pair in model(ward) if pair[0] != pair[1]]
    assert len(changes) == pairs
    assert len(notes(report, "unseen")) == pairs - 1
    assert len(notes(report, "impossible")) == 12 - pairs
    for old in ("Flu", "Pneumonia", "Gastritis", "Dyspepsia"):
        assert sum(p for pair, p in model(ward).items() if pair[0] == old) == pytest.approx(1)


def test_an_unseen_update_is_not_silently_impossible(ward: Connection) -> None:
    observe(ward, careers("FFP", "PP", "GG", "DD"))
    with refused(ward, "22023", "never seen but is to be possible"):
        learn(ward, "smoothing => 0, possible => 'all'")


def test_missing_values_make_no_neighbours(ward: Connection) -> None:
    observe(ward, [*careers("F-P", "GG", "PP", "DD", "FF"), (None, 1, "Flu"), ("p9", None, "Flu")])
    told: list[str] = []
    ward.add_notice_handler(lambda notice: told.append(notice.message_primary or ""))
    report = learn(ward)
    assert report["Flu", "Pneumonia"] == (0, 0.0, "impossible")
    assert "left out: observations without an individual or a moment: 2" in told
    assert "left out: pairs of observations of which one has no value: 2" in told


def test_values_of_the_source_that_the_history_lacks(ward: Connection) -> None:
    observe(ward, careers("FFP", "PP"))
    told: list[tuple[str | None, ...]] = []
    ward.add_notice_handler(lambda d: told.append((d.severity, d.message_primary, d.message_hint)))
    report = learn(ward)
    assert report["Gastritis", "Gastritis"] == (0, 1.0, "unseen")
    publish(ward)
    ((severity, message, hint),) = told
    assert severity == "WARNING"
    assert message == (
        "4 values of 4 had fewer than 30 updates to learn from:"
        ' "Dyspepsia" (0), "Gastritis" (0), "Pneumonia" (1), "Flu" (2)'
    )
    assert hint
    report = learn(ward, "possible => 'all'")
    assert report["Gastritis", "Flu"] == (0, 0.25, "unseen")


def test_no_warning_where_data_suffice(ward: Connection) -> None:
    observe(ward, careers(*["FPFPF", "GDGDG"] * 20))
    told: list[Any] = []
    ward.add_notice_handler(told.append)
    learn(ward)
    assert told == []
    learn(ward, "thin => 41")
    assert len(told) == 1


def test_observations_far_apart_are_left_out(ward: Connection) -> None:
    rows = [("a", 1, "Flu"), ("a", 2, "Flu"), ("a", 4, "Pneumonia"), ("b", 1, "Pneumonia")]
    observe(ward, [*rows, ("b", 2, "Pneumonia")])
    assert learn(ward, "max_gap => '1'")["Flu", "Pneumonia"][0] == 0
    assert learn(ward, "max_gap => '2'")["Flu", "Pneumonia"][0] == 1
    dated = [(who, f"2020-0{at}-01", what) for who, at, what in rows]
    for kind in ("date", "timestamp", "timestamptz"):
        observe(ward, dated, kind)
        assert learn(ward, "max_gap => '1 month'")["Flu", "Pneumonia"][0] == 0
        assert learn(ward, "max_gap => '2 months'")["Flu", "Pneumonia"][0] == 1
    with refused(ward, "22023", "max_gap", "soon"):
        learn(ward, "max_gap => 'soon'")
    observe(ward, dated, "text")
    with refused(ward, "22023", "max_gap", "text"):
        learn(ward, "max_gap => '1'")


def test_values_are_those_of_the_sources_type(db: Connection) -> None:
    make_table(db)
    db.execute("ALTER TABLE ward ALTER disease TYPE numeric USING 1.50 + id % 2")
    db.execute("SELECT mdistinct_register('ward', 'ward', 'id', '{age}', 'disease', 2)")
    observe(db, [("a", 1, "1.5"), ("a", 2, "1.500"), ("a", 3, "2.50"), ("b", 1, "2.5")])
    report = learn(db)
    assert report.keys() == {(a, b) for a in ("1.5", "2.5") for b in ("1.5", "2.5")}
    assert report["1.5", "1.5"][0] == 1
    observe(db, [("a", 1, "1.5"), ("a", 2, "ill")])
    with refused(db, "22P02", "ill"):
        learn(db)


def test_looking_first(ward: Connection) -> None:
    observe(ward, careers("FFP", "PP", "GG", "DD"))
    report = learn(ward, "apply => false")
    assert model(ward) == {}
    assert learn(ward) == report
    assert model(ward) != {}


def test_called_again_it_replaces_the_rows(ward: Connection) -> None:
    observe(ward, careers("FFP", "PP", "GG", "DD"))
    learn(ward, "possible => 'all'")
    assert len(model(ward)) == 16
    learn(ward)
    assert len(model(ward)) == 5


def test_ties_are_refused(ward: Connection) -> None:
    observe(ward, [("a", 1, "Flu"), ("a", 1, "Pneumonia"), ("b", 1, "Flu"), ("b", 2, "Flu")])
    with refused(ward, "23505", "1 individual", "a at 1"):
        learn(ward)


def test_refusals(ward: Connection) -> None:
    observe(ward, careers("F", "P"))
    with refused(ward, "02000", "two values in a row"):
        learn(ward)
    observe(ward, careers("FFP", "PP"))
    for options, sqlstate, word in (
        ("smoothing => -1", "22023", "smoothing"),
        ("smoothing => 'NaN'", "22023", "smoothing"),
        ("smoothing => 'Infinity'", "22023", "smoothing"),
        ("smoothing => NULL", "22004", "smoothing"),
        ("possible => 'some'", "22023", "some"),
    ):
        with refused(ward, sqlstate, word):
            learn(ward, options)
    for statement, sqlstate, word in (
        ("('nowhere', 'panel', 'who', 'at', 'what')", "42704", "nowhere"),
        ("('ward', 'panel', 'whom', 'at', 'what')", "42703", "whom"),
        ("('ward', NULL, 'who', 'at', 'what')", "22004", "source"),
    ):
        with refused(ward, sqlstate, word):
            ward.execute(f"SELECT * FROM mdistinct_learn_updates{statement}")


def test_a_model_that_cannot_work_is_refused(ward: Connection) -> None:
    ward.execute("SELECT mdistinct_drop('ward')")
    ward.execute("SELECT mdistinct_register('ward', 'ward', 'id', '{age}', 'disease', 5)")
    observe(ward, careers("FFP", "PP", "GG", "DD"))
    with refused(ward, "MD003", "m = 5"):
        learn(ward)


def test_the_history_is_read_with_the_rights_of_the_caller(ward: Connection) -> None:
    observe(ward, careers("FFP", "PP", "GG", "DD"))
    with (
        acting_as(ward, "mdistinct_admin"),
        pytest.raises(psycopg.errors.InsufficientPrivilege, match="panel"),
    ):
        learn(ward)
    ward.execute("GRANT SELECT ON panel TO mdistinct_admin")
    with acting_as(ward, "mdistinct_admin"):
        assert learn(ward)
    with (
        acting_as(ward, "mdistinct_publisher"),
        pytest.raises(psycopg.errors.InsufficientPrivilege, match="mdistinct_learn_updates"),
    ):
        learn(ward)


def test_names_are_quoted(ward: Connection) -> None:
    ward.execute('CREATE TABLE "a ""{b}" ("w ho" int, "o""rder" int, "{value}" text)')
    ward.execute("""INSERT INTO "a ""{b}" VALUES (1, 1, 'Flu'), (1, 2, 'Pneumonia')""")
    rows = ward.execute(
        """SELECT * FROM mdistinct_learn_updates(
            'ward', '"a ""{b}"', 'w ho', 'o"rder', '{value}')"""
    ).fetchall()
    assert ("Flu", "Pneumonia", 1) in [row[:3] for row in rows]


def simulate(
    matrix: Sequence[Sequence[float]], people: int, waves: int, draw: random.Random
) -> list[Observation]:
    """Careers that a Markov chain makes."""
    values = range(len(matrix))
    rows: list[Observation] = []
    for person in range(people):
        value = draw.choice(values)
        for wave in range(waves):
            rows.append((person, wave, f"v{value}"))
            value = draw.choices(values, matrix[value])[0]
    return rows


@st.composite
def matrices(draw: st.DrawFn) -> list[list[float]]:
    """Random transition matrices, some of whose updates are impossible."""
    size = draw(st.integers(2, 5))
    rows = []
    for i in range(size):
        weights = [draw(st.sampled_from([0, 1, 2, 5])) for _ in range(size)]
        weights[i] += 1
        rows.append([weight / sum(weights) for weight in weights])
    return rows


def test_a_known_matrix_is_recovered(db: Connection) -> None:
    db.execute("CREATE TABLE ward (id int, age int, disease text)")

    @settings(max_examples=8, database=None)
    @given(matrices(), st.integers(0, 1_000))
    def recovers(matrix: list[list[float]], seed: int) -> None:
        with db.transaction(force_rollback=True):
            db.execute("SELECT mdistinct_register('ward', 'ward', 'id', '{age}', 'disease', 2)")
            observe(db, simulate(matrix, 600, 8, random.Random(seed)))
            report = learn(db, "smoothing => 0.1")
        for i, row in enumerate(matrix):
            observed = sum(report[f"v{i}", f"v{j}"][0] for j in range(len(matrix)))
            for j, p in enumerate(row):
                seen, learnt, _ = report[f"v{i}", f"v{j}"]
                if p == 0:
                    assert (seen, learnt) == (0, 0.0)
                elif observed >= 50:
                    # Five standard errors, and what smoothing moves.
                    room = 5 * (p * (1 - p) / observed) ** 0.5 + 0.5 / observed
                    assert abs(learnt - p) <= room, (i, j, p, learnt, observed)

    recovers()


PANELS: dict[str, tuple[Callable[[dict[str, str]], str], str, str]] = {
    "gss_panels_long.csv": (lambda r: f"{r['panel']}-{r['firstid']}", "wave", "wrkstat"),
    "brains_cognitive.csv": (lambda r: r["ID"], "visitno", "custate"),
    "cav_heart_transplant.csv": (lambda r: r["PTNUM"], "years", "state"),
}


@pytest.mark.parametrize("name", PANELS)
def test_real_panels(db: Connection, name: str) -> None:
    path = DATA / name
    if not path.exists():
        pytest.skip(f"the panel {name} is not on this machine")
    who, at, what = PANELS[name]
    with path.open(newline="", encoding="utf-8") as lines:
        rows = [(who(row), float(row[at]), row[what] or None) for row in csv.DictReader(lines)]
    rows = [(person, moment, None if v == "NA" else v) for person, moment, v in rows]
    observe(db, rows, "float8")
    db.execute(
        "CREATE TABLE ward AS SELECT DISTINCT ON (who) who, 1 AS age, what FROM panel"
        " WHERE what IS NOT NULL ORDER BY who, at"
    )
    db.execute("SELECT mdistinct_register('ward', 'ward', 'who', '{age}', 'what', 2)")
    report = learn(db, "smoothing => 0.5")
    expected = pairs(rows)
    assert {pair: row[0] for pair, row in report.items() if row[0]} == expected
    for old in {pair[0] for pair in report}:
        assert sum(p for pair, (_, p, _) in report.items() if pair[0] == old) == pytest.approx(1)
    if name.startswith("brains"):
        # 4 never returns to 1, 2 or 3, and 5 to 7 are ends.
        assert {("4", "1"), ("4", "2"), ("4", "3"), ("7", "1")} <= notes(report, "impossible")
    if name.startswith("gss"):
        publish(db)
        assert one(db, "SELECT count(*) FROM mdistinct_verify('ward')") == 0


def pairs(rows: Iterable[Observation]) -> Counter[tuple[str, str]]:
    """The same counts, by hand."""
    found: Counter[tuple[str, str]] = Counter()
    for (who, _, old), (other, _, new) in pairwise(sorted(rows, key=lambda row: row[:2])):
        if who == other and old is not None and new is not None:
            found[old, new] += 1
    return found
