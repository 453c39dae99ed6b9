"""One publication, as the paper's overview has it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pg_mdistinct.core.arrays import FloatArray, IntArray, Ragged, different, places_of
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
from pg_mdistinct.core.refine import Members, refine
from pg_mdistinct.core.side_by_side import Breathe, side_by_side
from pg_mdistinct.core.snapshot import Snapshot
from pg_mdistinct.core.split import split_bucket
from pg_mdistinct.core.values import values_of

Positions = npt.NDArray[np.float32]


@dataclass(frozen=True)
class BucketTable:
    """The buckets of a release, for people who want to look: kind, entries, number of groups.

    ``multiplicity`` counts how often each different entry occurs.
    """

    kind: list[str]
    entries: list[list[IntArray]]
    multiplicity: list[list[int]]
    groups: IntArray


@dataclass(frozen=True)
class Release:
    """A release before it is written; groups are numbered at random, gid = number + 1.

    ``bucket`` is that of each record, ``placements`` say what stands where in each bucket, and
    ``kinds`` number the values of each bucket so that those which fit the same entries are alike.
    """

    group: IntArray
    candidates: Ragged
    counterfeits: IntArray
    low: list[IntArray]
    high: list[IntArray]
    members: list[Ragged | None]
    ncp: float
    buckets: BucketTable
    bucket: IntArray
    placements: list[Placement]
    kinds: IntArray

    def entry(self, value: IntArray) -> IntArray:
        """Return at which entry of its bucket each record stands, given the records' values."""
        entry = np.empty(len(value), dtype=np.int64)
        for number, placement in enumerate(self.placements):
            rows = np.flatnonzero(self.bucket == number)
            kinds, multiplicity = self.kinds[number], self.buckets.multiplicity[number]
            entry[rows] = _entries(multiplicity, placement, kinds, kinds[value[rows]])
        return entry


@dataclass(frozen=True)
class _Groups:
    """All groups, numbered bucket by bucket along the splits; counterfeits come after records."""

    of_row: IntArray
    bucket: IntArray
    counterfeit_value: IntArray
    placements: list[Placement]

    @property
    def of_record(self) -> IntArray:
        return self.of_row[: len(self.of_row) - len(self.counterfeit_value)]

    @property
    def of_counterfeit(self) -> IntArray:
        return self.of_row[len(self.of_row) - len(self.counterfeit_value) :]


def check_updates(snapshot: Snapshot, model: UpdateModel) -> IntArray:
    """Return the records whose value cannot have come from their last one."""
    impossible = np.zeros(len(snapshot), dtype=bool)
    for gap in different(snapshot.gap[snapshot.last_value >= 0]):
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
    position = scaled_positions(snapshot)
    assignment = assign(snapshot, position, model, m, variant, rng, progress)
    groups = _split_all(snapshot, position, assignment, rng, progress)
    kinds = np.array([_kinds(bucket) for bucket in assignment.buckets])
    _refine(groups, snapshot, position, assignment.of_record, kinds, rng, progress)
    progress("generalize", 0.0)
    codes = counterfeit_codes(
        snapshot, position, groups.of_record, groups.bucket, groups.of_counterfeit, rng
    )
    shuffled = rng.permutation(len(groups.bucket))
    of_record, of_counterfeit = shuffled[groups.of_record], shuffled[groups.of_counterfeit]
    shown = generalize(snapshot, of_record, len(shuffled), of_counterfeit, codes)
    progress("generalize", 1.0)
    return _release(snapshot, assignment, groups, kinds, of_record, of_counterfeit, shown)


def _split_all(
    snapshot: Snapshot,
    position: Positions,
    assignment: Assignment,
    rng: np.random.Generator,
    progress: Progress,
) -> _Groups:
    """Balance every bucket with counterfeits and split it into groups."""
    buckets = assignment.buckets
    popularity = _popularity(snapshot.value, buckets)
    records = rng.permutation(len(snapshot))
    in_bucket = places_of(assignment.of_record[records], len(buckets))
    placements = [balance(bucket, popularity, rng)[0] for bucket in buckets]
    groups = np.array([bucket.groups for bucket in buckets], dtype=np.int64)
    of_record = np.empty(len(snapshot), dtype=np.int64)

    def split(number: int, breathe: Breathe) -> tuple[IntArray, IntArray]:
        rows = records[in_bucket.row(number)]
        value, where = snapshot.value[rows], position.take(rows, axis=0)
        parts = split_bucket(buckets[number], placements[number], value, where, breathe)
        first = int(groups[:number].sum())
        of_record[rows] = first + parts.group
        return first + parts.counterfeit_group, parts.counterfeit_value

    fakes = side_by_side(
        split,
        range(len(buckets)),
        in_bucket.lengths.tolist(),
        lambda share: progress("split", share),
    )
    return _Groups(
        np.concatenate([of_record, *(group for group, _ in fakes)]),
        np.repeat(np.arange(len(buckets)), groups),
        np.concatenate([np.empty(0, dtype=np.int64), *(value for _, value in fakes)]),
        placements,
    )


