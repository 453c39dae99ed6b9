"""Plain ℓ-diversity, applied to each snapshot on its own: what m-Distinct is measured against.

Groups have exactly ℓ records with ℓ different sensitive values, and lie as close together in the
quasi-identifiers as the project's own ones: it is one bucket whose ℓ entries take any value.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from pg_mdistinct.core import errors
from pg_mdistinct.core.arrays import IntArray, Ragged
from pg_mdistinct.core.buckets import FIRST_TIME, Bucket
from pg_mdistinct.core.counterfeits import balance
from pg_mdistinct.core.errors import MdistinctError
from pg_mdistinct.core.generalize import scaled_positions
from pg_mdistinct.core.history import History
from pg_mdistinct.core.snapshot import Snapshot
from pg_mdistinct.core.split import split_bucket
from pg_mdistinct.core.values import value_set
from pg_mdistinct.experiments.records import Recorder, qi_columns
from pg_mdistinct.workload import SnapshotArray


def publish_l_diverse(
    snapshots: Iterable[SnapshotArray],
    size: int,
    rng: np.random.Generator,
) -> History:
    """Publish every snapshot with ℓ = ``size``, with no thought of the releases before."""
    recorder = Recorder()
    for people in snapshots:
        kept = divisible(people, size)
        group = first_groups(kept, size, rng)
        value = kept["occupation"]
        rows = Ragged(
            np.arange(0, len(value) + 1, size, dtype=np.int64),
            value[np.argsort(group, kind="stable")],
        )
        recorder.add(kept["id"], group, value, rows, np.zeros(len(rows), dtype=np.int64))
    return recorder.history()


def l_diverse_groups(
    value: IntArray,
    position: npt.NDArray[np.float32],
    size: int,
    rng: np.random.Generator,
) -> IntArray:
    """Return the group of each record: ``size`` records with as many values, close together."""
    counts = np.bincount(value).astype(np.int64)
    groups = len(value) // size
    if len(value) % size or counts.max(initial=0) > groups:
        raise MdistinctError(
            f"{len(value)} records, {counts.max(initial=0)} of them with the same value, cannot "
            f"be put into groups of {size} with {size} different values",
            hint="No value may be that of more than one record in ℓ.",
            sqlstate=errors.DOMAIN_TOO_SMALL,
        )
    any_value = value_set(np.flatnonzero(counts))
    bucket = Bucket((any_value,) * size, FIRST_TIME, counts, groups)
    placement, _ = balance(bucket, counts.astype(np.float64), rng)
    return split_bucket(bucket, placement, value, position).group


def first_groups(people: SnapshotArray, size: int, rng: np.random.Generator) -> IntArray:
    """Return the group of each of some people, as if nothing had been published before."""
    return l_diverse_groups(people["occupation"], _positions(people), size, rng)


def divisible(people: SnapshotArray, size: int) -> SnapshotArray:
    """Leave out the few records that are one too many for groups of exactly ℓ."""
    return people[: len(people) - len(people) % size]


def _positions(people: SnapshotArray) -> npt.NDArray[np.float32]:
    nobody = np.full(len(people), -1, dtype=np.int64)
    return scaled_positions(
        Snapshot(
            value=people["occupation"],
            qi=qi_columns(people),
            last_group=nobody,
            gap=np.zeros(len(people), dtype=np.int64),
            last_candidates=Ragged.of([]),
            last_value=nobody,
        )
    )
