"""Array types that the modules of the core hand to each other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Ragged:
    """Rows of unequal length: row i is ``items[offsets[i]:offsets[i + 1]]``."""

    offsets: IntArray
    items: IntArray

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def row(self, i: int) -> IntArray:
        """Return one row, as a view."""
        return self.items[self.offsets[i] : self.offsets[i + 1]]

    @property
    def lengths(self) -> IntArray:
        """Return the length of every row."""
        return np.diff(self.offsets)

    @property
    def row_of_item(self) -> IntArray:
        """Return, for every item, the row that it stands in."""
        return np.repeat(np.arange(len(self), dtype=np.int64), self.lengths)

    def take(self, rows: IntArray) -> Ragged:
        """Return the given rows, in the given order."""
        offsets = np.concatenate(([0], np.cumsum(self.lengths[rows]))).astype(np.int64)
        return Ragged(offsets, self.items[self.item_index(rows)])

    def item_index(self, rows: IntArray) -> IntArray:
        """Return where the items of the given rows stand, row after row."""
        lengths = self.lengths[rows]
        before = np.cumsum(lengths) - lengths
        return np.repeat(self.offsets[rows] - before, lengths) + np.arange(lengths.sum())

    @staticmethod
    def join(parts: Sequence[Ragged]) -> Ragged:
        """Put the rows of several parts one after another."""
        lengths = np.concatenate([part.lengths for part in parts])
        offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
        return Ragged(offsets, np.concatenate([part.items for part in parts]))

    @staticmethod
    def of(rows: Iterable[Sequence[int]]) -> Ragged:
        """Build from sequences, one a row."""
        arrays = [np.asarray(row, dtype=np.int64) for row in rows]
        lengths = [len(array) for array in arrays]
        offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
        items = np.concatenate(arrays) if arrays else np.empty(0, dtype=np.int64)
        return Ragged(offsets, items.astype(np.int64))


def stable_order(column: npt.NDArray[np.float32]) -> IntArray:
    """Return the order of numbers from 0 on, equal ones as they come.

    Their bits have the same order as they have, and halves of 16 bits are sorted by counting.
    """
    bits = np.ascontiguousarray(column).view(np.uint32)
    order = np.argsort(bits.astype(np.uint16), kind="stable")
    high = (bits >> 16).astype(np.uint16)
    return order[np.argsort(high[order], kind="stable")]
