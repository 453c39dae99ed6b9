"""One publication as a whole: what it says of itself, and that it draws its numbers at random."""

from __future__ import annotations

from typing import Any

import numpy as np

from pg_mdistinct.core.arrays import Ragged
from pg_mdistinct.core.model import UpdateModel
from pg_mdistinct.core.publication import Release, check_updates, plan_release
from pg_mdistinct.core.snapshot import QiColumn, Snapshot
from tests.core_history import CoreHistory
from tests.strategies import random_history

PAIRS = UpdateModel(
    np.kron(np.eye(4), np.full((2, 2), 0.5)), np.ones(8, dtype=np.bool_), list("abcdefgh")
)
"""Each value may become its neighbour."""


def new_records(count: int, seed: int = 0) -> Snapshot:
    rng = np.random.default_rng(seed)
    nobody = np.full(count, -1, dtype=np.int64)
    return Snapshot(
        value=rng.integers(0, 8, count),
        qi=(QiColumn(rng.integers(0, 50, count), np.arange(50.0), is_set=False),),
        last_group=nobody,
        gap=np.zeros(count, dtype=np.int64),
        last_candidates=Ragged.of([]),
        last_value=nobody,
    )


def plan(snapshot: Snapshot, seed: int, **options: Any) -> Release:
    return plan_release(snapshot, PAIRS, 3, "m-distinct", np.random.default_rng(seed), **options)


def test_every_record_stands_at_an_entry_that_holds_its_value() -> None:
    for seed in range(60):
        spec = random_history(seed)
        history = CoreHistory.of(spec, seed)
        for rows in spec.snapshots:
            release = history.publish(rows)
            assert set(release.buckets.kind) <= {"signature", "intersection", "first-time"}
            assert release.buckets.groups.sum() == len(release.candidates)
            value = np.array([row.value for row in rows.values()], dtype=np.int64)
            places = zip(value, release.bucket, release.entry(value), strict=True)
            for own, bucket, entry in places:
                assert own in release.buckets.entries[bucket][entry]


def test_the_same_numbers_drawn_give_the_same_release() -> None:
    snapshot = new_records(60)
    first, second, other = (plan(snapshot, seed) for seed in (1, 1, 2))
    assert first.group.tolist() == second.group.tolist()
    assert first.candidates.items.tolist() == second.candidates.items.tolist()
    assert first.group.tolist() != other.group.tolist()


def test_group_numbers_tell_nothing_about_place_or_bucket() -> None:
    """Groups come out of the split along the quasi-identifiers; their numbers do not."""
    snapshot = new_records(900)
    release = plan(snapshot, 3)
    age = snapshot.qi[0].code
    by_number = [age[release.group == g].mean() for g in range(len(release.candidates))]
    assert abs(np.corrcoef(np.arange(len(by_number)), by_number)[0, 1]) < 0.2
    assert abs(np.corrcoef(release.group, release.bucket)[0, 1]) < 0.2


def test_progress_goes_through_the_phases() -> None:
    seen: list[tuple[str, float]] = []
    plan(new_records(40), 0, progress=lambda phase, share: seen.append((phase, share)))
    phases = list(dict.fromkeys(phase for phase, _ in seen))
    assert phases == ["assign", "choose signatures", "split", "refine", "generalize"]
    for phase in phases:
        shares = [share for name, share in seen if name == phase]
        assert shares == sorted(shares)
        assert 0 <= shares[0] <= shares[-1] <= 1


def test_impossible_updates_are_found() -> None:
    chain = np.array([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [0.0, 0.0, 1.0]])
    model = UpdateModel(chain, np.ones(3, dtype=np.bool_), list("abc"))
    snapshot = Snapshot(
        value=np.array([2, 2, 0, 1, 2]),
        qi=(),
        last_group=np.array([0, 1, 0, 0, -1]),
        gap=np.array([1, 2, 1, 1, 0]),
        last_candidates=Ragged.of([[0, 1], [0, 2]]),
        last_value=np.array([0, 0, 1, 0, -1]),
    )
    # a -> c takes two steps, and nothing leads back.
    assert check_updates(snapshot, model).tolist() == [0, 2]


def test_nobody_at_all() -> None:
    release = plan(new_records(0), 0)
    assert len(release.candidates) == len(release.group) == 0
    assert release.ncp == 0.0
