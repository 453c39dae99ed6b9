"""The paper's own assignment of records to buckets (its algorithm 3), to count its counterfeits.

It is written for update models of disjoint classes, as all of section 6 has. There an entry is a
class, a record that was published before fits the bucket of its own signature only, and no two
buckets intersect in a third one. Since entries of one class are filled evenly ("less already
assigned records"), a bucket needs δ = max(most frequent value, fullest entry) groups. All records
of its groups then have the bucket's signature, so counting counterfeits needs no groups.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from pg_mdistinct.core.arrays import IntArray
from pg_mdistinct.core.compiled import kernel, kernel_part
from pg_mdistinct.workload import OCCUPATIONS, QI_COLUMNS, SnapshotArray

NOWHERE = -1


@dataclass
class Buckets:
    """Signatures with what stands there: ``entries`` counts them by class, ``counts`` by value.

    ``low`` and ``high`` enclose the quasi-identifiers of a bucket's records.
    """

    entries: IntArray
    counts: IntArray
    low: IntArray
    high: IntArray

    @classmethod
    def empty(cls, entries: IntArray) -> Buckets:
        """Return buckets without records."""
        shape = (len(entries), len(QI_COLUMNS))
        return cls(
            entries,
            np.zeros((len(entries), OCCUPATIONS), dtype=np.int64),
            np.full(shape, np.iinfo(np.int64).max, dtype=np.int64),
            np.full(shape, -1, dtype=np.int64),
        )

    def by_class(self, d: int) -> IntArray:
        """Count records by class."""
        return np.add.reduceat(self.counts, np.arange(0, OCCUPATIONS, d), axis=1)

    def groups(self, d: int) -> IntArray:
        """Return δ of every bucket."""
        fullest = -(-self.by_class(d) // np.maximum(self.entries, 1))
        delta: IntArray = np.maximum(self.counts.max(axis=1), fullest.max(axis=1))
        return delta

    def counterfeits(self, d: int) -> int:
        """Return how many rows are missing: every entry is filled up to δ."""
        return int((self.groups(d) * self.entries.sum(axis=1)).sum() - self.counts.sum())


@dataclass(frozen=True)
class GreedyRelease:
    """Where records went, all buckets, and the bucket that each record's signature had before."""

    bucket: IntArray
    before: IntArray
    buckets: Buckets


def publish_greedily(
    snapshots: Iterable[SnapshotArray], signatures: IntArray, d: int, rng: np.random.Generator
) -> Iterator[GreedyRelease]:
    """Assign all snapshots; ``signatures`` are those of the first one's records, by class.

    The first snapshot is grouped by some other algorithm, as in the paper.
    """
    entries, bucket = np.unique(signatures, axis=0, return_inverse=True)
    of_record: dict[int, int] = {}
    for number, people in enumerate(snapshots):
        ids = people["id"].tolist()
        if number == 0:
            before = bucket.reshape(-1).astype(np.int64)
        else:
            before = np.array([of_record.get(i, NOWHERE) for i in ids], dtype=np.int64)
        found = assign_greedily(people, before, entries, d, rng)
        of_record |= dict(zip(ids, found.bucket.tolist(), strict=True))
        entries = found.buckets.entries
        yield found


def assign_greedily(
    people: SnapshotArray, before: IntArray, entries: IntArray, d: int, rng: np.random.Generator
) -> GreedyRelease:
    """Put records into buckets one by one, those with fewest buckets to choose from first.

    New records whose class is in no signature get signatures of their own.
    """
    value = people["occupation"]
    used = np.unique(before[before != NOWHERE])
    uncovered = np.setdiff1d(
        value[before == NOWHERE] // d, np.flatnonzero(entries[used].any(axis=0))
    )
    more = _signatures_with(uncovered, entries)
    used = np.concatenate([used, len(entries) + np.arange(len(more))])
    entries = np.concatenate([entries, more])
    buckets = Buckets.empty(entries)
    qi = np.stack([people[name] for name in QI_COLUMNS], axis=1)
    choices = (entries[used] > 0).sum(axis=0)[value // d]
    choices[before != NOWHERE] = 1
    order = rng.permutation(len(people))
    order = order[np.argsort(choices[order], kind="stable")]
    bucket = before.copy()
    _assign(order, value, qi, d, used, entries, buckets.counts, buckets.low, buckets.high, bucket)
    return GreedyRelease(bucket, before, buckets)


def _signatures_with(classes: IntArray, entries: IntArray) -> IntArray:
    """Return signatures of different classes that cover the given ones, filled up with others."""
    size = int(entries[0].sum())
    others = np.setdiff1d(np.arange(entries.shape[1]), classes)
    wanted = np.concatenate([classes, others[: -len(classes) % size]]).reshape(-1, size)
    more = np.zeros((len(wanted), entries.shape[1]), dtype=np.int64)
    np.put_along_axis(more, wanted, 1, axis=1)
    return more


@kernel()
def _assign(order, value, qi, d, used, entries, counts, low, high, bucket):  # type: ignore[no-untyped-def]
    """Take the best scored bucket for each record that is in none yet."""
    of_class = np.zeros(entries.shape, dtype=np.int64)
    delta = np.zeros(len(entries), dtype=np.int64)
    for record in order:
        v = value[record]
        c = v // d
        best = bucket[record]
        if best == NOWHERE:
            best_score = -np.inf
            for b in used:
                if entries[b, c] == 0:
                    continue
                growth = _growth(qi[record], low[b], high[b])
                # The emptiest of the class's entries: they are filled evenly.
                adds = counts[b, v] == delta[b] or of_class[b, c] // entries[b, c] == delta[b]
                score = -growth if adds else 1.0 / growth
                if score > best_score:
                    best_score, best = score, b
        bucket[record] = best
        counts[best, v] += 1
        of_class[best, c] += 1
        fullest = -(-of_class[best, c] // entries[best, c])
        delta[best] = max(delta[best], counts[best, v], fullest)
        for q in range(qi.shape[1]):
            low[best, q] = min(low[best, q], qi[record, q])
            high[best, q] = max(high[best, q], qi[record, q])


@kernel_part
def _growth(position, low, high):  # type: ignore[no-untyped-def]
    """Return λ: by which factor a record enlarges a bucket's area; a single value has width 1."""
    growth = 1.0
    if high[0] < 0:
        return growth
    for q in range(len(position)):
        wider = max(high[q], position[q]) - min(low[q], position[q]) + 1
        growth *= wider / (high[q] - low[q] + 1)
    return growth
