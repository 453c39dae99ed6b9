"""Assignment under models in which some values cannot stay what they are.

There, not every choice of candidates can be kept up for ever, so buckets are keyed by exact
candidate sets: every entry is a single value, and only safe sets are used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pg_mdistinct.core import errors
from pg_mdistinct.core.arrays import IntArray
from pg_mdistinct.core.buckets import FIRST_TIME, SIGNATURE, Bucket
from pg_mdistinct.core.errors import MdistinctError
from pg_mdistinct.core.model import M_DISTINCT_STAR, UpdateModel
from pg_mdistinct.core.safety import Safety
from pg_mdistinct.core.signature import Signature
from pg_mdistinct.core.values import ValueSet, values_of


@dataclass(frozen=True)
class RecordClass:
    """Records that differ in nothing that matters here: same signature (None: new), same value."""

    signature: Signature | None
    value: int
    records: int


def assign_carefully(
    classes: Sequence[RecordClass], model: UpdateModel, m: int, variant: str
) -> tuple[list[Bucket], list[tuple[int, int, int]]]:
    """Return buckets, and as (class, bucket, records) which records of which class go where."""
    old_values = 0
    for entry in (e for c in classes for e in c.signature or ()):
        old_values |= entry
    sizes = {len(c.signature) if c.signature else m for c in classes}
    reach, known = model.reach_sets(1), model.known_values
    safeties = {size: Safety(reach, known, size, old_values) for size in sizes}
    options = [_options(c, model, m, variant, safeties) for c in classes]
    left = np.array([c.records for c in classes], dtype=np.int64)
    buckets: dict[ValueSet, Bucket] = {}
    number: dict[ValueSet, int] = {}
    cells: list[tuple[int, int, int]] = []
    holders = _classes_by_candidates(classes, options)
    while left.any():
        candidates, filled = _fullest(holders, left)
        groups = min(int(left[members].sum()) for members in filled.values())
        old = any(classes[i].signature is not None for i in np.concatenate(list(filled.values())))
        bucket = buckets.setdefault(
            candidates,
            Bucket(
                tuple(1 << v for v in values_of(candidates)),
                SIGNATURE if old else FIRST_TIME,
                np.zeros(len(model), dtype=np.int64),
            ),
        )
        where = number.setdefault(candidates, len(number))
        for value, members in filled.items():
            bucket.counts[value] += groups
            cells += _draw(members, groups, where, left)
    return list(buckets.values()), cells


def _options(
    record_class: RecordClass,
    model: UpdateModel,
    m: int,
    variant: str,
    safeties: dict[int, Safety],
) -> list[ValueSet]:
    safety = safeties[len(record_class.signature) if record_class.signature else m]
    value = record_class.value
    if record_class.signature is None:
        found = safety.companies(value, disjoint=variant == M_DISTINCT_STAR)
    else:
        found = safety.successors(record_class.signature, value)
    if not found:
        raise MdistinctError(
            f'the update model leaves no legal release for a record with "{model.labels[value]}"',
            hint="Let values stay what they are (add each value to its own list of possible "
            "updates), or allow more updates.",
            sqlstate=errors.NO_LEGAL_RELEASE,
        )
    return found


def _classes_by_candidates(
    classes: Sequence[RecordClass], options: list[list[ValueSet]]
) -> dict[ValueSet, dict[int, IntArray]]:
    """Return, for each candidate set, which classes can fill which of its values."""
    holders: dict[ValueSet, dict[int, list[int]]] = {}
    for i, (record_class, sets) in enumerate(zip(classes, options, strict=True)):
        for candidates in sets:
            holders.setdefault(candidates, {}).setdefault(record_class.value, []).append(i)
    return {
        candidates: {value: np.array(members) for value, members in by_value.items()}
        for candidates, by_value in holders.items()
    }


def _fullest(
    holders: dict[ValueSet, dict[int, IntArray]], left: IntArray
) -> tuple[ValueSet, dict[int, IntArray]]:
    """Return the candidate set with the fewest counterfeits, and who fills its values."""
    best: tuple[int, ValueSet, dict[int, IntArray]] = (0, 0, {})
    for candidates, by_value in holders.items():
        filled = {v: members for v, members in by_value.items() if left[members].any()}
        if len(filled) > best[0]:
            best = (len(filled), candidates, filled)
    return best[1], best[2]


def _draw(
    members: IntArray, records: int, bucket: int, left: IntArray
) -> list[tuple[int, int, int]]:
    """Take records off the classes that can give them."""
    cells = []
    for i in members:
        taken = min(records, int(left[i]))
        if taken:
            left[i] -= taken
            records -= taken
            cells.append((int(i), bucket, taken))
    return cells
