"""Update set signatures: what a record's candidates may have become since its last version."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pg_mdistinct.core.arrays import IntArray, different, ranked
from pg_mdistinct.core.model import UpdateModel
from pg_mdistinct.core.snapshot import Snapshot
from pg_mdistinct.core.values import ValueSet

Signature = tuple[ValueSet, ...]


@dataclass(frozen=True)
class RecordSignatures:
    """The distinct signatures of a snapshot and, per record, which one it has (-1: new)."""

    signatures: list[Signature]
    of_record: IntArray


def record_signatures(snapshot: Snapshot, model: UpdateModel) -> RecordSignatures:
    """Find the signature of every record: the reach sets of its last group's candidates.

    A record that was away has had several steps, so its reach sets are those of as many steps.
    """
    groups = snapshot.last_candidates
    gap_of_group = np.ones(len(groups), dtype=np.int64)
    old = snapshot.last_group >= 0
    gap_of_group[snapshot.last_group[old]] = snapshot.gap[old]
    of_group = np.full(len(groups) + 1, -1, dtype=np.int64)
    known: dict[Signature, int] = {}
    longest = int(groups.lengths.max(initial=0)) + 1
    shape = gap_of_group * longest + groups.lengths
    for number in different(shape).tolist():
        gap, length = divmod(number, longest)
        rows = np.flatnonzero(shape == number)
        reach_sets = model.reach_sets(gap)
        class_sets = sorted(set(reach_sets))
        rank = {members: i for i, members in enumerate(class_sets)}
        class_of_value = np.array([rank[members] for members in reach_sets], dtype=np.int64)
        candidates = groups.items[groups.offsets[rows][:, None] + np.arange(length)]
        classes = np.sort(class_of_value[candidates], axis=1)
        distinct, inverse = _distinct_rows(classes, len(class_sets))
        numbers = [
            known.setdefault(tuple(class_sets[c] for c in combination), len(known))
            for combination in distinct
        ]
        of_group[rows] = np.array(numbers, dtype=np.int64)[inverse]
    return RecordSignatures(list(known), of_group[snapshot.last_group])


def _distinct_rows(rows: IntArray, base: int) -> tuple[IntArray, IntArray]:
    """Return the different rows of numbers below a base, and for each row which one it is."""
    width = rows.shape[1]
    if base**width < 2**62:
        # As one number each they are compared many times faster.
        place = base ** np.arange(width, dtype=np.int64)
        keys, inverse = ranked(rows @ place)
        return keys[:, None] // place % base, inverse
    distinct, inverse = np.unique(rows, axis=0, return_inverse=True)
    return distinct, inverse.reshape(-1)
