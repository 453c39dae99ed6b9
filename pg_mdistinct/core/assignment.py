"""Create buckets and assign records: phases one and two of the paper."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pg_mdistinct.core.arrays import IntArray, bits, places_of, stable_order
from pg_mdistinct.core.buckets import (
    INTERSECTION,
    SIGNATURE,
    Bucket,
    fewest_groups,
    intersect,
)
from pg_mdistinct.core.careful import RecordClass, assign_carefully
from pg_mdistinct.core.curve import along_curve
from pg_mdistinct.core.family import Surroundings
from pg_mdistinct.core.filling import fill_holes
from pg_mdistinct.core.first_time import partition_first_time
from pg_mdistinct.core.model import UpdateModel
from pg_mdistinct.core.regions import regions
from pg_mdistinct.core.signature import RecordSignatures, Signature, record_signatures
from pg_mdistinct.core.snapshot import Snapshot
from pg_mdistinct.core.values import representatives

Progress = Callable[[str, float], None]
"""Told the phase and its share that is done; may raise to end the work."""


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
    snapshot: Snapshot,
    position: npt.NDArray[np.float32],
    model: UpdateModel,
    m: int,
    variant: str,
    rng: np.random.Generator,
    progress: Progress = lambda phase, share: None,
) -> Assignment:
    """Send every record to a bucket that keeps all its candidates alive.

    Old records go to the bucket of their own signature, which always has a place for them. New
    records fill what is missing there; buckets that still lack rows are intersected; new records
    that are left are grouped among themselves. ``position`` tells where the records lie.
    """
    signatures = record_signatures(snapshot, model)
    if model.is_free(max([m, *map(len, signatures.signatures)])):
        assignment = _assign_freely(
            snapshot, position, signatures, model, m, variant, rng, progress
        )
    else:
        assignment = _assign_by_exact_sets(snapshot, signatures, model, m, variant, rng)
    for bucket in assignment.buckets:
        bucket.groups = fewest_groups(bucket)
    return assignment


def _assign_freely(
    snapshot: Snapshot,
    position: npt.NDArray[np.float32],
    signatures: RecordSignatures,
    model: UpdateModel,
    m: int,
    variant: str,
    rng: np.random.Generator,
    progress: Progress,
) -> Assignment:
    counts = _count_classes(snapshot, signatures, len(model))
    new = np.flatnonzero(signatures.of_record < 0)
    buckets = create_buckets(signatures, counts[:-1])
    filled = fill_holes(buckets, counts[-1], model, variant)
    for bucket, extra in zip(buckets, filled, strict=True):
        bucket.counts = bucket.counts + extra
    buckets, went_to = merge_buckets(buckets, progress)
    of_record = np.append(went_to, -1)[signatures.of_record]
    into, value = np.nonzero(filled)
    cells = _Cells(value, went_to[into], filled[into, value])
    of_record[new] = _deal(snapshot.value[new], cells, rng.permutation(len(new)))
    left = new[of_record[new] < 0]
    region = regions(position, snapshot.value)
    standing = _count_by_region(of_record, region, snapshot.value, len(buckets), len(model))
    around = Surroundings(
        {bucket.entries: there for bucket, there in zip(buckets, standing[:-1], strict=True)},
        {bucket.entries: bucket.groups for bucket in buckets},
    )
    pieces, preferred = partition_first_time(
        standing[-1],
        around,
        model,
        m,
        variant,
        rng,
        lambda share: progress("choose signatures", share),
    )
    number = {bucket.entries: i for i, bucket in enumerate(buckets)}
    cells = _add_pieces(buckets, pieces, number, len(model))
    cells, where = _by_region(
        cells, {number[s]: taken for s, taken in preferred.items() if s in number}
    )
    place = along_curve(position.take(left, axis=0), rng)
    of_record[left] = _deal_evenly(snapshot.value[left], region[left], place, cells, where, rng)
    return Assignment(buckets, of_record)


def _count_by_region(
    bucket: IntArray, region: IntArray, value: IntArray, buckets: int, values: int
) -> IntArray:
    """Count records by bucket (the last one: those without), region and value."""
    places = int(region.max(initial=0)) + 1
    key = (_last_for_none(bucket, buckets) * places + region) * values + value
    counts = np.bincount(key, minlength=(buckets + 1) * places * values)
    return counts.reshape(buckets + 1, places, values).astype(np.int64)


def _by_region(cells: _Cells, preferred: Mapping[int, IntArray]) -> tuple[_Cells, IntArray]:
    """Let buckets take records from the regions they prefer; return cells and their regions.

    What a cell takes beyond that comes from anywhere, after all the others.
    """
    amount = Counter[tuple[int, int]]()
    columns = cells.record_class.tolist(), cells.bucket.tolist(), cells.records.tolist()
    for value, bucket, records in zip(*columns, strict=True):
        amount[value, bucket] += records
    regional: list[tuple[int, int, int, int]] = []
    for bucket, taken in preferred.items():
        for region, value in np.argwhere(taken).tolist():
            records = min(int(taken[region, value]), amount[value, bucket])
            amount[value, bucket] -= records
            regional.append((region, value, bucket, records))
    anywhere = max((taken.shape[0] for taken in preferred.values()), default=0)
    regional += [(anywhere, value, bucket, records) for (value, bucket), records in amount.items()]
    table = np.array(sorted(regional), dtype=np.int64).reshape(-1, 4)
    return _Cells(table[:, 1], table[:, 2], table[:, 3]), table[:, 0]


def _deal_evenly(
    value: IntArray,
    region: IntArray,
    place: IntArray,
    cells: _Cells,
    cell_region: IntArray,
    rng: np.random.Generator,
) -> IntArray:
    """Give each cell its records, spread evenly over the region that it takes them from.

    ``place`` orders the records of a region so that neighbours come close to each other. All
    records of a value are wanted by some cell.
    """
    amounts = cells.records
    turn = np.arange(amounts.sum()) - np.repeat(np.cumsum(amounts) - amounts, amounts)
    begin = np.repeat(rng.random(len(amounts)), amounts)
    along = (turn + begin) / np.repeat(np.maximum(amounts, 1), amounts)
    areas = max(int(cell_region.max(initial=0)), int(region.max(initial=0))) + 1
    from_where = np.repeat(cells.record_class * areas + cell_region, amounts)
    wanted = _ordered(from_where, stable_order(bits(along.astype(np.float32))))
    there = _ordered(value * areas + region, stable_order(place))
    of_record = np.empty(len(value), dtype=np.int64)
    of_record[there] = np.repeat(cells.bucket, amounts)[wanted]
    return of_record


def _count_classes(snapshot: Snapshot, signatures: RecordSignatures, values: int) -> IntArray:
    """Count the records by signature (the last row: new ones) and value."""
    rows = len(signatures.signatures) + 1
    signature = _last_for_none(signatures.of_record, rows - 1)
    counts = np.bincount(signature * values + snapshot.value, minlength=rows * values)
    return counts.reshape(rows, values).astype(np.int64)


def _last_for_none(number: IntArray, last: int) -> IntArray:
    """Give those without a number the last one."""
    return np.where(number < 0, last, number)


def _add_pieces(
    buckets: list[Bucket], pieces: list[Bucket], number: dict[Signature, int], values: int
) -> _Cells:
    """Add pieces to the buckets with the same entries; return what each takes of which value."""
    into = []
    for piece in pieces:
        where = number.setdefault(piece.entries, len(buckets))
        if where == len(buckets):
            buckets.append(Bucket(piece.entries, piece.kind, np.zeros_like(piece.counts)))
        buckets[where].counts = buckets[where].counts + piece.counts
        into.append(where)
    taken = np.array([piece.counts for piece in pieces], dtype=np.int64).reshape(-1, values)
    piece_number, value = np.nonzero(taken)
    return _Cells(value, np.array(into, dtype=np.int64)[piece_number], taken[piece_number, value])


def create_buckets(signatures: RecordSignatures, counts: IntArray) -> list[Bucket]:
    """Make a bucket for every signature, with the records that have it."""
    buckets = []
    for entries, of_value in zip(signatures.signatures, counts, strict=True):
        bucket = Bucket(entries, SIGNATURE, of_value)
        bucket.groups = fewest_groups(bucket)
        buckets.append(bucket)
    return buckets


def merge_buckets(
    buckets: list[Bucket], progress: Progress = lambda phase, share: None
) -> tuple[list[Bucket], IntArray]:
    """Intersect buckets that lack rows where that saves counterfeits.

    Only buckets with holes can gain, so only they are paired, and only with partners whose
    records fit. Returns the buckets that are left and, for each old one, where it went.
    """
    merged: list[Bucket | None] = list(buckets)
    went_to = np.arange(len(buckets))
    holed = [i for i, bucket in enumerate(buckets) if bucket.holes]
    holed.sort(key=lambda i: int(buckets[i].counts.sum()))
    reaches = {i: (buckets[i].support, buckets[i].fitting) for i in holed}
    for step, i in enumerate(holed):
        progress("merge buckets", step / len(holed))
        for j in holed:
            first, second = merged[i], merged[j]
            if first is None or not first.holes:
                break
            if i == j or second is None or not second.holes:
                continue
            if reaches[i][0] & ~reaches[j][1] or reaches[j][0] & ~reaches[i][1]:
                continue
            union = _intersection_bucket(first, second)
            if union is not None and union.groups < first.groups + second.groups:
                merged[i], merged[j] = union, None
                reaches[i] = (union.support, union.fitting)
                went_to[went_to == j] = i
    kept = [i for i, bucket in enumerate(merged) if bucket is not None]
    renumbered = np.full(len(buckets), -1)
    renumbered[kept] = np.arange(len(kept))
    return [bucket for bucket in merged if bucket is not None], renumbered[went_to]


def _intersection_bucket(first: Bucket, second: Bucket) -> Bucket | None:
    """Return both buckets' records in the intersection of their signatures, if they fit it.

    Where the most frequent value alone needs as many groups as before nothing can be saved.
    """
    counts = first.counts + second.counts
    if counts.max() >= first.groups + second.groups:
        return None
    entries = intersect(first.entries, second.entries)
    if entries is None:
        return None
    bucket = Bucket(entries, INTERSECTION, counts)
    if bucket.support & ~bucket.fitting or representatives(entries) is None:
        return None
    bucket.groups = fewest_groups(bucket)
    return bucket


def _assign_by_exact_sets(
    snapshot: Snapshot,
    signatures: RecordSignatures,
    model: UpdateModel,
    m: int,
    variant: str,
    rng: np.random.Generator,
) -> Assignment:
    counts = _count_classes(snapshot, signatures, len(model))
    signature, value = np.nonzero(counts)
    classes = [
        RecordClass(None if s == len(counts) - 1 else signatures.signatures[s], int(v), int(n))
        for s, v, n in zip(signature, value, counts[signature, value], strict=True)
    ]
    buckets, dealt = assign_carefully(classes, model, m, variant)
    which, bucket, records = np.array(dealt, dtype=np.int64).reshape(-1, 3).T
    own = _last_for_none(signatures.of_record, len(counts) - 1)
    class_number = own * len(model) + snapshot.value
    cells = _Cells((signature * len(model) + value)[which], bucket, records)
    return Assignment(buckets, _deal(class_number, cells, rng.permutation(len(snapshot))))


def _deal(record_class: IntArray, cells: _Cells, priority: IntArray) -> IntArray:
    """Give each cell its records: those of its class, in the order of their priority.

    Cells of one class are served in the order given; records that no cell wants get -1.
    """
    records = _ordered(record_class, stable_order(priority))
    first = np.searchsorted(record_class[records], cells.record_class)
    order = np.argsort(cells.record_class, kind="stable")
    amounts = cells.records[order]
    before = np.cumsum(amounts) - amounts
    class_start = np.searchsorted(cells.record_class[order], cells.record_class[order])
    start = first[order] + before - before[class_start] if len(order) else before
    of_record = np.full(len(record_class), -1, dtype=np.int64)
    where = np.repeat(start - before, amounts) + np.arange(amounts.sum())
    of_record[records[where]] = np.repeat(cells.bucket[order], amounts)
    return of_record


def _ordered(number: IntArray, turn: IntArray) -> IntArray:
    """Return all places in the order of the numbers there; those of one number in turn."""
    return turn[places_of(number[turn], int(number.max(initial=-1)) + 1).items]