def _popularity(value: IntArray, buckets: list[Bucket]) -> FloatArray:
    """Return how common each value is among the records, for drawing counterfeits."""
    domain = len(buckets[0].counts) if buckets else 0
    return np.bincount(value, minlength=domain).astype(np.float64) + 1.0


def _refine(
    groups: _Groups,
    snapshot: Snapshot,
    position: Positions,
    bucket: IntArray,
    kinds: IntArray,
    rng: np.random.Generator,
    progress: Progress,
) -> None:
    """Tighten the groups; where a record goes to another bucket, another comes from there."""
    if not len(snapshot):
        return
    nobody = np.full(len(groups.counterfeit_value), -1)
    kind = bucket * (kinds.max() + 1) + kinds[bucket, snapshot.value]
    sorts = np.unique(kinds, axis=1, return_inverse=True)[1].reshape(-1)
    sort = np.where(snapshot.last_group < 0, sorts[snapshot.value], -1)
    members = Members(
        value=np.concatenate([snapshot.value, groups.counterfeit_value]),
        kind=np.concatenate([kind, nobody]),
        sort=np.concatenate([sort, nobody]),
        position=position,
    )
    refine(
        groups.of_row,
        groups.bucket,
        members,
        rng,
        lambda share: progress("refine", share),
    )


def _kinds(bucket: Bucket) -> IntArray:
    """Number values so that those which fit the same entries are of one kind."""
    kind = np.zeros(len(bucket.counts), dtype=np.int64)
    for members, _ in bucket.types:
        fits = np.zeros(len(kind), dtype=np.int64)
        fits[list(values_of(members))] = 1
        kind = np.unique(2 * kind + fits, return_inverse=True)[1]
    return kind.reshape(-1)


def _entries(
    multiplicity: list[int], placement: Placement, kinds: IntArray, kind: IntArray
) -> IntArray:
    """Say which entry each record stands at, by its kind: entries of one type are taken in turn."""
    entry = np.empty(len(kind), dtype=np.int64)
    first_entry = np.cumsum([0, *multiplicity])
    by_kind = np.argsort(kind, kind="stable")
    turn = np.zeros(len(multiplicity), dtype=np.int64)
    at = 0
    for number in np.unique(kind):
        left = int((kind == number).sum())
        for cell in np.flatnonzero(kinds[placement.value] == number):
            where = placement.entry_type[cell]
            taken = min(left, int(placement.rows[cell]))
            turns = turn[where] + np.arange(taken)
            entry[by_kind[at : at + taken]] = first_entry[where] + turns % multiplicity[where]
            turn[where] += taken
            at, left = at + taken, left - taken
    return entry


def _release(
    snapshot: Snapshot,
    assignment: Assignment,
    groups: _Groups,
    kinds: IntArray,
    of_record: IntArray,
    of_counterfeit: IntArray,
    shown: Generalized,
) -> Release:
    count = len(groups.bucket)
    everyone = np.concatenate([of_record, of_counterfeit])
    values = np.concatenate([snapshot.value, groups.counterfeit_value])
    by_value = places_of(values, int(values.max(initial=0)) + 1).items
    rows = places_of(everyone[by_value], count)
    return Release(
        group=of_record,
        candidates=Ragged(rows.offsets, values[by_value[rows.items]]),
        counterfeits=np.bincount(of_counterfeit, minlength=count).astype(np.int64),
        low=shown.low,
        high=shown.high,
        members=shown.members,
        ncp=shown.ncp,
        buckets=_table(assignment),
        bucket=groups.bucket[groups.of_record],
        placements=groups.placements,
        kinds=kinds,
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
        multiplicity=[[count for _, count in bucket.types] for bucket in assignment.buckets],
        groups=np.array([bucket.groups for bucket in assignment.buckets], dtype=np.int64),
    )
