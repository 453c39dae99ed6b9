"""Buckets: how few groups hold them, and their intersections, against trying everything."""

from __future__ import annotations

from itertools import combinations_with_replacement, count, permutations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pg_mdistinct.core.buckets import (
    Bucket,
    _cheapest_assignment,
    fewest_groups,
    intersect,
)
from pg_mdistinct.core.values import stay_disjoint
from tests.unit.core_buckets import VALUES, Entries, bits, buckets, full_groups, make_bucket

signatures = st.lists(
    st.frozensets(st.integers(0, VALUES - 1), min_size=1), min_size=1, max_size=4
).map(tuple)


def fewest_by_trial(entries: Entries, bucket: Bucket) -> int:
    """Try one group, two, three ...: every multiset of groups, until one holds all records."""
    possible = full_groups(entries)
    for number in count(0):
        for groups in combinations_with_replacement(possible, number):
            if all(
                sum(value in group for group in groups) >= bucket.counts[value]
                for value in range(VALUES)
            ):
                return number
    raise AssertionError("every bucket has an end")


@settings(max_examples=150)
@given(buckets())
def test_the_fewest_groups_are_those_that_trial_finds(made: tuple[Entries, Bucket]) -> None:
    entries, bucket = made
    assert fewest_groups(bucket) == fewest_by_trial(entries, bucket)


@pytest.mark.parametrize(
    ("entries", "counts", "groups"),
    [
        (({0, 1}, {0, 1}, {2, 3}), [0, 0, 0, 0], 0),
        (({0, 1}, {0, 1}, {2, 3}), [4, 4, 4, 0], 4),
        (({0, 1}, {0, 1}, {2, 3}), [1, 1, 4, 4], 8),  # one of 2 and 3 a group
        (({0, 1}, {1}), [2, 3, 0, 0], 3),
        (({0, 1, 2, 3}, {3}), [3, 3, 3, 9], 9),
    ],
)
def test_numbers_of_groups(entries: tuple[set[int], ...], counts: list[int], groups: int) -> None:
    assert fewest_groups(make_bucket(tuple(map(frozenset, entries)), counts)) == groups


def test_records_that_fit_no_entry_are_not_tried_for_ever() -> None:
    with pytest.raises(AssertionError, match="fits some entry"):
        fewest_groups(make_bucket((frozenset({0, 1}), frozenset({1})), [1, 1, 5]))


def test_a_large_bucket_needs_few_tries() -> None:
    classes = [frozenset(range(first, first + 5)) for first in range(0, 50, 5)]
    counts = np.random.default_rng(1).integers(0, 10**6, 50)
    bucket = make_bucket(tuple(classes), counts.tolist())
    assert fewest_groups(bucket) == counts.reshape(10, 5).sum(axis=1).max()


def test_holes_and_support() -> None:
    bucket = make_bucket((frozenset({0, 1}), frozenset({2})), [1, 0, 2], groups=2)
    assert bucket.holes == 1
    assert bucket.support == 0b101
    assert bucket.fitting == 0b111


def best_plans(first: Entries, second: Entries) -> set[tuple[int, ...]]:
    """Every intersection plan with the highest share of overlap, found by trying all of them."""
    plans = []
    for order in permutations(second):
        pairs = list(zip(first, order, strict=True))
        if all(a & b for a, b in pairs):
            share = sum(len(a & b) / len(a | b) for a, b in pairs)
            plans.append((share, tuple(sorted(bits(a & b) for a, b in pairs))))
    best = max((share for share, _ in plans), default=0.0)
    return {plan for share, plan in plans if share > best - 1e-9}


@settings(max_examples=300)
@given(signatures, signatures)
def test_the_intersection_is_a_best_one(first: Entries, second: Entries) -> None:
    found = intersect(tuple(map(bits, first)), tuple(map(bits, second)))
    if len(first) != len(second):
        assert found is None
        return
    plans = best_plans(first, second)
    assert (found is None) == (not plans)
    assert found is None or found in plans


@settings(max_examples=200)
@given(st.integers(1, 5), st.data())
def test_the_cheapest_assignment(size: int, data: st.DataObject) -> None:
    cell = st.integers(0, 20)
    rows = st.lists(st.lists(cell, min_size=size, max_size=size), min_size=size, max_size=size)
    cost = np.array(data.draw(rows), dtype=np.float64)
    partner = _cheapest_assignment(cost)
    assert sorted(partner.tolist()) == list(range(size))
    cheapest = min(cost[np.arange(size), order].sum() for order in permutations(range(size)))
    assert cost[np.arange(size), partner].sum() == cheapest


@settings(max_examples=300)
@given(
    signatures,
    st.lists(
        st.frozensets(st.integers(0, VALUES - 1), min_size=1, max_size=2),
        min_size=VALUES,
        max_size=VALUES,
    ),
)
def test_entries_stay_disjoint_if_every_choice_from_them_is(
    entries: Entries, reach: list[frozenset[int]]
) -> None:
    every_choice = all(
        sum(len(reach[value]) for value in chosen)
        == len(frozenset().union(*(reach[value] for value in chosen)))
        for chosen in product(*entries)
    )
    found = stay_disjoint(tuple(map(bits, entries)), list(map(bits, reach)))
    assert found is every_choice
