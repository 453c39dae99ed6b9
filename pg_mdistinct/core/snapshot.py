"""The microdata of one publication, as arrays."""

from __future__ import annotations

from dataclasses import dataclass

from pg_mdistinct.core.arrays import FloatArray, IntArray, Ragged


@dataclass(frozen=True)
class QiColumn:
    """One quasi-identifier: values are ranks among the column's sorted distinct values.

    ``position`` tells where each distinct value lies, so that widths mean something: numbers,
    days or microseconds for ranges, 0, 1, 2, ... for sets. It may hold values that no record
    has; counterfeits may then take them.
    """

    code: IntArray
    position: FloatArray
    is_set: bool

    @property
    def width(self) -> float:
        """Return the width of the whole column, 0 where all its values are the same."""
        return float(self.position[-1] - self.position[0]) if len(self.position) else 0.0


@dataclass(frozen=True)
class Snapshot:
    """T_n and what of the history the next release depends on: the last versions.

    ``last_group`` is a row of ``last_candidates``, or -1 for a record that was never published;
    ``gap`` counts the releases since the last version (1: it was in the previous one). A row of
    ``last_candidates`` is a group of one release, so all who come from it have the same gap.
    """

    value: IntArray
    qi: tuple[QiColumn, ...]
    last_group: IntArray
    gap: IntArray
    last_candidates: Ragged
    last_value: IntArray

    def __len__(self) -> int:
        return len(self.value)
