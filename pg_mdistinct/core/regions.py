"""Cut the space of quasi-identifiers into a few regions in which the sensitive values differ.

Groups should hold records of one region. So what matters is not how values are distributed as a
whole but region by region: where one value prevails among women, no group of women has room for
all who have it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pg_mdistinct.core.arrays import IntArray
from pg_mdistinct.core.compiled import kernel

CUTS = 5
FEWEST = 256
"""Parts with fewer records are not cut any more: chance would rule there."""

Positions = npt.NDArray[np.float32]


def regions(position: Positions, value: IntArray) -> IntArray:
    """Return the region of each record.

    Numbers are those of the leaves of a binary tree: the later the cut between two regions, the
    more leading digits they share.
    """
    # One layout, so that one kernel serves all who call.
    position, value = np.ascontiguousarray(position), np.ascontiguousarray(value)
    values = int(value.max(initial=-1)) + 1
    parts = {0: np.arange(len(position))}
    for _ in range(CUTS):
        parts = {
            2 * number + half: records
            for number, part in parts.items()
            for half, records in enumerate(_halves(position, value, values, part))
        }
    region = np.zeros(len(position), dtype=np.int64)
    for number, part in parts.items():
        region[part] = number
    return region


def _halves(position: Positions, value: IntArray, values: int, part: IntArray) -> list[IntArray]:
    """Cut along the attribute that tells most of the value, where it is nearest the middle."""
    if len(part) < 2 * FEWEST or not position.shape[1]:
        return [part]
    along = position[part, int(np.argmax(_told_by_value(position, value, values, part)))]
    middle = np.partition(along, len(along) // 2)[len(along) // 2]
    below, up_to = along < middle, along <= middle
    left = below if abs(below.mean() - 0.5) < abs(up_to.mean() - 0.5) else up_to
    return [half for half in (part[left], part[~left]) if len(half)]


@kernel()
def _told_by_value(position, value, values, part):  # type: ignore[no-untyped-def]
    """Return by attribute how far apart records of different values lie: the variance between."""
    attributes = position.shape[1]
    records, sums = np.zeros(values), np.zeros((values, attributes))
    for record in part:
        records[value[record]] += 1
        for a in range(attributes):
            sums[value[record], a] += position[record, a]
    told = np.zeros(attributes)
    for a in range(attributes):
        mean = 0.0
        for v in range(values):
            mean += sums[v, a] / len(part)
        for v in range(values):
            told[a] += records[v] * (sums[v, a] / max(records[v], 1.0) - mean) ** 2
    return told
