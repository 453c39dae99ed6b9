"""The engine of forward and backward sums against path enumeration in fractions."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from pg_mdistinct.core.arrays import Ragged
from pg_mdistinct.core.history import History, sorted_history
from pg_mdistinct.core.model import UpdateModel
from pg_mdistinct.core.update_graph import Risks, beliefs, edges, risks
from tests.core_history import CoreHistory
from tests.oracle import adversary, hospital
from tests.oracle.history import Group, Release, one_step
from tests.strategies import random_history

GRAPHS = 10_000
BATCHES = 20


def as_arrays(releases: list[Release], codes: dict[str, int]) -> tuple[History, list[str]]:
    """The oracle's history as the core wants it, and the names of the records."""
    names = sorted({name for r in releases for group in r.values() for name in group.members})
    number = {name: i for i, name in enumerate(names)}
    groups = [(n, gid, g) for n, r in enumerate(releases, 1) for gid, g in r.items()]
    versions = [
        (number[name], row, codes[str(value)])
        for row, (_, _, group) in enumerate(groups)
        for name, value in group.members.items()
    ]
    record, group, value = np.array(versions, dtype=np.int64).reshape(-1, 3).T
    history = sorted_history(
        release=np.array([n for n, _, _ in groups], dtype=np.int64),
        gid=np.array([gid for _, gid, _ in groups], dtype=np.int64),
        rows=Ragged.of([[codes[v] for v in g.values] for _, _, g in groups]),
        counterfeits=np.array([g.counterfeits for _, _, g in groups], dtype=np.int64),
        record=record,
        group=group,
        value=value,
    )
    return history, names


def as_model(model: dict[str, dict[str, Fraction]]) -> UpdateModel:
    labels = list(model)
    matrix = np.array([[float(model[a].get(b, 0)) for b in labels] for a in labels])
    return UpdateModel(matrix, np.ones(len(labels), dtype=np.bool_), labels)


def by_version(history: History, names: list[str], found: Risks) -> dict[tuple[str, int], float]:
    return {
        (names[r], int(n)): float(risk)
        for r, n, risk in zip(history.record, history.version_release, found.risk, strict=True)
    }


HOSPITAL_MODEL = {value: one_step(hospital.MODEL, value) for value in hospital.MODEL}
HOSPITAL_CODES = {value: i for i, value in enumerate(HOSPITAL_MODEL)}


def test_golden_hospital_risks() -> None:
    tables = [hospital.FIRST, hospital.SECOND_2_DIVERSE]
    history, names = as_arrays(tables, HOSPITAL_CODES)
    model = as_model(HOSPITAL_MODEL)
    after_first = by_version(history.until(1), names, risks(history.until(1), model))
    after_second = by_version(history, names, risks(history, model))
    assert after_first["Julia", 1] == 0.5
    assert after_second["Julia", 1] == 1.0
    assert after_second["Julia", 2] == 0.5


def test_golden_hospital_with_counterfeits_keeps_all_candidates() -> None:
    tables = [hospital.FIRST, hospital.SECOND_COUNTERFEITED]
    history, _ = as_arrays(tables, HOSPITAL_CODES)
    assert beliefs(history, as_model(HOSPITAL_MODEL)).alive.all()


@pytest.mark.parametrize("m", [2, 3, 5])
def test_golden_values_that_never_change_leave_m_parallel_paths(m: int) -> None:
    group = Group(tuple("abcdefgh"[:m]), {"t": "a"}, m - 1)
    history, _ = as_arrays([{1: group}] * 4, {c: i for i, c in enumerate("abcdefgh")})
    model = as_model({c: {c: Fraction(1)} for c in "abcdefgh"})
    np.testing.assert_allclose(risks(history, model).risk, 1 / m, rtol=0, atol=1e-15)


def test_golden_free_updates_never_change_old_risks() -> None:
    values = "abcde"
    model = as_model({a: {b: Fraction(1, 5) for b in values} for a in values})
    codes = {c: i for i, c in enumerate(values)}
    releases: list[Release] = [
        {1: Group(("a", "b", "c"), {"t": "b"}, 2)},
        {1: Group(("d", "e"), {"t": "e"}, 1)},
        {1: Group(("a", "b", "c", "d", "e"), {"t": "a"}, 4)},
    ]
    history, _ = as_arrays(releases, codes)
    seen = [risks(history.until(n), model).risk[0] for n in (1, 2, 3)]
    np.testing.assert_allclose(seen, 1 / 3, atol=1e-15)


def test_a_node_that_only_tiny_probabilities_reach_is_not_pruned() -> None:
    """Sums may fall below the smallest float; being feasible may not."""
    tiny = 1e-200
    matrix = np.array([[1 - tiny, tiny], [tiny, 1 - tiny]])
    model = UpdateModel(matrix, np.ones(2, dtype=np.bool_), ["a", "b"])
    history = sorted_history(
        release=np.arange(1, 5),
        gid=np.ones(4, dtype=np.int64),
        rows=Ragged.of([[0], [1], [0], [1]]),
        counterfeits=np.zeros(4, dtype=np.int64),
        record=np.zeros(4, dtype=np.int64),
        group=np.arange(4),
        value=np.array([0, 1, 0, 1]),
    )
    found = beliefs(history, model)
    assert found.alive.all()
    np.testing.assert_allclose(found.posterior, 1.0)


@pytest.mark.parametrize("batch", range(BATCHES))
def test_engine_equals_path_enumeration(batch: int) -> None:
    """Graphs of published histories and, with groups exchanged, of badly published ones."""
    graphs, seed = 0, batch
    while graphs < GRAPHS // BATCHES:
        seed += BATCHES
        spec = random_history(seed)
        releases: list[Release] = list(CoreHistory.run(spec, seed).releases)
        if seed % 2:
            releases = [_exchanged(release) for release in releases]
        codes = {label: i for i, label in enumerate(spec.model.labels)}
        exact_model = {v: one_step(spec.model.by_label, v) for v in spec.model.labels}
        history, names = as_arrays(releases, codes)
        found = by_version(history, names, risks(history, as_model(exact_model)))
        exact = adversary.risks(releases, exact_model)
        assert found.keys() == exact.keys()
        for key, risk in exact.items():
            assert abs(found[key] - float(risk)) < 1e-12
        graphs += len(names)


def test_edges_carry_the_weight_of_their_nodes() -> None:
    """Updates that arrive at a node, and those that leave it, add up to its own probability."""
    for seed in range(60):
        spec = random_history(seed)
        releases: list[Release] = list(CoreHistory.run(spec, seed).releases)
        codes = {label: i for i, label in enumerate(spec.model.labels)}
        model = as_model({v: one_step(spec.model.by_label, v) for v in spec.model.labels})
        history, _ = as_arrays(releases, codes)
        known = beliefs(history, model)
        for version in np.flatnonzero(~history.is_first):
            found = edges(history, model, known, int(version))
            for end, at in ((found.before, version - 1), (found.after, version)):
                nodes = range(known.nodes.offsets[at], known.nodes.offsets[at + 1])
                summed = [found.posterior[end == node].sum() for node in nodes]
                np.testing.assert_allclose(summed, known.posterior[list(nodes)], atol=1e-12)


def _exchanged(release: Release) -> Release:
    """Members stay, but every group shows another one's values as well: candidates get pruned."""
    groups = list(release.items())
    if len(groups) < 2:
        return release
    return {
        gid: Group(group.values + other.values[:1], group.members, group.counterfeits + 1)
        for (gid, group), (_, other) in pairwise([*groups, groups[0]])
    }
