"""What the experiments say about the paper, checked by other means on small data."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise, product
from math import prod
from pathlib import Path

import numpy as np
import pytest

from pg_mdistinct.core.attack import attack
from pg_mdistinct.core.model import M_DISTINCT, M_DISTINCT_STAR, M_INVARIANCE, UpdateModel
from pg_mdistinct.core.verify import find_violations
from pg_mdistinct.experiments import accuracy, bound, disclosure, staying
from pg_mdistinct.experiments.bound import CASES, Case
from pg_mdistinct.experiments.invariance import in_signature, publish_invariant
from pg_mdistinct.experiments.publications import published
from pg_mdistinct.experiments.publisher import Publisher
from pg_mdistinct.experiments.registry import Setting, Table
from pg_mdistinct.experiments.store import as_csv
from pg_mdistinct.workload import Workload

TINY = Setting(0.01)
FIGURES = Path(__file__).parents[2] / "docs" / "experiments"


def silent(words: str, share: float) -> None:
    """Nobody looks."""


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_bound_agrees_with_all_paths(case: Case) -> None:
    """Every path is gone through and weighed in fractions, as in the paper."""
    for releases in range(1, 5):
        groups = [case.group(release, releases) for release in range(1, releases + 1)]
        weight = {path: path_weight(case, path) for path in product(*groups)}
        own = sum((w for path, w in weight.items() if path[-1] == 0), Fraction(0))
        found = attack(case.history(releases), case.model())
        assert found.risk[-1] == pytest.approx(float(own / sum(weight.values())))
        assert found.pruned == 0


def path_weight(case: Case, path: tuple[int, ...]) -> Fraction:
    steps = pairwise(path)
    chances = [Fraction(case.transition[a, b]).limit_denominator(1000) for a, b in steps]
    return prod(chances, start=Fraction(1))


def test_cases_keep_to_the_definitions() -> None:
    """The last one by the letter only: its groups need no one-to-one matching."""
    for case in CASES:
        history = case.history(5)
        star = case.name.startswith(M_DISTINCT_STAR)
        variant = M_DISTINCT_STAR if star else M_DISTINCT
        broken = find_violations(history, case.model(), [case.m] * len(history.rows), variant)
        expected = set() if star else {"one-to-one matching"}
        assert {violation.rule for violation in broken} == expected


def test_bound_holds_only_where_classes_are_alike() -> None:
    table = bound.risks_by_release(Setting(), silent).tables[0]
    worst: dict[object, float] = {}
    for name, m, _, risk, _ in table.rows:
        assert isinstance(risk, float)
        assert isinstance(m, int)
        worst[name] = max(worst.get(name, 0.0), risk * m)
    alike, *others = worst.values()
    assert alike == pytest.approx(1.0)
    assert min(others) > 1.9


def test_committed_table_of_the_bound_is_what_is_computed() -> None:
    table = bound.risks_by_release(Setting(), silent).tables[0]
    assert (FIGURES / "bound.csv").read_text(encoding="utf-8") == as_csv(table)


@pytest.mark.parametrize("m", [2, 4])
def test_invariance_has_no_invalid_records_unless_values_change(m: int) -> None:
    assert not any(found.invalid for found in publish_invariant(TINY, m, 1, 5))
    changing = publish_invariant(TINY, m, 10, 5)
    assert changing[0].invalid == 0
    assert all(found.invalid > 0 for found in changing[1:])


def test_invalid_records_are_those_whose_value_left_their_signature() -> None:
    workload = Workload(d=5, initial=300, insertions=60, deletions=30, updates=80)
    publisher = Publisher(UpdateModel.unchanging(workload.model()[0]), 3, M_INVARIANCE)
    signature: dict[int, set[int]] = {}
    invalid = 0
    for people in workload.releases(4):
        valid = in_signature(publisher.snapshot(people))
        for row, ok in zip(people.tolist(), valid.tolist(), strict=True):
            assert ok == (row[-1] in signature.get(row[0], {row[-1]}))
        invalid += int((~valid).sum())
        release = publisher.publish(people[valid])
        for person, group in zip(people["id"][valid].tolist(), release.group, strict=True):
            values = set(release.candidates.row(int(group)).tolist())
            assert signature.setdefault(person, values) == values, "the same values every time"
    assert invalid > 50


def test_smaller_diameters_and_smaller_l_disclose_more() -> None:
    table = disclosure.versus_d(TINY, silent).tables[0]
    share = {(size, d): float(str(found)) for size, d, _, _, found in table.rows}
    for size in (2, 4, 6, 8):
        assert share[size, 1] > share[size, 5] > share[size, 25] >= share[size, 50] == 0
    for d in (1, 2, 5, 10):
        assert share[2, d] > share[4, d] > share[6, d] > share[8, d]


def test_larger_groups_disclose_less() -> None:
    table = disclosure.versus_groups(TINY, silent).tables[0]
    share = dict(
        zip(
            zip(*map(table.column, ("groups", "l")), strict=True),
            table.column("share"),
            strict=True,
        )
    )
    assert float(str(share["exact", 2])) > 1.2 * float(str(share["mondrian, distinct", 2])) > 0


def test_what_cannot_be_published_is_said_in_the_table() -> None:
    """There are 50 / d disjoint classes of values: fewer than m are too few for m-Distinct*."""
    *_, refused = accuracy.at_diameter(TINY, M_DISTINCT_STAR, 25)
    assert "m = 4 cannot be met" in str(refused)
    for variant in (M_DISTINCT, M_DISTINCT_STAR):
        *_, error, ncp, refused = accuracy.at_diameter(TINY, variant, 10)
        assert float(str(error)) > 0
        assert 0 < float(str(ncp)) < 1
        assert refused is None


def test_publications_are_the_same_every_time() -> None:
    first = published(TINY, 4, 5, releases=3).releases
    published.cache_clear()
    assert published(TINY, 4, 5, releases=3).releases == first
    assert published(Setting(0.01, seed=1), 4, 5, releases=3).releases != first


def test_risk_grows_when_values_stay() -> None:
    table = staying.versus_time(TINY, silent).tables[0]
    last = rows_of_last_release(table)
    # A few of so few records are in groups that are not balanced.
    assert last["10% stay"]["mean_risk"] <= 0.25
    assert last["10% stay"]["above_1/m"] < 0.1
    means = [figures["mean_risk"] for figures in last.values()]
    assert means == sorted(means)
    assert last["97% stay"]["above_1/m"] > 0.2
    assert all(figures["disclosed"] == 0 for figures in last.values())


def rows_of_last_release(table: Table) -> dict[str, dict[str, float]]:
    return {
        str(row[0]): dict(zip(table.columns[1:], map(float, map(str, row[1:])), strict=True))
        for row in table.rows
        if row[1] == staying.RELEASES
    }


def test_models_of_staying_are_those_of_the_microdata() -> None:
    for share in staying.STAYING:
        workload = staying.workload(Setting(0.1), share)
        transition = staying.model(workload, share).transition
        np.testing.assert_allclose(transition.sum(axis=1), 1.0)
        np.testing.assert_allclose(np.diagonal(transition), share)
        first, second = workload.releases(2)
        _, old, new = np.intersect1d(first["id"], second["id"], return_indices=True)
        same = (first["occupation"][old] == second["occupation"][new]).mean()
        assert same == pytest.approx(share, abs=0.001)
