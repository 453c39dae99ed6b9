"""Assignment: new records fill holes, buckets with holes are merged, everybody is dealt out."""

from __future__ import annotations

from collections import Counter
from itertools import permutations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pg_mdistinct.core.arrays import IntArray
from pg_mdistinct.core.assignment import _Cells, _deal, merge_buckets
from pg_mdistinct.core.buckets import INTERSECTION, Bucket, fewest_groups
from pg_mdistinct.core.filling import fill_holes
from pg_mdistinct.core.model import M_DISTINCT, M_DISTINCT_STAR, UpdateModel
from tests.unit.core_buckets import VALUES, Entries, buckets, make_bucket, members

ANYTHING = UpdateModel(
    np.full((VALUES, VALUES), 1 / VALUES), np.ones(VALUES, dtype=np.bool_), list("abcde")
)
NOTHING = UpdateModel(np.eye(VALUES), np.ones(VALUES, dtype=np.bool_), list("abcde"))
"""Every value may become every other one, or none."""

some_buckets = st.lists(buckets().map(lambda made: with_groups(made[1])), min_size=1, max_size=3)


def with_groups(bucket: Bucket) -> Bucket:
    bucket.groups = fewest_groups(bucket)
    return bucket


def ints(values: list[int]) -> IntArray:
    return np.array(values, dtype=np.int64)


@settings(max_examples=200)
@given(some_buckets, st.lists(st.integers(0, 4), min_size=VALUES, max_size=VALUES))
def test_new_records_fill_holes_until_nobody_fits(made: list[Bucket], new: list[int]) -> None:
    filled = fill_holes(made, ints(new), ANYTHING, M_DISTINCT)
    left = ints(new) - filled.sum(axis=0)
    assert (filled >= 0).all()
    assert (left >= 0).all()
    for bucket, extra in zip(made, filled, strict=True):
        fuller = Bucket(bucket.entries, bucket.kind, bucket.counts + extra)
        assert fewest_groups(fuller) == bucket.groups
        for value in np.flatnonzero(left):
            if any(entry >> int(value) & 1 for entry in bucket.entries):
                fuller.counts = bucket.counts + extra
                fuller.counts[value] += 1
                assert fewest_groups(fuller) > bucket.groups


def test_the_most_frequent_new_values_go_first() -> None:
    """What is left over stays as even as it can be."""
    bucket = make_bucket((frozenset({0}), frozenset({1, 2, 3})), [6, 0, 0, 0, 0], groups=6)
    filled = fill_holes([bucket], ints([0, 9, 4, 1, 0]), ANYTHING, M_DISTINCT)
    assert filled.sum() == 6
    assert filled[0, 1] >= 4
    assert filled[0, 3] == 0


def test_the_stricter_variant_fills_only_what_stays_disjoint() -> None:
    bucket = make_bucket((frozenset({0}), frozenset({1})), [2, 0, 0, 0, 0], groups=2)
    new = ints([0, 2, 0, 0, 0])
    assert fill_holes([bucket], new, NOTHING, M_DISTINCT_STAR)[0].tolist() == new.tolist()
    assert not fill_holes([bucket], new, ANYTHING, M_DISTINCT_STAR).any()


def goes_into(new: Entries, old: Entries) -> bool:
    """Tell whether each new entry is part of an old one of its own."""
    return len(new) == len(old) and any(
        all(a <= b for a, b in zip(new, order, strict=True)) for order in permutations(old)
    )


@settings(max_examples=200)
@given(some_buckets)
def test_merging_saves_rows_and_stays_legal(made: list[Bucket]) -> None:
    merged, went_to = merge_buckets(made)
    rows = [sum(len(b.entries) * b.groups for b in group) for group in (made, merged)]
    assert rows[1] <= rows[0]
    for number, bucket in enumerate(merged):
        sources = [made[i] for i in np.flatnonzero(went_to == number)]
        assert (bucket.kind == INTERSECTION) is (len(sources) > 1)
        assert bucket.counts.tolist() == np.sum([s.counts for s in sources], axis=0).tolist()
        assert bucket.groups == fewest_groups(bucket)
        for source in sources:
            entries = [tuple(map(members, b.entries)) for b in (bucket, source)]
            assert goes_into(*entries)


def test_two_half_empty_buckets_become_one_full_one() -> None:
    first = make_bucket((frozenset({0, 1}), frozenset({2, 3})), [3, 0, 0, 0, 0], groups=3)
    second = make_bucket((frozenset({0, 1}), frozenset({3, 4})), [0, 0, 0, 3, 0], groups=3)
    (union,), went_to = merge_buckets([first, second])
    assert went_to.tolist() == [0, 0]
    assert (union.kind, union.groups, union.holes) == (INTERSECTION, 3, 0)
    assert set(map(members, union.entries)) == {frozenset({0, 1}), frozenset({3})}


@given(st.lists(st.integers(0, 3), max_size=20), st.data())
def test_cells_get_records_of_their_class_in_order_of_priority(
    record_class: list[int], data: st.DataObject
) -> None:
    held = Counter(record_class)
    asked = []
    for number, bucket in data.draw(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5)))):
        if held[number]:
            wanted = data.draw(st.integers(1, held[number]))
            held[number] -= wanted
            asked.append((number, bucket, wanted))
    which, where, records = ints([x for cell in asked for x in cell]).reshape(-1, 3).T
    priority = ints(data.draw(st.permutations(range(len(record_class)))))
    of_record = _deal(ints(record_class), _Cells(which, where, records), priority)
    for number in range(4):
        waiting = [i for i in np.argsort(priority) if record_class[i] == number]
        expected = [b for n, b, wanted in asked if n == number for _ in range(wanted)]
        expected += [-1] * (len(waiting) - len(expected))
        assert of_record[waiting].tolist() == expected
