"""Create buckets and assign records: phases one and two of the paper."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pg_mdistinct.core.arrays import IntArray
from pg_mdistinct.core.buckets import (
    INTERSECTION,
    SIGNATURE,
    SINK,
    SOURCE,
    Bucket,
    covers,
    fewest_groups,
    intersect,
    stays_disjoint,
)
from pg_mdistinct.core.careful import RecordClass, assign_carefully
from pg_mdistinct.core.first_time import partition_first_time
from pg_mdistinct.core.flow import UNBOUNDED, Network
from pg_mdistinct.core.model import M_DISTINCT_STAR, UpdateModel
from pg_mdistinct.core.signature import RecordSignatures, record_signatures
from pg_mdistinct.core.snapshot import Snapshot
from pg_mdistinct.core.values import representatives

LEVELS = 24


@dataclass(frozen=True)
class Assignment:
    """The buckets of a release and, per record, the bucket that it goes to."""

    buckets: list[Bucket]
    of_record: IntArray


@dataclass(frozen=True)
class _Cells:
    """How many records of each class go to which bucket.

    Records of one class can stand for each other: those with the same signature and value.
    """

    record_class: IntArray
    bucket: IntArray
    records: IntArray


def assign(
    snapshot: Snapshot, model: UpdateModel, m: int, variant: str, rng: np.random.Generator
) -> Assignment:
    """Send every record to a bucket that keeps all its candidates alive.

    Old records go to the bucket of their own signature, which always has a place for them. New
    records fill what is missing there; buckets that still lack rows are intersected; new records
    that are left are grouped among themselves.
    """
    signatures = record_signatures(snapshot, model)
    values = len(model)
    is_new = signatures.of_record < 0
    new_class = len(signatures.signatures)
    record_class = np.where(is_new, new_class, signatures.of_record) * values + snapshot.value
    by_class = np.bincount(record_class, minlength=(new_class + 1) * values)
    if model.is_free(max([m, *map(len, signatures.signatures)])):
        old, new = by_class.reshape(-1, values)[:-1], by_class.reshape(-1, values)[-1]
        buckets, cells = _assign_freely(signatures, old, new, model, m, variant, rng)
    else:
        buckets, cells = _assign_by_exact_sets(signatures, by_class, model, m, variant)
    for bucket in buckets:
        bucket.groups = fewest_groups(bucket)
    return Assignment(buckets, _deal(record_class, cells, rng))


def _assign_freely(
    signatures: RecordSignatures,
    old: IntArray,
    new: IntArray,
    model: UpdateModel,
    m: int,
    variant: str,
    rng: np.random.Generator,
) -> tuple[list[Bucket], _Cells]:
    buckets = create_buckets(signatures, old)
    filled = fill_holes(buckets, new, model, variant)
    for bucket, extra in zip(buckets, filled, strict=True):
        bucket.counts = bucket.counts + extra
    buckets, went_to = merge_buckets(buckets)
    left = new - filled.sum(axis=0)
    in_use = {bucket.entries: i for i, bucket in enumerate(buckets)}
    cells = [_spread(old, went_to), _spread(filled, went_to, record_class=len(old))]
    for bucket in partition_first_time(left, model, m, variant, in_use, rng):
        where = in_use.get(bucket.entries)
        if where is None:
            where = len(buckets)
            buckets.append(bucket)
        else:
            buckets[where].counts = buckets[where].counts + bucket.counts
        cells.append(_spread(bucket.counts[None, :], np.array([where]), record_class=len(old)))
    return buckets, _Cells(*(np.concatenate(part) for part in zip(*cells, strict=True)))


def create_buckets(signatures: RecordSignatures, counts: IntArray) -> list[Bucket]:
    """Make a bucket for every signature, with the records that have it."""
    buckets = []
    for entries, of_value in zip(signatures.signatures, counts, strict=True):
        bucket = Bucket(entries, SIGNATURE, of_value)
        bucket.groups = fewest_groups(bucket)
        buckets.append(bucket)
    return buckets


def fill_holes(buckets: list[Bucket], new: IntArray, model: UpdateModel, variant: str) -> IntArray:
    """Give new records to buckets that lack rows: as many as possible, by maximum flow.

    The most frequent new values go first, so that the new records that are left over stay as
    even as they can be: level by level, supplies are widened to what exceeds the level. Under
    m-distinct* a bucket takes new records only if all its groups have disjoint reach sets.
    """
    filled = np.zeros((len(buckets), len(new)), dtype=np.int64)
    reach = model.reach_sets(1)
    open_buckets = [
        i
        for i, bucket in enumerate(buckets)
        if bucket.holes and (variant != M_DISTINCT_STAR or stays_disjoint(bucket.entries, reach))
    ]
    if not new.any() or not open_buckets:
        return filled
    arcs: list[tuple[int, int, int]] = []
    supply = [(SOURCE, 2 + v, 0) for v in range(len(new))]
    where: list[tuple[int, int, int]] = []
    node = 2 + len(new)
    for i in open_buckets:
        bucket = buckets[i]
        entry_nodes = range(node, node + len(bucket.types))
        node += len(bucket.types)
        for (_, multiplicity), entry in zip(bucket.types, entry_nodes, strict=True):
            arcs.append((entry, SINK, multiplicity * bucket.groups))
        for value in np.flatnonzero((new > 0) | (bucket.counts > 0)):
            fitting = [
                entry
                for (members, _), entry in zip(bucket.types, entry_nodes, strict=True)
                if members >> int(value) & 1
            ]
            if fitting:
                arcs.append((SOURCE, node, int(bucket.counts[value])))
                where.append((i, int(value), node))
                arcs += [(node, entry, int(UNBOUNDED)) for entry in fitting]
                node += 1
    network = Network(node)
    network.add(*np.array(arcs, dtype=np.int64).T)
    supply_arcs = network.add(*np.array(supply, dtype=np.int64).T)
    bucket_of, value_of, node_of = np.array(where, dtype=np.int64).T
    room = np.array([buckets[i].groups - buckets[i].counts[v] for i, v, _ in where])
    fill_arcs = network.add(2 + value_of, node_of, room)
    network.augment(SOURCE, SINK)
    offered = np.zeros_like(new)
    for level in np.linspace(int(new.max()), 0, LEVELS).astype(np.int64):
        wanted = np.maximum(new - level, 0)
        network.widen(supply_arcs, wanted - offered)
        offered = wanted
        network.augment(SOURCE, SINK)
    filled[bucket_of, value_of] = network.flow(fill_arcs)
    return filled


def merge_buckets(buckets: list[Bucket]) -> tuple[list[Bucket], IntArray]:
    """Intersect buckets that lack rows where that saves counterfeits.

    Only buckets with holes can gain, so only they are paired, and only with partners whose
    records fit. Returns the buckets that are left and, for each old one, where it went.
    """
    merged: list[Bucket | None] = list(buckets)
    went_to = np.arange(len(buckets))
    holed = [i for i, bucket in enumerate(buckets) if bucket.holes]
    holed.sort(key=lambda i: int(buckets[i].counts.sum()))
    for i in holed:
        for j in holed:
            first, second = merged[i], merged[j]
            if first is None or not first.holes:
                break
            if i == j or second is None or not second.holes:
                continue
            union = _intersection_bucket(first, second)
            if union is not None and union.groups < first.groups + second.groups:
                merged[i], merged[j] = union, None
                went_to[went_to == j] = i
    kept = [i for i, bucket in enumerate(merged) if bucket is not None]
    renumbered = np.full(len(buckets), -1)
    renumbered[kept] = np.arange(len(kept))
    return [bucket for bucket in merged if bucket is not None], renumbered[went_to]


def _intersection_bucket(first: Bucket, second: Bucket) -> Bucket | None:
    """Return both buckets' records in the intersection of their signatures, if they fit it."""
    if len(first.entries) != len(second.entries):
        return None
    if not covers(first.entries, second.support) or not covers(second.entries, first.support):
        return None
    entries = intersect(first.entries, second.entries)
    if entries is None or not covers(entries, first.support | second.support):
        return None
    if representatives(entries) is None:
        return None
    bucket = Bucket(entries, INTERSECTION, first.counts + second.counts)
    bucket.groups = fewest_groups(bucket)
    return bucket


