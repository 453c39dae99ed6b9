"""Real panels, here made up: files of the same form are read, published and attacked."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from pg_mdistinct.cli import main
from pg_mdistinct.core.learning import ALL, SYMMETRIC, Counts, learned
from pg_mdistinct.core.model import M_DISTINCT, M_DISTINCT_STAR, M_INVARIANCE
from pg_mdistinct.experiments import panels, panels_data
from pg_mdistinct.experiments.panels_data import Observation, Panel, panel_of
from pg_mdistinct.experiments.registry import Setting, Skipped

WHOLE = Setting()
STATES = {"1": "1123", "2": "123", "3": "34"}
"""What follows a state: nobody is seen again after state 4."""


def write(path: Path, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(rows)


def course(rng: np.random.Generator) -> list[str]:
    """The states of one person, visit by visit."""
    states = [str(rng.choice(list("1123")))]
    while states[-1] in STATES and len(states) < 12:
        states.append(str(rng.choice(list(STATES[states[-1]]))))
    return states


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with made-up files of all the forms."""
    monkeypatch.setenv(panels_data.VARIABLE, str(tmp_path))
    rng = np.random.default_rng(1)
    courses = [course(rng) for _ in range(60)]
    visits = [(i, k, state) for i, states in enumerate(courses) for k, state in enumerate(states)]
    write(
        tmp_path / "brains_cognitive.csv",
        ("ID", "visitno", "custate", "bagec", "lowed", "smk1", "smk2", "smk3", "famhx"),
        [(i, 100 * i + k, s, i % 20 - 9, i % 2, 0, 0, i % 3 == 1, i % 2) for i, k, s in visits],
    )
    write(
        tmp_path / "cav_heart_transplant.csv",
        ("PTNUM", "age", "years", "dage", "sex", "pdiag", "state"),
        [
            (i, 50.5 + k, k + 0.1, 20 + i % 30, i % 2, "IHD" if i % 3 else "", s)
            for i, k, s in visits
        ],
    )
    waves = [(p, i, w) for p in (2006, 2008, 2010) for i in range(20) for w in range(3)]
    write(
        tmp_path / "gss_panels_long.csv",
        ("panel", "firstid", "year", "age", "sex", "race", "degree", "health"),
        [
            (p, i, p + 2 * w, "89 or Older" if i == 7 else 20 + i + 2 * w,
             ("Male", "Female")[i % 2], ("White", "Black", "Other")[i % 3],
             ("High School", "Bachelor", "")[min(i // 9, 2)],
             ("Good", "Fair", "")[(i + w * (i % 4 == 0)) % 3])
            for p, i, w in waves
        ],
    )  # fmt: skip
    write(
        tmp_path / "atus_occ50.csv",
        ("id", "age", "sex", "marital", "edu", "occ"),
        [
            (i, 20 + i % 50, ("male", "female")[i % 2], ("married", "never married")[i % 2],
             ("hs diploma", "bachelor's degree")[i % 2], f"work {i % 50:02}")
            for i in range(1_100)
        ],
    )  # fmt: skip
    return tmp_path


def test_without_data_experiments_are_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(panels_data.VARIABLE, str(tmp_path))
    for experiment in panels.EXPERIMENTS:
        with pytest.raises(Skipped, match="data are absent"):
            experiment.run(WHOLE, lambda words, share: None)


def test_the_command_says_what_is_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(panels_data.VARIABLE, str(tmp_path))
    result = CliRunner().invoke(main, ["experiment", "panels", "-o", str(tmp_path / "out")])
    assert result.exit_code == 0
    assert "panels: skipped: data are absent" in result.output
    assert not (tmp_path / "out").exists()


def test_a_moment_without_a_value_lies_between_two_with_one() -> None:
    qi = (40, 0, 0, 0)
    seen = [
        Observation("a", 1, qi, "x"),
        Observation("a", 2, qi, None),
        Observation("a", 3, qi, "y"),
        Observation("b", 1, qi, "y"),
        Observation("b", 3, qi, "y"),
    ]
    panel = panel_of("made up", seen, WHOLE)
    assert dict(panel.counts.seen) == {("y", "y"): 1}
    assert [people["id"].tolist() for people in panel.snapshots] == [[0, 1], [0, 1]]
    assert [people["occupation"].tolist() for people in panel.snapshots] == [[0, 1], [1, 1]]


def test_a_smaller_scale_has_fewer_people(data: Path) -> None:
    everybody = panels_data.cognition(WHOLE)
    some = panels_data.cognition(Setting(0.5))
    assert len(everybody.snapshots[0]) == 60
    assert len(some.snapshots[0]) == 30


@pytest.mark.parametrize(
    ("load", "releases", "values"),
    [
        (panels_data.cognition, 10, 4),
        (panels_data.transplants, 9, 4),
        (lambda setting: panels_data.social_survey("health", setting), 5, 2),
        (lambda setting: panels_data.time_use(Setting(0.01)), 17, 50),
    ],
)
def test_panels_are_read(
    data: Path, load: Callable[[Setting], Panel], releases: int, values: int
) -> None:
    panel = load(WHOLE)
    assert (len(panel.snapshots), len(panel.labels)) == (releases, values)
    for people in panel.snapshots:
        assert len(np.unique(people["id"])) == len(people) > 0
    model = panel.learned_model()
    assert np.allclose(model.transition.sum(axis=1), 1)
    assert np.diagonal(model.transition).all()
    assert np.array_equal(panel.equal_model().reach(1), model.reach(1))


def test_surveys_overlap(data: Path) -> None:
    sizes = [len(people) for people in panels_data.social_survey("health", WHOLE).snapshots]
    assert sizes[0] < sizes[1] < sizes[2] > sizes[3] > sizes[4]


def test_people_of_the_time_use_survey_come_once(data: Path) -> None:
    panel = panels_data.time_use(Setting(0.01))
    assert [len(people) for people in panel.snapshots] == [200 + 30 * n for n in range(17)]
    old, new = np.nonzero(panel.learned_model().transition)
    assert np.array_equal(old // 10, new // 10)


def test_nothing_can_be_excluded_from_what_the_core_publishes(data: Path) -> None:
    panel = panels_data.cognition(WHOLE)
    for method in (M_DISTINCT, M_INVARIANCE):
        row = dict(zip(panels.COLUMNS, panels.figures(panel, method, 3, WHOLE), strict=True))
        assert (row["disclosed"], row["narrowed"], row["refused"]) == (0, 0, None)
        assert (row["left_out"] == 0) == (method == M_DISTINCT)
        assert isinstance(row["counterfeits_a_group"], float)
        assert row["counterfeits_a_group"] > 0


def test_what_cannot_be_published_says_why(data: Path) -> None:
    panel = panels_data.cognition(WHOLE)
    refused = panels.figures(panel, M_DISTINCT_STAR, 3, WHOLE)
    assert "cannot be met" in str(refused[-1])
    assert len(refused) == len(panels.COLUMNS)


def test_all_methods_are_compared(data: Path) -> None:
    (experiment,) = (found for found in panels.EXPERIMENTS if found.name == "panel-transplants")
    outcome = experiment.run(WHOLE, lambda words, share: None)
    (table,) = outcome.tables
    assert len(table.rows) == 3 * len(panels.METHODS)
    assert {chart.y for chart in outcome.charts} == {"learned_mean_risk", "median_error"}


def test_who_is_there_again_was_not_at_an_end(data: Path) -> None:
    panel = panels_data.cognition(WHOLE)
    ends = panel.model_with_ends().transition.sum(axis=1)
    assert dict(zip(panel.labels, ends > 0, strict=True)) == {
        "1": True,
        "2": True,
        "3": True,
        "4": False,
    }


def test_who_has_come_to_an_end_stays_in_the_table(data: Path) -> None:
    without, kept = panels_data.cognition(WHOLE), panels_data.cognition_with_ends(WHOLE)
    at_end = without.labels.index("4")
    for before, after in pairwise(kept.snapshots):
        ended = before["id"][before["occupation"] == at_end]
        assert np.isin(ended, after["id"][after["occupation"] == at_end]).all()
        assert len(np.unique(after["id"])) == len(after)
    assert len(kept.snapshots[-1]) > len(without.snapshots[-1])
    assert kept.model_with_ends().transition.sum(axis=1) == pytest.approx(1)


@pytest.mark.parametrize(
    ("possible", "expected"),
    [
        ("observed", {"a": {"a": 0.5, "b": 0.5}, "b": {"b": 1.0}}),
        (SYMMETRIC, {"a": {"a": 0.5, "b": 0.5}, "b": {"a": 0.1, "b": 0.9}}),
        (ALL, {"a": {"a": 0.5, "b": 0.5}, "b": {"a": 0.1, "b": 0.9}}),
    ],
)
def test_a_model_is_learned(possible: str, expected: dict[str, dict[str, float]]) -> None:
    counts = Counts({("a", "a"): 3, ("a", "b"): 3, ("b", "b"): 4}, ("a", "b"))
    found = learned(counts, possible, 0.5)
    assert found == {old: pytest.approx(row) for old, row in expected.items()}
