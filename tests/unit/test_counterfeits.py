"""Counterfeits: they fill every hole, legally, and nobody can tell their values beforehand."""

from __future__ import annotations

from collections import Counter
from itertools import combinations_with_replacement

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pg_mdistinct.core.buckets import Bucket, fewest_groups
from pg_mdistinct.core.counterfeits import balance
from tests.unit.core_buckets import VALUES, Entries, buckets, full_groups, make_bucket

EVEN = np.ones(VALUES)


def counterfeits(bucket: Bucket, seed: int) -> tuple[int, ...]:
    _, drawn = balance(bucket, EVEN, np.random.default_rng(seed))
    return tuple(drawn.tolist())


@settings(max_examples=150)
@given(buckets(), st.integers(0, 2), st.integers(0, 9))
def test_every_hole_is_filled_with_a_value_that_fits(
    made: tuple[Entries, Bucket], more: int, seed: int
) -> None:
    _, bucket = made
    bucket.groups = fewest_groups(bucket) + more
    placement, drawn = balance(bucket, EVEN, np.random.default_rng(seed))
    assert (drawn >= 0).all()
    assert drawn.sum() == bucket.holes
    rows = np.bincount(placement.value, weights=placement.rows, minlength=VALUES)
    assert rows.tolist() == (bucket.counts + drawn).tolist()
    assert (rows <= bucket.groups).all()
    for number, (members, multiplicity) in enumerate(bucket.types):
        here = placement.entry_type == number
        assert placement.rows[here].sum() == multiplicity * bucket.groups
        assert all(members >> int(value) & 1 for value in placement.value[here])


def legal_counterfeits(entries: Entries, bucket: Bucket) -> set[tuple[int, ...]]:
    """What counterfeits may be, found by trying every combination of groups."""
    found = set()
    for groups in combinations_with_replacement(full_groups(entries), bucket.groups):
        rows = Counter(value for group in groups for value in group)
        extra = [rows[value] - int(bucket.counts[value]) for value in range(VALUES)]
        if min(extra) >= 0:
            found.add(tuple(extra))
    return found


@settings(max_examples=50, derandomize=True)
@given(buckets(most=2))
def test_every_legal_value_is_drawn_sooner_or_later(made: tuple[Entries, Bucket]) -> None:
    entries, bucket = made
    bucket.groups = fewest_groups(bucket)
    legal = legal_counterfeits(entries, bucket)
    drawn = {counterfeits(bucket, seed) for seed in range(120)}
    assert drawn <= legal
    values = {value for fill in legal for value in range(VALUES) if fill[value]}
    assert {value for fill in drawn for value in range(VALUES) if fill[value]} == values


@pytest.mark.parametrize(
    ("entries", "counts", "values"),
    [
        (({0, 1, 2}, {3, 4}), [1, 0, 0, 0, 0], {3, 4}),
        (({0, 1, 2}, {0, 1, 2}), [1, 0, 0, 0, 0], {1, 2}),
        (({0, 1}, {1, 2}), [0, 1, 0, 0, 0], {0, 2}),
        (({0, 1}, {1}), [0, 1, 0, 0, 0], {0}),
        (({0, 1}, {1, 2}, {2, 3}), [0, 1, 1, 0, 0], {0, 3}),
    ],
)
def test_where_a_record_may_stand_at_several_entries(
    entries: tuple[set[int], ...], counts: list[int], values: set[int]
) -> None:
    bucket = make_bucket(tuple(map(frozenset, entries)), counts, groups=1)
    drawn = np.array([counterfeits(bucket, seed) for seed in range(60)])
    assert set(np.flatnonzero(drawn.any(axis=0)).tolist()) == values


def test_common_values_are_drawn_more_often() -> None:
    bucket = make_bucket((frozenset({0}), frozenset({1, 2})), [50, 0, 0, 0, 0], groups=50)
    popularity = np.array([1.0, 90.0, 10.0, 1.0, 1.0])
    _, drawn = balance(bucket, popularity, np.random.default_rng(4))
    assert drawn[1] > 3 * drawn[2] > 0


def test_a_full_bucket_gets_none() -> None:
    bucket = make_bucket((frozenset({0, 1}), frozenset({2})), [1, 1, 2, 0, 0], groups=2)
    assert counterfeits(bucket, 0) == (0, 0, 0, 0, 0)
