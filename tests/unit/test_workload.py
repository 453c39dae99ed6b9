"""The generated workload has the sizes, domains, skew and updates of the paper's set-up."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from pg_mdistinct.workload import MARITAL, OCCUPATIONS, SnapshotArray, Workload


def frequencies(snapshot: SnapshotArray) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.bincount(snapshot["occupation"], minlength=OCCUPATIONS) / len(snapshot)


def neighbours(workload: Workload, n: int) -> list[tuple[SnapshotArray, SnapshotArray]]:
    """For each pair of releases, the records that are in both, in the same order."""
    releases = list(workload.releases(n))
    pairs = []
    for old, new in pairwise(releases):
        _, in_old, in_new = np.intersect1d(old["id"], new["id"], return_indices=True)
        pairs.append((old[in_old], new[in_new]))
    return pairs


def test_sizes_of_the_experiments() -> None:
    sizes = [len(snapshot) for snapshot in Workload().releases(20)]
    assert sizes == [20_000 + 3_000 * i for i in range(20)]
    assert sizes[-1] == 77_000


def test_domains() -> None:
    for snapshot in Workload(initial=5_000).releases(5):
        assert len(np.unique(snapshot["id"])) == len(snapshot)
        for column, low, high in [
            ("age", 1, 100),
            ("gender", 0, 1),
            ("marital", 0, 5),
            ("education", 0, 16),
            ("occupation", 0, 49),
        ]:
            assert snapshot[column].min() >= low
            assert snapshot[column].max() <= high
        assert (np.bincount(snapshot["occupation"], minlength=OCCUPATIONS) > 0).all()


@pytest.mark.parametrize("seed", [1, 2, 2008])
def test_skewed_but_eligible_for_m_8(seed: int) -> None:
    releases = list(Workload(seed=seed).releases(20))
    assert 0.07 <= frequencies(releases[0]).max() <= 0.10
    assert all(frequencies(snapshot).max() <= 0.10 for snapshot in releases)


def explained(numbers: np.ndarray[Any, Any], by: np.ndarray[Any, Any]) -> float:
    """The share of the variance that lies between groups."""
    means = np.bincount(by, weights=numbers) / np.maximum(np.bincount(by), 1)
    return float(means[by].var() / numbers.var())


def test_correlated_like_real_microdata() -> None:
    snapshot = next(Workload().releases(1))
    occupation = snapshot["occupation"]
    assert np.corrcoef(snapshot["education"], occupation)[0, 1] > 0.5
    assert 0.25 < explained(snapshot["education"], occupation) < 0.40
    assert 0.15 < explained(snapshot["gender"], occupation) < 0.30
    assert 0.02 < explained(snapshot["age"], occupation) < 0.08
    ages = [snapshot["age"][snapshot["marital"] == status].mean() for status in range(6)]
    single, widowed = MARITAL.index("never-married"), MARITAL.index("widowed")
    assert ages[single] < ages[1] < ages[widowed]


@pytest.mark.parametrize("d", [1, 5, 7, 10])
def test_updates_obey_the_model_and_the_rules_of_each_attribute(d: int) -> None:
    workload = Workload(d=d, initial=8_000)
    _, transition = workload.model()
    for old, new in neighbours(workload, 4):
        assert (transition[old["occupation"], new["occupation"]] > 0).all()
        assert (new["age"] == np.minimum(old["age"] + 1, 100)).all()
        assert (new["gender"] == old["gender"]).all()
        assert (new["education"] >= old["education"]).all()
        assert (old["marital"][new["marital"] == 0] == 0).all()


@pytest.mark.parametrize(("d", "changed"), [(10, 5_000), (5, 5_000), (1, 0)])
def test_number_of_sensitive_updates(d: int, changed: int) -> None:
    for old, new in neighbours(Workload(d=d), 3):
        assert len(old) >= 18_000
        assert (old["occupation"] != new["occupation"]).sum() == changed


def test_a_changed_occupation_is_equally_likely_to_be_any_other_of_its_class() -> None:
    counts = np.zeros(10)
    for old, new in neighbours(Workload(), 5):
        moved = old["occupation"] != new["occupation"]
        shift = (new["occupation"][moved] - old["occupation"][moved]) % 10
        counts += np.bincount(shift, minlength=10)
    assert counts[0] == 0
    assert counts[1:].min() > 0.9 * counts.sum() / 9


@pytest.mark.parametrize("d", [1, 7, 10, 50])
def test_model_rows_are_probabilities_over_the_own_class(d: int) -> None:
    labels, transition = Workload(d=d).model()
    assert len(labels) == OCCUPATIONS
    assert np.allclose(transition.sum(axis=1), 1)
    assert (transition[0] > 0).sum() == d


def test_same_seed_same_releases() -> None:
    first, again, other = (
        list(Workload(seed=seed, initial=1_000).releases(3)) for seed in (1, 1, 2)
    )
    assert all((a == b).all() for a, b in zip(first, again, strict=True))
    assert any((a != b).any() for a, b in zip(first, other, strict=True))


def test_more_deletions_than_records_empty_the_table() -> None:
    workload = Workload(initial=10, deletions=100, insertions=0, updates=5)
    assert [len(snapshot) for snapshot in workload.releases(3)] == [10, 0, 0]


def test_d_must_fit_the_domain() -> None:
    with pytest.raises(ValueError, match="between 1 and 50"):
        Workload(d=0)
