"""What a release shows of the workload: for each group, its ranges and its sensitive values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pg_mdistinct.core.arrays import FloatArray, IntArray, Ragged
from pg_mdistinct.core.publication import Release
from pg_mdistinct.workload import QI_COLUMNS, SnapshotArray


@dataclass(frozen=True)
class Boxes:
    """The groups of a release: per QI column the lowest and highest value, and all rows' values."""

    low: tuple[IntArray, ...]
    high: tuple[IntArray, ...]
    rows: Ragged
    counterfeits: IntArray

    @property
    def records(self) -> IntArray:
        """Return how many real records each group has: the counterfeit statistics are public."""
        return self.rows.lengths - self.counterfeits


def boxes_of_release(people: SnapshotArray, release: Release) -> Boxes:
    """Return what a release of the core shows."""
    values = [np.unique(people[name]) for name in QI_COLUMNS]
    return Boxes(
        tuple(known[low] for known, low in zip(values, release.low, strict=True)),
        tuple(known[high] for known, high in zip(values, release.high, strict=True)),
        release.candidates,
        release.counterfeits,
    )


def boxes_of_groups(people: SnapshotArray, group: IntArray) -> Boxes:
    """Return what is shown of people in groups numbered from 0, without counterfeits."""
    order = np.argsort(group, kind="stable")
    groups = int(group.max(initial=-1)) + 1
    starts = np.searchsorted(group[order], np.arange(groups))
    columns = [people[name][order] for name in QI_COLUMNS]
    return Boxes(
        tuple(np.minimum.reduceat(column, starts) for column in columns),
        tuple(np.maximum.reduceat(column, starts) for column in columns),
        Ragged(np.append(starts, len(group)).astype(np.int64), people["occupation"][order]),
        np.zeros(groups, dtype=np.int64),
    )


def ncp(people: SnapshotArray, boxes: Boxes) -> float:
    """Return the mean width of what is shown, as a share of each column's width."""
    shares: list[FloatArray] = []
    for name, low, high in zip(QI_COLUMNS, boxes.low, boxes.high, strict=True):
        whole = float(np.ptp(people[name])) or 1.0
        shares.append((high - low) / whole)
    weight = boxes.records / max(int(boxes.records.sum()), 1)
    return float((np.mean(shares, axis=0) * weight).sum())
