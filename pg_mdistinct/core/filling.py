"""Fill what old records leave open in their buckets with new ones, by maximum flow.

New values flow to the buckets and entries that they fit; the records that are there already flow
too, so that they may change their entries to make room.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pg_mdistinct.core.arrays import IntArray
from pg_mdistinct.core.buckets import SINK, SOURCE, Bucket
from pg_mdistinct.core.flow import UNBOUNDED, Network
from pg_mdistinct.core.model import M_DISTINCT_STAR, UpdateModel
from pg_mdistinct.core.values import stay_disjoint

LEVELS = 24


def fill_holes(
    buckets: Sequence[Bucket], new: IntArray, model: UpdateModel, variant: str
) -> IntArray:
    """Return how many new records of each value go to each bucket: as many as possible.

    The most frequent new values go first, so that the new records that are left over stay as
    even as they can be: level by level, supplies are widened to what exceeds the level. Under
    m-distinct* a bucket takes new records only if all its groups have disjoint reach sets.
    """
    filled = np.zeros((len(buckets), len(new)), dtype=np.int64)
    reach = model.reach_sets(1)
    is_open = [
        bool(bucket.holes) and (variant != M_DISTINCT_STAR or stay_disjoint(bucket.entries, reach))
        for bucket in buckets
    ]
    if new.any() and any(is_open):
        which = np.flatnonzero(is_open)
        filled[which] = _Holes([buckets[int(i)] for i in which], new).fill()
    return filled


class _Holes:
    """The network: new values, then (bucket, value) pairs, then the entry types of each bucket."""

    def __init__(self, buckets: Sequence[Bucket], new: IntArray) -> None:
        self.new = new
        self.shape = (len(buckets), len(new))
        self._node = 2 + len(new)
        self._arcs: list[tuple[int, int, int]] = []
        self._pairs: list[tuple[int, int, int, int]] = []
        for number, bucket in enumerate(buckets):
            self._add_bucket(number, bucket)
        self.network = Network(self._node)
        self.network.add(*np.array(self._arcs, dtype=np.int64).T)
        values = np.arange(len(new))
        self._supply = self.network.add(np.full(len(new), SOURCE), 2 + values, 0 * values)
        self._bucket, self._value, node, room = np.array(self._pairs, dtype=np.int64).T
        self._filling = self.network.add(2 + self._value, node, room)

    def _add_bucket(self, number: int, bucket: Bucket) -> None:
        """Add the entry types of a bucket, and the values that it has or may get."""
        entries = [self._new_node() for _ in bucket.types]
        for (_, multiplicity), entry in zip(bucket.types, entries, strict=True):
            self._arcs.append((entry, SINK, multiplicity * bucket.groups))
        for value in np.flatnonzero((self.new > 0) | (bucket.counts > 0)).tolist():
            fitting = [
                entry
                for (members, _), entry in zip(bucket.types, entries, strict=True)
                if members >> value & 1
            ]
            if fitting:
                standing, node = int(bucket.counts[value]), self._new_node()
                self._arcs.append((SOURCE, node, standing))
                self._arcs += [(node, entry, int(UNBOUNDED)) for entry in fitting]
                self._pairs.append((number, value, node, bucket.groups - standing))

    def _new_node(self) -> int:
        self._node += 1
        return self._node - 1

    def fill(self) -> IntArray:
        """Seat the records that are there, then let new ones in, level by level."""
        self.network.augment(SOURCE, SINK)
        offered = np.zeros_like(self.new)
        for level in np.linspace(int(self.new.max()), 0, LEVELS).astype(np.int64):
            wanted = np.maximum(self.new - level, 0)
            self.network.widen(self._supply, wanted - offered)
            offered = wanted
            self.network.augment(SOURCE, SINK)
        filled = np.zeros(self.shape, dtype=np.int64)
        filled[self._bucket, self._value] = self.network.flow(self._filling)
        return filled
