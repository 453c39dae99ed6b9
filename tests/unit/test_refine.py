"""Exchanging members of groups: narrower, never other candidates, nobody with a past moves out."""

from __future__ import annotations

import numpy as np
import pytest

from pg_mdistinct.core.arrays import IntArray
from pg_mdistinct.core.refine import Members, refine

BUCKETS, GROUPS, SIZE, KINDS = 3, 40, 4, 2


def sorts_of(seed: int) -> IntArray:
    """Which values stand in for each other in all buckets: none, or those of one kind."""
    return np.arange(5 * KINDS) if seed % 2 else np.arange(5 * KINDS) // 5


def random_members(seed: int) -> tuple[IntArray, IntArray, Members]:
    """Groups of four in three buckets, two rows of each kind; every eighth row a counterfeit."""
    rng = np.random.default_rng(seed)
    bucket = np.repeat(np.arange(BUCKETS), GROUPS)
    group = np.repeat(np.arange(BUCKETS * GROUPS), SIZE)
    half = np.array([rng.permutation(5)[:2] for _ in range(2 * BUCKETS * GROUPS)]).reshape(-1)
    kind_in_bucket = np.tile([0, 0, 1, 1], BUCKETS * GROUPS)
    value = half + 5 * kind_in_bucket
    kind = bucket[group] * KINDS + kind_in_bucket
    is_real = rng.random(len(group)) > 1 / 8
    order = np.concatenate([np.flatnonzero(is_real), np.flatnonzero(~is_real)])
    records = int(is_real.sum())
    is_new = is_real[order] & (rng.random(len(group)) < 0.4)
    return (
        group[order],
        bucket,
        Members(
            value=value[order],
            kind=np.where(is_real, kind, -1)[order],
            sort=np.where(is_new, sorts_of(seed)[value[order]], -1),
            position=rng.random((records, 3)).astype(np.float32),
        ),
    )


def width(group: IntArray, members: Members) -> float:
    records = len(members.position)
    total = 0.0
    for g in np.unique(group):
        inside = members.position[np.flatnonzero(group[:records] == g)]
        total += float(np.ptp(inside, axis=0).sum()) if len(inside) else 0.0
    return total


@pytest.mark.parametrize("seed", range(10))
def test_groups_get_narrower_and_keep_their_promises(seed: int) -> None:
    before, bucket, members = random_members(seed)
    after = before.copy()
    refine(after, bucket, members, np.random.default_rng(seed))
    assert width(after, members) < 0.8 * width(before, members)
    assert np.bincount(after).tolist() == np.bincount(before).tolist()
    # No value twice, and still two rows of each kind.
    assert len(np.unique(after * 10 + members.value)) == len(after)
    halves = np.bincount(after * KINDS + members.value // 5)
    assert set(halves.tolist()) == {2}
    moved_out = np.flatnonzero(bucket[after] != bucket[before])
    assert len(moved_out) > 0
    assert (members.sort[moved_out] >= 0).all()
    # Every bucket has as many of each sort as it had.
    sort = sorts_of(seed)[members.value]
    for b in range(BUCKETS):
        was, now = (np.sort(sort[bucket[g] == b]).tolist() for g in (before, after))
        assert was == now
    records = len(members.position)
    assert after[records:].tolist() == before[records:].tolist()


def test_newcomers_of_one_sort_may_change_buckets_whatever_their_values() -> None:
    before, bucket, members = random_members(0)
    after = before.copy()
    refine(after, bucket, members, np.random.default_rng(0))
    values = [np.bincount(bucket[g] * 10 + members.value, minlength=30) for g in (before, after)]
    assert values[0].tolist() != values[1].tolist()


def test_work_can_be_ended() -> None:
    group, bucket, members = random_members(0)

    def give_up(share: float) -> None:
        raise TimeoutError(share)

    with pytest.raises(TimeoutError):
        refine(group, bucket, members, np.random.default_rng(0), give_up)
