"""Buckets: a signature with the records that fit it.

A bucket of δ groups is a bipartite multigraph: entries on one side, sensitive values on the other,
each row an edge. Groups with one row of each entry and no value twice are a proper colouring of
its edges with δ colours, and by König's theorem there is one as soon as every entry and no value
has more than δ edges. So a bucket can hold its records in δ groups exactly if they can be routed
to entries that take δ rows each, and what is missing then can always be filled up by counterfeits,
since some choice of different values, one from each entry, exists.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from pg_mdistinct.core.arrays import FloatArray, IntArray
from pg_mdistinct.core.flow import UNBOUNDED, Network
from pg_mdistinct.core.signature import Signature
from pg_mdistinct.core.values import ValueSet, value_set

SIGNATURE = "signature"
INTERSECTION = "intersection"
FIRST_TIME = "first-time"

SOURCE, SINK = 0, 1


@dataclass(eq=False)
class Bucket:
    """A signature, how many real records of each value it holds, and in how many groups."""

    entries: Signature
    kind: str
    counts: IntArray
    groups: int = 0
    types: list[tuple[ValueSet, int]] = field(init=False)

    def __post_init__(self) -> None:
        self.types = sorted(Counter(self.entries).items())

    @property
    def holes(self) -> int:
        """Return the number of rows that are missing."""
        return len(self.entries) * self.groups - int(self.counts.sum())

    @property
    def support(self) -> ValueSet:
        """Return the values that its records have."""
        return value_set(np.flatnonzero(self.counts))

    @property
    def fitting(self) -> ValueSet:
        """Return the values that fit some entry."""
        result = 0
        for members, _ in self.types:
            result |= members
        return result


@dataclass(frozen=True)
class Placement:
    """How many rows of each value stand at each entry type: the cells that are not empty."""

    value: IntArray
    entry_type: IntArray
    rows: IntArray


class BucketNetwork:
    """The flow from a bucket's values to its entry types.

    With ``rng``, values that fit several entries try them in random order.
    """

    def __init__(
        self,
        bucket: Bucket,
        values: IntArray,
        supply: IntArray,
        rng: np.random.Generator | None = None,
    ) -> None:
        self.values = values
        entry_nodes = 2 + len(values) + np.arange(len(bucket.types))
        value_nodes = 2 + np.arange(len(values))
        self.network = Network(2 + len(values) + len(bucket.types))
        self.supply = self.network.add(np.full(len(values), SOURCE), value_nodes, supply)
        pairs = [
            (i, t)
            for t, (members, _) in enumerate(bucket.types)
            for i, value in enumerate(values)
            if members >> int(value) & 1
        ]
        if rng is not None:
            rng.shuffle(pairs)
        self.cell_value, self.cell_type = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
        self.cells = self.network.add(
            value_nodes[self.cell_value],
            entry_nodes[self.cell_type],
            np.full(len(pairs), UNBOUNDED),
        )
        self.multiplicity = np.array([count for _, count in bucket.types], dtype=np.int64)
        self.entries = self.network.add(
            entry_nodes,
            np.full(len(bucket.types), SINK),
            self.multiplicity * bucket.groups,
        )

    def augment(self) -> int:
        """Route as many more rows as possible."""
        return self.network.augment(SOURCE, SINK)

    def placement(self) -> Placement:
        """Return what stands where now."""
        rows = self.network.flow(self.cells)
        used = rows > 0
        return Placement(self.values[self.cell_value[used]], self.cell_type[used], rows[used])


def fewest_groups(bucket: Bucket) -> int:
    """Return the smallest number of groups that hold the bucket's records.

    Starting from a lower bound, each try that fails has a cut: values A with more rows than the
    entries they fit take. The number of groups that A alone needs is the next try (a discrete
    Newton iteration), so only a few flows are solved.
    """
    present = np.flatnonzero(bucket.counts)
    if not len(present):
        return 0
    counts = bucket.counts[present]
    total = int(counts.sum())
    groups = max(int(counts.max()), -(-total // len(bucket.entries)))
    while True:
        trial = Bucket(bucket.entries, bucket.kind, bucket.counts, groups)
        flow = BucketNetwork(trial, present, counts)
        if flow.augment() == total:
            return groups
        reached = flow.network.reachable(SOURCE)[2:]
        overfull = counts[reached[: len(present)]].sum()
        room = int(flow.multiplicity[reached[len(present) :]].sum())
        assert room, "every record's value fits some entry of its bucket"
        groups = max(groups + 1, int(-(-overfull // room)))


def intersect(first: Signature, second: Signature) -> Signature | None:
    """Return the intersection plan of two signatures with the highest share of overlap.

    Entries are matched one to one so that the sum of |A ∩ B| / |A ∪ B| is as large as it gets and
    no intersection is empty; None where there is no such matching.
    """
    if len(first) != len(second):
        return None
    size = len(first)
    share = np.array([[(a & b).bit_count() / (a | b).bit_count() for b in second] for a in first])
    forbidden = share == 0
    partner = _cheapest_assignment(np.where(forbidden, 4.0 * size, 1.0 - share))
    if forbidden[np.arange(size), partner].any():
        return None
    return tuple(sorted(a & second[j] for a, j in zip(first, partner, strict=True)))


def _cheapest_assignment(cost: FloatArray) -> IntArray:
    """Assign each row a column of its own at the least total cost (the Hungarian method)."""
    size = len(cost)
    row_price, column_price = np.zeros(size + 1), np.zeros(size + 1)
    row_of = np.zeros(size + 1, dtype=np.int64)
    for row in range(1, size + 1):
        row_of[0] = row
        column = 0
        slack = np.full(size + 1, np.inf)
        came_from = np.zeros(size + 1, dtype=np.int64)
        done = np.zeros(size + 1, dtype=bool)
        while row_of[column]:
            done[column] = True
            current = row_of[column]
            open_columns = np.flatnonzero(~done[1:]) + 1
            reduced = cost[current - 1, open_columns - 1] - row_price[current]
            reduced -= column_price[open_columns]
            better = reduced < slack[open_columns]
            slack[open_columns[better]] = reduced[better]
            came_from[open_columns[better]] = column
            nearest = open_columns[np.argmin(slack[open_columns])]
            step = slack[nearest]
            row_price[row_of[done]] += step
            column_price[done] -= step
            slack[open_columns] -= step
            column = int(nearest)
        while column:
            row_of[column] = row_of[came_from[column]]
            column = int(came_from[column])
    partner = np.empty(size, dtype=np.int64)
    partner[row_of[1:] - 1] = np.arange(size)
    return partner
