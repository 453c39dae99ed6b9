"""Mondrian with ℓ-diversity: the way most people anonymize one snapshot.

The table is cut in two at the median of a quasi-identifier, the one with the widest range first,
and the parts again, as long as both parts of a cut are diverse. Two readings of "ℓ well represented
values" are usual: ℓ different ones, or none in more than one record in ℓ.
"""

from __future__ import annotations

import numpy as np

from pg_mdistinct.core import errors
from pg_mdistinct.core.arrays import IntArray
from pg_mdistinct.core.compiled import kernel, kernel_part
from pg_mdistinct.core.errors import MdistinctError

DISTINCT, FREQUENCY = 0, 1
"""ℓ different values, or no value in more than one record in ℓ."""


def mondrian_groups(codes: IntArray, value: IntArray, size: int, diversity: int) -> IntArray:
    """Return the group of each record; ``codes`` has a row for each quasi-identifier.

    Codes are small whole numbers that lie as far apart as what they stand for.
    """
    order = np.arange(len(value), dtype=np.int64)
    if not _is_whole_diverse(value, int(value.max(initial=0)) + 1, size, diversity):
        raise MdistinctError(
            f"the records as a whole are not {size}-diverse",
            hint="Choose a smaller ℓ.",
            sqlstate=errors.DOMAIN_TOO_SMALL,
        )
    low = codes.min(axis=1, keepdims=True)
    starts = _cut(codes - low, value, size, diversity, order)
    group = np.empty(len(value), dtype=np.int64)
    group[order] = np.cumsum(starts[:-1]) - 1
    return group


@kernel()
def _is_whole_diverse(value, values, size, diversity):  # type: ignore[no-untyped-def]
    """Tell whether all records together could be a group."""
    return _is_diverse(value, values, size, diversity)


@kernel_part
def _is_diverse(value, values, size, diversity):  # type: ignore[no-untyped-def]
    """Tell whether some records are diverse enough to be a group."""
    counts = np.zeros(values, dtype=np.int64)
    for v in value:
        counts[v] += 1
    if diversity == FREQUENCY:
        return len(value) > 0 and counts.max() * size <= len(value)
    return (counts > 0).sum() >= size


@kernel()
def _cut(codes, value, size, diversity, order):  # type: ignore[no-untyped-def]
    """Sort records into groups, and mark where in ``order`` each group starts; the end is one."""
    records, values = len(order), value.max() + 1
    widths = np.array([max(codes[c].max(), 1) for c in range(len(codes))])
    starts = np.zeros(records + 1, dtype=np.bool_)
    starts[0] = starts[records] = True
    waiting = [(0, records)]
    while waiting:
        begin, end = waiting.pop()
        part = order[begin:end].copy()
        spread = np.array([np.ptp(codes[c][part]) / widths[c] for c in range(len(codes))])
        for column in np.argsort(-spread):
            if spread[column] == 0:
                break
            left = codes[column][part] <= _median(codes[column][part])
            lower, upper = part[left], part[~left]
            if _is_diverse(value[lower], values, size, diversity) and _is_diverse(
                value[upper], values, size, diversity
            ):
                middle = begin + len(lower)
                order[begin:middle] = lower
                order[middle:end] = upper
                starts[middle] = True
                waiting.append((begin, middle))
                waiting.append((middle, end))
                break
    return starts


@kernel_part
def _median(code):  # type: ignore[no-untyped-def]
    """Return the code up to which nearest to half of the records lie, but not all."""
    low, high = code.min(), code.max()
    counts = np.zeros(high - low + 1, dtype=np.int64)
    for c in code:
        counts[c - low] += 1
    below, best, cut = 0, len(code), low
    for c in range(high - low):
        below += counts[c]
        if below and abs(2 * below - len(code)) < best:
            best, cut = abs(2 * below - len(code)), low + c
    return cut
