"""What m-Distinct is measured against: ℓ-diversity of each snapshot by itself, in three ways."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

import numpy as np

from pg_mdistinct.core.arrays import IntArray
from pg_mdistinct.core.history import History
from pg_mdistinct.experiments.boxes import boxes_of_groups
from pg_mdistinct.experiments.l_diversity import publish_l_diverse
from pg_mdistinct.experiments.mondrian import DISTINCT, FREQUENCY, mondrian_groups
from pg_mdistinct.experiments.records import Recorder
from pg_mdistinct.workload import QI_COLUMNS, SnapshotArray

EXACT = "exact"
MONDRIAN_DISTINCT = "mondrian, distinct"
MONDRIAN_FREQUENCY = "mondrian, frequency"

Baseline = Callable[[Iterable[SnapshotArray], int, np.random.Generator], History]
"""Publishes snapshots for some ℓ."""


def publish_groups(
    snapshots: Iterable[SnapshotArray], grouping: Callable[[SnapshotArray], IntArray]
) -> History:
    """Publish every snapshot in the groups that some way of anonymizing puts its records into."""
    recorder = Recorder()
    for people in snapshots:
        group = grouping(people)
        boxes = boxes_of_groups(people, group)
        recorder.add(people["id"], group, people["occupation"], boxes.rows, boxes.counterfeits)
    return recorder.history()


def publish_by_mondrian(
    snapshots: Iterable[SnapshotArray], size: int, rng: np.random.Generator, *, diversity: int
) -> History:
    """Publish every snapshot by Mondrian, which draws nothing at random."""
    return publish_groups(snapshots, lambda people: _groups(people, size, diversity))


def _groups(people: SnapshotArray, size: int, diversity: int) -> IntArray:
    codes = np.stack([people[name] for name in QI_COLUMNS])
    return mondrian_groups(codes, people["occupation"], size, diversity)


BASELINES: dict[str, Baseline] = {
    EXACT: publish_l_diverse,
    MONDRIAN_DISTINCT: partial(publish_by_mondrian, diversity=DISTINCT),
    MONDRIAN_FREQUENCY: partial(publish_by_mondrian, diversity=FREQUENCY),
}
"""Groups of exactly ℓ, and Mondrian under either reading of ℓ-diversity."""
