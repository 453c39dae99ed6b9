"""The project's own checker: silent on what the core publishes, loud on what is broken."""

from __future__ import annotations

import numpy as np
import pytest

from pg_mdistinct.core.arrays import Ragged
from pg_mdistinct.core.history import History, sorted_history
from pg_mdistinct.core.model import UpdateModel
from pg_mdistinct.core.verify import find_violations
from tests.core_history import CoreHistory
from tests.oracle.history import Release, one_step
from tests.strategies import random_history
from tests.unit.test_update_graph import as_arrays, as_model

LABELS = ["a", "b", "c", "d"]
PAIRS = UpdateModel(np.kron(np.eye(2), np.full((2, 2), 0.5)), np.ones(4, dtype=np.bool_), LABELS)
"""a and b may become each other, and so may c and d."""


def history_of(
    groups: list[tuple[int, list[int], int]], versions: list[tuple[int, int, int]]
) -> History:
    """Groups as (release, values, counterfeits), versions as (record, group row, value)."""
    record, group, value = np.array(versions, dtype=np.int64).T
    return sorted_history(
        release=np.array([release for release, _, _ in groups]),
        gid=np.arange(1, len(groups) + 1),
        rows=Ragged.of([values for _, values, _ in groups]),
        counterfeits=np.array([counterfeits for _, _, counterfeits in groups]),
        record=record,
        group=group,
        value=value,
    )


def rules(history: History, m: int = 2, variant: str = "m-distinct") -> set[str]:
    found = find_violations(history, PAIRS, [m] * len(history.rows), variant)
    return {violation.rule for violation in found}


GOOD = [(1, [0, 2], 1), (2, [1, 3], 1)]
T = [(0, 0, 0), (0, 1, 1)]


def test_a_good_history_has_no_violation() -> None:
    assert rules(history_of(GOOD, T)) == set()
    assert rules(history_of(GOOD, T), variant="m-distinct*") == set()


@pytest.mark.parametrize(
    ("groups", "versions", "rule"),
    [
        ([(1, [0], 0)], [(0, 0, 0)], "m-unique"),
        ([(1, [0, 0], 1)], [(0, 0, 0)], "m-unique"),
        ([(1, [0, 2], 0)], [(0, 0, 0)], "counterfeit count"),
        ([(1, [0, 2], 1)], [(0, 0, 1)], "own value"),
        ([(1, [0, 2], 1), (1, [0, 2], 1)], [(0, 0, 0), (0, 1, 0)], "one group a release"),
        ([(1, [0, 2], 1), (2, [0, 1], 1)], T, "legal update instance"),
        ([(1, [0, 2], 1), (2, [0, 1], 1)], T, "pruned candidate"),
        ([(1, [0, 2], 1), (2, [0, 2, 3], 2)], [(0, 0, 0), (0, 1, 0)], "legal update instance"),
        (
            [(1, [0, 1, 2], 2), (2, [0, 2, 3], 2)],
            [(0, 0, 0), (0, 1, 0)],
            "one-to-one matching",
        ),
    ],
)
def test_each_breach_is_found(
    groups: list[tuple[int, list[int], int]], versions: list[tuple[int, int, int]], rule: str
) -> None:
    assert rule in rules(history_of(groups, versions))


def test_overlapping_first_groups_breach_m_distinct_star_only() -> None:
    overlapping = history_of([(1, [0, 1], 1)], [(0, 0, 0)])
    assert rules(overlapping) == set()
    assert rules(overlapping, variant="m-distinct*") == {"disjoint first group"}


@pytest.mark.parametrize("batch", range(4))
def test_what_the_core_publishes_has_no_violation(batch: int) -> None:
    for seed in range(batch, 400, 4):
        spec = random_history(seed)
        releases: list[Release] = list(CoreHistory.run(spec, seed).releases)
        codes = {label: i for i, label in enumerate(spec.model.labels)}
        model = as_model({v: one_step(spec.model.by_label, v) for v in spec.model.labels})
        history, _ = as_arrays(releases, codes)
        m = [spec.m] * len(history.rows)
        assert list(find_violations(history, model, m, spec.variant)) == []
