"""One publication, as the paper's overview has it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pg_mdistinct.core.arrays import IntArray, Ragged
from pg_mdistinct.core.assignment import Assignment, Progress, assign
from pg_mdistinct.core.buckets import Bucket, Placement
from pg_mdistinct.core.counterfeits import balance
from pg_mdistinct.core.generalize import (
    Generalized,
    counterfeit_codes,
    generalize,
    scaled_positions,
)
from pg_mdistinct.core.model import UpdateModel
from pg_mdistinct.core.snapshot import Snapshot
from pg_mdistinct.core.split import split_bucket
from pg_mdistinct.core.values import values_of


@dataclass(frozen=True)
class BucketTable:
    """The buckets of a release, for people who want to look: kind, entries, number of groups."""

    kind: list[str]
    entries: list[list[IntArray]]
    groups: IntArray


@dataclass(frozen=True)
class Release:
    """A release before it is written; groups are numbered at random, gid = number + 1."""

    group: IntArray
    candidates: Ragged
    counterfeits: IntArray
    low: list[IntArray]
    high: list[IntArray]
    members: list[Ragged | None]
    ncp: float
    buckets: BucketTable
    bucket: IntArray
    entry: IntArray


@dataclass(frozen=True)
class _Groups:
    """All groups, numbered bucket by bucket along the splits."""

    of_record: IntArray
    bucket: IntArray
    counterfeit_group: IntArray
    counterfeit_value: IntArray
    entry: IntArray


def check_updates(snapshot: Snapshot, model: UpdateModel) -> IntArray:
    """Return the records whose value cannot have come from their last one."""
    impossible = np.zeros(len(snapshot), dtype=bool)
    for gap in np.unique(snapshot.gap[snapshot.last_value >= 0]):
        rows = np.flatnonzero((snapshot.gap == gap) & (snapshot.last_value >= 0))
        legal = model.reach(int(gap))[snapshot.last_value[rows], snapshot.value[rows]]
        impossible[rows[~legal]] = True
    return np.flatnonzero(impossible)


def plan_release(
    snapshot: Snapshot,
    model: UpdateModel,
    m: int,
    variant: str,
    rng: np.random.Generator,
    progress: Progress = lambda phase, share: None,
) -> Release:
    """Anonymize a snapshot so that the history stays m-Distinct.

    The model must have passed its check, and the snapshot's updates too.
    """
    progress("assign", 0.0)
    assignment = assign(snapshot, model, m, variant, rng, progress)
    groups = _split_all(snapshot, assignment, rng, progress)
    progress("generalize", 0.0)
    position = scaled_positions(snapshot)
    codes = counterfeit_codes(
        snapshot, position, groups.of_record, groups.bucket, groups.counterfeit_group, rng
    )
    shuffled = rng.permutation(len(groups.bucket))
    of_record, of_counterfeit = shuffled[groups.of_record], shuffled[groups.counterfeit_group]
    shown = generalize(snapshot, of_record, len(shuffled), of_counterfeit, codes)
    progress("generalize", 1.0)
    return _release(snapshot, assignment, groups, of_record, of_counterfeit, shown)


def _split_all(
    snapshot: Snapshot, assignment: Assignment, rng: np.random.Generator, progress: Progress
) -> _Groups:
    """Balance every bucket with counterfeits and split it into groups."""
    position = scaled_positions(snapshot)
    counts = np.bincount(snapshot.value, minlength=_domain(assignment))
    popularity = counts.astype(np.float64) + 1.0
    records = rng.permutation(len(snapshot))
    records = records[np.argsort(assignment.of_record[records], kind="stable")]
    ends = np.cumsum([int(bucket.counts.sum()) for bucket in assignment.buckets])
    of_record = np.empty(len(snapshot), dtype=np.int64)
    entry = np.empty(len(snapshot), dtype=np.int64)
    fake_groups, fake_values, first = [], [], 0
    for bucket, end in zip(assignment.buckets, ends, strict=True):
        rows = records[end - int(bucket.counts.sum()) : end]
        placement, _ = balance(bucket, popularity, rng)
        parts = split_bucket(bucket, placement, snapshot.value[rows], position[rows])
        of_record[rows] = first + parts.group
        entry[rows] = _entries(bucket, placement, snapshot.value[rows])
        fake_groups.append(first + parts.counterfeit_group)
        fake_values.append(parts.counterfeit_value)
        first += bucket.groups
        progress("split", float(end) / max(len(snapshot), 1))
    bucket_of_group = np.repeat(
        np.arange(len(assignment.buckets)), [bucket.groups for bucket in assignment.buckets]
    )
    nothing = np.empty(0, dtype=np.int64)
    return _Groups(
        of_record,
        bucket_of_group,
        np.concatenate([nothing, *fake_groups]),
        np.concatenate([nothing, *fake_values]),
        entry,
    )


def _domain(assignment: Assignment) -> int:
    return len(assignment.buckets[0].counts) if assignment.buckets else 0


def _entries(bucket: Bucket, placement: Placement, value: IntArray) -> IntArray:
    """Say which entry each record stands at: entries of one type are taken in turn."""
    entry = np.empty(len(value), dtype=np.int64)
    first_entry = np.cumsum([0] + [count for _, count in bucket.types])
    by_value = np.argsort(value, kind="stable")
    turn = np.zeros(len(bucket.types), dtype=np.int64)
    at = 0
    for v in np.unique(value):
        left = int((value == v).sum())
        for cell in np.flatnonzero(placement.value == v):
            kind = placement.entry_type[cell]
            taken = min(left, int(placement.rows[cell]))
            turns = turn[kind] + np.arange(taken)
            entry[by_value[at : at + taken]] = first_entry[kind] + turns % bucket.types[kind][1]
            turn[kind] += taken
            at, left = at + taken, left - taken
    return entry


def _release(
    snapshot: Snapshot,
    assignment: Assignment,
    groups: _Groups,
    of_record: IntArray,
    of_counterfeit: IntArray,
    shown: Generalized,
) -> Release:
    count = len(groups.bucket)
    everyone = np.concatenate([of_record, of_counterfeit])
    values = np.concatenate([snapshot.value, groups.counterfeit_value])
    order = np.lexsort((values, everyone))
    offsets = np.searchsorted(everyone[order], np.arange(count + 1)).astype(np.int64)
    return Release(
        group=of_record,
        candidates=Ragged(offsets, values[order]),
        counterfeits=np.bincount(of_counterfeit, minlength=count).astype(np.int64),
        low=shown.low,
        high=shown.high,
        members=shown.members,
        ncp=shown.ncp,
        buckets=_table(assignment),
        bucket=assignment.of_record,
        entry=groups.entry,
    )


def _table(assignment: Assignment) -> BucketTable:
    return BucketTable(
        kind=[bucket.kind for bucket in assignment.buckets],
        entries=[
            [
                np.array(list(values_of(members)), dtype=np.int64)
                for members, multiplicity in bucket.types
                for _ in range(multiplicity)
            ]
            for bucket in assignment.buckets
        ],
        groups=np.array([bucket.groups for bucket in assignment.buckets], dtype=np.int64),
    )
