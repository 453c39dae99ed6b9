"""Cut the space of quasi-identifiers into a few regions in which the sensitive values differ.

Groups should hold records of one region. So what matters is not how values are distributed as a
whole but region by region: where one value prevails among women, no group of women has room for
all who have it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pg_mdistinct.core.arrays import IntArray

CUTS = 2
FEWEST = 256
"""Parts with fewer records are not cut any more: chance would rule there."""

Positions = npt.NDArray[np.float32]


def regions(position: Positions, value: IntArray) -> IntArray:
    """Return the region of each record; neighbouring regions have neighbouring numbers."""
    parts = [np.arange(len(position))]
    for _ in range(CUTS):
        parts = [half for part in parts for half in _halves(position, value, part)]
    region = np.zeros(len(position), dtype=np.int64)
    for number, part in enumerate(parts):
        region[part] = number
    return region


def _halves(position: Positions, value: IntArray, part: IntArray) -> list[IntArray]:
    """Cut along the attribute that tells most of the value, where it is nearest the middle."""
    if len(part) < 2 * FEWEST or not position.shape[1]:
        return [part]
    told = [_told_by_value(position[part, a], value[part]) for a in range(position.shape[1])]
    along = position[part, int(np.argmax(told))]
    middle = np.partition(along, len(along) // 2)[len(along) // 2]
    below, up_to = along < middle, along <= middle
    left = below if abs(below.mean() - 0.5) < abs(up_to.mean() - 0.5) else up_to
    return [half for half in (part[left], part[~left]) if len(half)]


def _told_by_value(column: Positions, value: IntArray) -> float:
    """Return how far apart the records of different values lie: the variance between them."""
    records = np.bincount(value)
    means = np.bincount(value, weights=column) / np.maximum(records, 1)
    return float((records * (means - column.mean()) ** 2).sum())
