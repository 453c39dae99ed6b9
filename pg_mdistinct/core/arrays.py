"""Array types that the modules of the core hand to each other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pg_mdistinct.core.compiled import kernel

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

MOST_COUNTED = 1 << 20
"""Integers that span no more than this are counted, others sorted."""


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


def places_of(number: IntArray, count: int) -> Ragged:
    """Return for each number below a count where it stands, in order: a sort by counting."""
    # Compiled code would write beyond its arrays.
    assert number.min(initial=0) >= 0, "no such number"
    assert number.max(initial=-1) < count, "no such number"
    offsets, places = _by_counting(np.ascontiguousarray(number), count)
    return Ragged(offsets, places)


@kernel()
def _by_counting(number, count):  # type: ignore[no-untyped-def]
    offsets = np.zeros(count + 1, dtype=np.int64)
    for n in number:
        offsets[n + 1] += 1
    for n in range(count):
        offsets[n + 1] += offsets[n]
    filled = offsets.copy()
    places = np.empty(len(number), dtype=np.int64)
    for i in range(len(number)):
        places[filled[number[i]]] = i
        filled[number[i]] += 1
    return offsets, places


def different(number: IntArray) -> IntArray:
    """Return the different ones of numbers that are small and not negative, in order."""
    return np.flatnonzero(np.bincount(number))


def ranked(number: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], IntArray]:
    """Return the different ones of some integers, in order, and for each which of them it is."""
    if not len(number):
        return number, np.empty(0, dtype=np.int64)
    lowest, width = int(number.min()), int(number.max()) - int(number.min()) + 1
    if width > MOST_COUNTED:
        found, rank = np.unique(number, return_inverse=True)
        return found, rank.reshape(-1).astype(np.int64)
    offset = number - lowest
    there = np.zeros(width, dtype=np.bool_)
    there[offset] = True
    return np.flatnonzero(there) + lowest, (np.cumsum(there) - 1)[offset]


def stable_order(number: npt.NDArray[np.integer[Any]]) -> IntArray:
    """Return the order of numbers from 0 on, equal ones as they come.

    They are sorted by 16 bits at a time, the lowest first, which is done by counting.
    """
    order = np.argsort(number.astype(np.uint16), kind="stable")
    for shift in range(16, int(number.max(initial=0)).bit_length(), 16):
        digit = (number >> shift).astype(np.uint16)
        order = order[np.argsort(digit[order], kind="stable")]
    return order


def bits(column: npt.NDArray[np.float32]) -> npt.NDArray[np.uint32]:
    """Return numbers in the same order as some that are not negative: the bits of these."""
    return np.ascontiguousarray(column).view(np.uint32)
