"""The paper's claim about ℓ-diversity, and the project's own releases under the same attack."""

from __future__ import annotations

import numpy as np
import pytest

from pg_mdistinct.core.attack import attack
from pg_mdistinct.core.errors import MdistinctError
from pg_mdistinct.core.history import History
from pg_mdistinct.core.update_graph import candidates
from pg_mdistinct.experiments.l_diversity import l_diverse_groups, publish_l_diverse
from pg_mdistinct.experiments.publisher import Publisher
from pg_mdistinct.experiments.records import workload_model
from pg_mdistinct.workload import SnapshotArray, Workload

RELEASES = 20
WORKLOAD = Workload()


@pytest.fixture(scope="module")
def snapshots() -> list[SnapshotArray]:
    return list(WORKLOAD.releases(RELEASES))


def test_two_thirds_of_two_diverse_values_are_disclosed(snapshots: list[SnapshotArray]) -> None:
    """The paper says 66 % after 20 releases; with this generator 69.4 % are."""
    history = publish_l_diverse(snapshots, 2, np.random.default_rng(1))
    model = workload_model(WORKLOAD)
    assert not len(attack(history.until(1), model).disclosed)
    found = attack(history, model)
    assert len(found.left) == sum(len(people) // 2 * 2 for people in snapshots)
    assert not len(found.contradictory)
    assert 0.60 < len(found.disclosed) / len(found.left) < 0.70
    np.testing.assert_allclose(found.risk[found.disclosed], 1.0)


def test_the_projects_own_releases_of_the_same_snapshots_disclose_nothing(
    snapshots: list[SnapshotArray],
) -> None:
    model = workload_model(WORKLOAD)
    publisher = Publisher(model, 2, rng=np.random.default_rng(1))
    for people in snapshots:
        publisher.publish(people)
    found = attack(publisher.history(), model)
    assert len(found.left) == sum(map(len, snapshots))
    assert found.pruned == 0
    assert not len(found.disclosed)
    np.testing.assert_allclose(found.risk, 0.5)


@pytest.mark.parametrize("size", [2, 3, 5])
def test_every_group_has_as_many_values_as_records(size: int) -> None:
    snapshots = list(Workload(initial=500, insertions=51, deletions=20, updates=50).releases(3))
    history = publish_l_diverse(snapshots, size, np.random.default_rng(2))
    _exactly(history, size)
    assert [len(s) // size * size for s in snapshots] == np.bincount(
        history.version_release
    ).tolist()[1:]


def _exactly(history: History, size: int) -> None:
    assert (history.rows.lengths == size).all()
    assert (candidates(history.rows).values.lengths == size).all()
    assert (np.bincount(history.group) == size).all()


def test_records_that_are_not_l_eligible_are_refused() -> None:
    value = np.array([0, 0, 0, 1], dtype=np.int64)
    position = np.zeros((4, 1), dtype=np.float32)
    with pytest.raises(MdistinctError, match="3 of them with the same value"):
        l_diverse_groups(value, position, 2, np.random.default_rng(0))


def test_publisher_remembers_records_that_were_away() -> None:
    """Those who come back have k-step updates behind them, and are still safe."""
    workload = Workload(initial=300, insertions=30, deletions=30, updates=60, d=5)
    model = workload_model(workload)
    publisher = Publisher(model, 4, rng=np.random.default_rng(3))
    rng = np.random.default_rng(4)
    for people in workload.releases(6):
        publisher.publish(people[rng.random(len(people)) < 0.8])
    history = publisher.history()
    assert (history.gap > 1).any()
    assert attack(history, model).pruned == 0
