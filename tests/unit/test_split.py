"""Splitting: every group is one row of each entry, all values different, nobody lost."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from hypothesis import given, settings
from hypothesis import strategies as st

from pg_mdistinct.core.arrays import IntArray
from pg_mdistinct.core.buckets import Bucket, fewest_groups
from pg_mdistinct.core.counterfeits import balance
from pg_mdistinct.core.split import SplitBucket, split_bucket
from tests.unit.core_buckets import Entries, buckets, fits, make_bucket


def split(
    bucket: Bucket, seed: int, *, attributes: int = 2, levels: int = 4
) -> tuple[IntArray, SplitBucket]:
    """Split a bucket whose records lie at random on a grid; return their values too."""
    rng = np.random.default_rng(seed)
    bucket.groups = fewest_groups(bucket)
    placement, _ = balance(bucket, np.ones(len(bucket.counts)), rng)
    value = rng.permutation(np.repeat(np.arange(len(bucket.counts)), bucket.counts))
    position = (rng.integers(0, levels, (len(value), attributes)) / levels).astype(np.float32)
    return value, split_bucket(bucket, placement, value, position)


def rows_by_group(value: IntArray, parts: SplitBucket) -> dict[int, list[int]]:
    rows: dict[int, list[int]] = {}
    for group, row in (
        *zip(parts.group.tolist(), value.tolist(), strict=True),
        *zip(parts.counterfeit_group.tolist(), parts.counterfeit_value.tolist(), strict=True),
    ):
        rows.setdefault(group, []).append(row)
    return rows


@settings(max_examples=300)
@given(buckets(most=6), st.integers(0, 99), st.sampled_from([1, 2, 4]), st.integers(1, 3))
def test_every_group_has_one_value_of_each_entry(
    made: tuple[Entries, Bucket], seed: int, levels: int, attributes: int
) -> None:
    entries, bucket = made
    value, parts = split(bucket, seed, attributes=attributes, levels=levels)
    groups = rows_by_group(value, parts)
    assert sorted(groups) == list(range(bucket.groups))
    assert all(fits(rows, entries) for rows in groups.values())
    assert len(parts.counterfeit_group) == bucket.holes
    # Nobody is hidden in a group where there is nothing to hide.
    assert set(parts.group.tolist()) == set(range(bucket.groups))


def test_the_same_records_are_split_in_the_same_way() -> None:
    counts = [40, 25, 30, 35, 10]
    bucket = make_bucket((frozenset({0, 1, 2}), frozenset({2, 3, 4})), counts)
    (_, first), (_, second) = (split(bucket, 5) for _ in range(2))
    for ours, theirs in zip(vars(first).values(), vars(second).values(), strict=True):
        assert ours.tolist() == theirs.tolist()


def test_groups_are_near_to_each_other() -> None:
    """A thousand records on a line, two values in turn: neighbours are grouped."""
    bucket = make_bucket((frozenset({0}), frozenset({1})), [500, 500])
    bucket.groups = fewest_groups(bucket)
    value = np.tile(np.arange(2), 500)
    position: npt.NDArray[np.float32] = (np.arange(1000) / 999).astype(np.float32)[:, None]
    placement, _ = balance(bucket, np.ones(2), np.random.default_rng(0))
    parts = split_bucket(bucket, placement, value, position)
    widths = np.zeros(500)
    for group in range(500):
        widths[group] = np.ptp(position[parts.group == group])
    assert widths.mean() < 3 / 999


def test_an_empty_bucket_has_no_groups() -> None:
    bucket = make_bucket((frozenset({0}), frozenset({1})), [0, 0])
    value, parts = split(bucket, 0)
    assert len(value) == len(parts.group) == len(parts.counterfeit_group) == 0
