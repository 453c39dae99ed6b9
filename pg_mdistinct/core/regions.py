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
    region = np.zeros(len(position), dtype=np.int64)
    if not position.shape[1]:
        return region
    for parts in (1 << cut for cut in range(CUTS)):
        attribute = np.argmax(_told_by_value(position, value, values, region, parts), axis=1)
        offsets, along = _along(position, region, attribute)
        highest = np.array([_middle(part) for part in np.split(along, offsets[1:-1])])
        _halve(position, attribute, highest, region)
    return region


def _middle(along: Positions) -> np.float32:
    """Return the number up to which a part is cut off: as nearly as possible half of it."""
    if len(along) < 2 * FEWEST:
        return np.float32(np.inf)
    half = len(along) / 2
    middle: np.float32 = np.partition(along, len(along) // 2)[len(along) // 2]
    below, up_to = np.count_nonzero(along < middle), np.count_nonzero(along <= middle)
    just_below: np.float32 = np.nextafter(middle, np.float32(-np.inf))
    return just_below if abs(below - half) < abs(up_to - half) else middle


@kernel()
def _told_by_value(position, value, values, region, parts):  # type: ignore[no-untyped-def]
    """Return how far apart records of different values lie: the variance between them.

    By part, as cut so far, and by attribute: where it is largest, the attribute tells most.
    """
    attributes = position.shape[1]
    records, sums = np.zeros((parts, values)), np.zeros((parts, values, attributes))
    for i in range(len(position)):
        records[region[i], value[i]] += 1
        for a in range(attributes):
            sums[region[i], value[i], a] += position[i, a]
    told = np.zeros((parts, attributes))
    for part in range(parts):
        size = max(records[part].sum(), 1.0)
        for a in range(attributes):
            mean = 0.0
            for v in range(values):
                mean += sums[part, v, a] / size
            for v in range(values):
                apart = sums[part, v, a] / max(records[part, v], 1.0) - mean
                told[part, a] += records[part, v] * apart**2
    return told


@kernel()
def _along(position, region, attribute):  # type: ignore[no-untyped-def]
    """Return where the records of each part lie along its attribute, part after part."""
    offsets = np.zeros(len(attribute) + 1, dtype=np.int64)
    for part in region:
        offsets[part + 1] += 1
    for part in range(len(attribute)):
        offsets[part + 1] += offsets[part]
    filled = offsets.copy()
    along = np.empty(len(region), dtype=np.float32)
    for i in range(len(region)):
        along[filled[region[i]]] = position[i, attribute[region[i]]]
        filled[region[i]] += 1
    return offsets, along


@kernel()
def _halve(position, attribute, highest, region):  # type: ignore[no-untyped-def]
    """Cut all parts: those up to the highest number on the left stay there."""
    for i in range(len(region)):
        part = region[i]
        region[i] = 2 * part + int(position[i, attribute[part]] > highest[part])