def _assign_by_exact_sets(
    signatures: RecordSignatures, by_class: IntArray, model: UpdateModel, m: int, variant: str
) -> tuple[list[Bucket], _Cells]:
    present = np.flatnonzero(by_class)
    classes = [
        RecordClass(
            signatures.signatures[c // len(model)]
            if c // len(model) < len(signatures.signatures)
            else None,
            int(c % len(model)),
            int(by_class[c]),
        )
        for c in present
    ]
    buckets, cells = assign_carefully(classes, model, m, variant)
    which, bucket, records = np.array(cells, dtype=np.int64).reshape(-1, 3).T
    return buckets, _Cells(present[which], bucket, records)


def _spread(
    counts: IntArray, bucket: IntArray, record_class: int | None = None
) -> tuple[IntArray, IntArray, IntArray]:
    """List the cells of a table of counts (rows: classes or sources, columns: values)."""
    row, value = np.nonzero(counts)
    signature = row if record_class is None else np.full(len(row), record_class)
    return signature * counts.shape[1] + value, bucket[row], counts[row, value]


def _deal(record_class: IntArray, cells: _Cells, rng: np.random.Generator) -> IntArray:
    """Give each cell its records, drawn at random from their class."""
    shuffled = rng.permutation(len(record_class))
    by_class = shuffled[np.argsort(record_class[shuffled], kind="stable")]
    order = np.argsort(cells.record_class, kind="stable")
    of_record = np.empty(len(record_class), dtype=np.int64)
    of_record[by_class] = np.repeat(cells.bucket[order], cells.records[order])
    return of_record
