"""Small random buckets, and everything that can be said of them by trying it out."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

from pg_mdistinct.core.arrays import IntArray
from pg_mdistinct.core.buckets import SIGNATURE, Bucket

VALUES = 5
Entries = tuple[frozenset[int], ...]


def bits(values: frozenset[int]) -> int:
    """The set as the core writes it."""
    return sum(1 << value for value in values)


def members(entry: int) -> frozenset[int]:
    """The set that the core has written."""
    return frozenset(value for value in range(entry.bit_length()) if entry >> value & 1)


def fits(values: Sequence[int], entries: Sequence[frozenset[int]]) -> bool:
    """Tell whether these values are one from each entry, all different."""
    return (
        len(values) == len(entries)
        and len(set(values)) == len(values)
        and any(
            all(value in entry for value, entry in zip(order, entries, strict=True))
            for order in permutations(values)
        )
    )


def full_groups(entries: Entries, values: int = VALUES) -> list[frozenset[int]]:
    """Every set of values that a group of this signature can show."""
    found: set[frozenset[int]] = set()
    for chosen in permutations(range(values), len(entries)):
        if all(value in entry for value, entry in zip(chosen, entries, strict=True)):
            found.add(frozenset(chosen))
    return sorted(found, key=sorted)


def make_bucket(entries: Entries, counts: Sequence[int], groups: int = 0) -> Bucket:
    """A bucket of these entries, written as sets."""
    signature = tuple(sorted(map(bits, entries)))
    return Bucket(signature, SIGNATURE, as_counts(counts), groups)


def as_counts(counts: Sequence[int]) -> IntArray:
    return np.array(counts, dtype=np.int64)


@st.composite
def partitioned(draw: st.DrawFn) -> Entries:
    """Entries that are equal or disjoint, as in the paper's experiments."""
    class_of = draw(st.lists(st.integers(0, 2), min_size=VALUES, max_size=VALUES))
    classes = [frozenset(v for v in range(VALUES) if class_of[v] == c) for c in set(class_of)]
    return tuple(draw(st.lists(st.sampled_from(classes), min_size=1, max_size=3)))


overlapping = st.lists(
    st.frozensets(st.integers(0, VALUES - 1), min_size=1), min_size=1, max_size=3
).map(tuple)


@st.composite
def buckets(draw: st.DrawFn, most: int = 3) -> tuple[Entries, Bucket]:
    """A signature that can be met, and up to ``most`` records of each value that fits it."""
    entries: Entries = draw(st.one_of(partitioned(), overlapping))
    assume(full_groups(entries))
    fitting = frozenset().union(*entries)
    counts = [draw(st.integers(0, most)) if v in fitting else 0 for v in range(VALUES)]
    return entries, make_bucket(entries, counts)
