"""What is carried from release to release gives the same largest risks as the whole history."""

from __future__ import annotations

import numpy as np
import pytest

from pg_mdistinct.core.arrays import Ragged
from pg_mdistinct.core.knowledge import Knowledge, learn, recall
from pg_mdistinct.core.model import UpdateModel
from pg_mdistinct.core.snapshot import Snapshot
from pg_mdistinct.core.update_graph import risks
from tests.core_history import CoreHistory
from tests.oracle.history import Release
from tests.strategies import HistorySpec, random_history
from tests.unit.test_update_graph import as_arrays


def largest_risks_by_knowledge(spec: HistorySpec, seed: int) -> tuple[list[float], list[Release]]:
    """The largest risk after each release, from what the release before left behind."""
    history = CoreHistory.of(spec, seed)
    known: dict[str, Knowledge] = {}
    worst_of: dict[str, float] = {}
    model = _model(spec)
    largest = []
    for rows in spec.snapshots:
        snapshot = history.snapshot(rows)
        plan = history.publish(rows)
        parts = [known.get(record, Knowledge.nothing(1)) for record in rows]
        before = Knowledge.join([Knowledge.nothing(0), *parts])
        after, risk = learn(before, snapshot, plan.candidates, plan.group, model)
        for i, record in enumerate(rows):
            known[record] = after.take(np.array([i]))
            worst_of[record] = float(risk[i])
        largest.append(max(worst_of.values(), default=0.0))
    return largest, list(history.releases)


def _model(spec: HistorySpec) -> UpdateModel:
    known = np.ones(len(spec.model.labels), dtype=np.bool_)
    return UpdateModel(spec.model.transition, known, spec.model.labels)


@pytest.mark.parametrize("batch", range(4))
def test_knowledge_gives_the_largest_risk_of_the_whole_history(batch: int) -> None:
    for seed in range(batch, 600, 4):
        spec = random_history(seed)
        largest, releases = largest_risks_by_knowledge(spec, seed)
        codes = {label: i for i, label in enumerate(spec.model.labels)}
        history, _ = as_arrays(releases, codes)
        for n, found in enumerate(largest, 1):
            exact = risks(history.until(n), _model(spec)).risk.max(initial=0.0)
            assert found == pytest.approx(exact, abs=1e-12)
        recalled = recall(history, _model(spec))
        np.testing.assert_allclose(recalled.known.largest_risk, recalled.risk, atol=1e-12)
        assert recalled.risk.max(initial=0.0) == pytest.approx(largest[-1], abs=1e-12)
        assert recalled.largest_ever == pytest.approx(max(largest), abs=1e-12)


def test_equal_pasts_are_kept_once() -> None:
    """Free updates within a class: all earlier versions are known equally well."""
    uniform = np.ones((4, 4)) / 4
    model = UpdateModel(uniform, np.ones(4, dtype=np.bool_), list("abcd"))
    known = Knowledge.nothing(1)
    last = Ragged.of([[0, 1]])
    for release in range(1, 8):
        snapshot = Snapshot(
            value=np.array([0]),
            qi=(),
            last_group=np.array([0 if release > 1 else -1]),
            gap=np.array([1 if release > 1 else 0]),
            last_candidates=last,
            last_value=np.array([0 if release > 1 else -1]),
        )
        known, risk = learn(known, snapshot, last, np.array([0]), model)
        assert risk[0] == pytest.approx(0.5)
        assert known.kept[0] <= 2
