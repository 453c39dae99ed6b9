"""Many texts in one string of bytes, and which of them are equal.

Record identifiers and categories are texts of any length; as arrays of bytes they can be compared
without making a Python object of each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from pg_mdistinct.core.arrays import IntArray
from pg_mdistinct.core.compiled import kernel, kernel_part

_ODD = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(32)


@dataclass(frozen=True)
class Texts:
    """Texts in UTF-8: text i is ``packed[start[i]:stop[i]]``."""

    packed: bytes
    start: IntArray
    stop: IntArray

    @staticmethod
    def separated(packed: bytes, count: int) -> Texts:
        """Take apart that many texts with a zero byte, which no text holds, between any two."""
        zeros = np.flatnonzero(np.frombuffer(packed, dtype=np.uint8) == 0)
        if not count:
            return Texts(b"", zeros, zeros)
        assert len(zeros) == count - 1, "a zero byte lies between any two texts"
        return Texts(packed, np.append(0, zeros + 1), np.append(zeros, len(packed)))

    @staticmethod
    def of(texts: Sequence[str]) -> Texts:
        """Pack texts."""
        return Texts.separated("\0".join(texts).encode(), len(texts))

    def __len__(self) -> int:
        return len(self.start)

    def take(self, rows: IntArray) -> Texts:
        """Return some of the texts; they share the bytes."""
        return Texts(self.packed, self.start[rows], self.stop[rows])

    def joined(self) -> bytes:
        """Return the texts with a zero byte between any two, and nothing else."""
        if len(self) and np.array_equal(self.start[1:], self.stop[:-1] + 1):
            return self.packed[self.start[0] : self.stop[-1]]
        packed = np.zeros(int((self.stop - self.start).sum()) + len(self), dtype=np.uint8)
        _gather(self.array, self.start, self.stop, packed)
        return packed[:-1].tobytes()

    def encoded(self) -> list[bytes]:
        """Return the texts one by one, still in UTF-8."""
        ends = zip(self.start.tolist(), self.stop.tolist(), strict=True)
        return [self.packed[start:stop] for start, stop in ends]

    def decoded(self) -> list[str]:
        """Return the texts one by one."""
        return [text.decode() for text in self.encoded()]

    @cached_property
    def array(self) -> npt.NDArray[np.uint8]:
        """Return all bytes as an array."""
        return np.frombuffer(self.packed, dtype=np.uint8)


@kernel()
def _gather(data, start, stop, packed):  # type: ignore[no-untyped-def]
    """Copy texts one after another, with room for a byte behind each."""
    at = 0
    for text in range(len(start)):
        for i in range(start[text], stop[text]):
            packed[at] = data[i]
            at += 1
        at += 1


def with_zero_bytes(packed: bytes, between: bytes) -> bytes:
    """Put a zero byte in the place of what stands between any two texts."""
    data = np.frombuffer(packed, dtype=np.uint8)
    shorter: npt.NDArray[np.uint8] = _replace(data, np.frombuffer(between, dtype=np.uint8))
    return shorter.tobytes()


@kernel()
def _replace(data, between):  # type: ignore[no-untyped-def]
    result = np.empty(len(data), dtype=np.uint8)
    at, filled = 0, 0
    while at < len(data):
        same = 0
        while same < len(between) and at + same < len(data) and data[at + same] == between[same]:
            same += 1
        if same == len(between):
            result[filled] = 0
            at += same
        else:
            result[filled] = data[at]
            at += 1
        filled += 1
    return result[:filled]


def digits(numbers: IntArray, between: str) -> str:
    """Return numbers that are not negative in as many digits each, and what is between any two."""
    width = len(str(int(numbers.max(initial=0))))
    text = np.empty(len(numbers) * (width + 1), dtype=np.uint8)
    _write_digits(numbers, width, ord(between), text)
    return text[:-1].tobytes().decode("ascii")


@kernel()
def _write_digits(numbers, width, between, text):  # type: ignore[no-untyped-def]
    for i in range(len(numbers)):
        end = (i + 1) * (width + 1) - 1
        text[end] = between
        rest = np.uint32(numbers[i])
        for place in range(1, width + 1):
            tens = rest // np.uint32(10)
            text[end - place] = 48 + rest - tens * np.uint32(10)
            rest = tens


class TextIndex:
    """Finds texts among others; the seed makes slow cases impossible to prepare."""

    def __init__(self, texts: Texts, seed: int) -> None:
        self._texts = texts
        self._seed = np.uint64(seed)
        size = 1 << max(2 * len(texts) - 1, 1).bit_length()
        self._slots = np.full(size, -1, dtype=np.int32)
        self.first = np.empty(len(texts), dtype=np.int64)
        """For each text the first one that equals it."""
        _fill(texts.array, texts.start, texts.stop, self._seed, self._slots, self.first)

    def different(self) -> tuple[IntArray, IntArray]:
        """Return where the different texts are, the first time each, and for each text which."""
        is_first = self.first == np.arange(len(self.first))
        return np.flatnonzero(is_first), (np.cumsum(is_first) - 1)[self.first]

    def find(self, wanted: Texts) -> IntArray:
        """Return where each of some texts is, the first time; -1: nowhere."""
        found = np.empty(len(wanted), dtype=np.int64)
        own = self._texts
        _find(
            wanted.array,
            wanted.start,
            wanted.stop,
            own.array,
            own.start,
            own.stop,
            self.first,
            self._seed,
            self._slots,
            found,
        )
        return found


@kernel_part
def _slot(data, start, stop, seed, mask):  # type: ignore[no-untyped-def]
    mixed = seed ^ np.uint64(stop - start)
    for i in range(start, stop):
        mixed = (mixed ^ np.uint64(data[i])) * _ODD
        mixed ^= mixed >> _SHIFT
    mixed *= _ODD
    return np.int64((mixed >> _SHIFT) & np.uint64(mask))


@kernel_part
def _equal(data, start, stop, others, other_start, other_stop):  # type: ignore[no-untyped-def]
    length = stop - start
    if other_stop - other_start != length:
        return False
    i = 0
    while i < length and data[start + i] == others[other_start + i]:
        i += 1
    return i == length


@kernel()
def _fill(data, start, stop, seed, slots, first):  # type: ignore[no-untyped-def]
    """Put every text into the first free slot from its own on, unless an equal one is there."""
    mask = len(slots) - 1
    for text in range(len(start)):
        slot = _slot(data, start[text], stop[text], seed, mask)
        while slots[slot] >= 0:
            there = slots[slot]
            if _equal(data, start[text], stop[text], data, start[there], stop[there]):
                break
            slot = (slot + 1) & mask
        if slots[slot] < 0:
            slots[slot] = text
        first[text] = slots[slot]


@kernel()
def _find(data, start, stop, others, other_start, other_stop, first, seed, slots, found):  # type: ignore[no-untyped-def]
    """Look every text up, from its own slot to the next free one.

    Texts mostly come in the order of the others: the one after the last that was found is looked
    at first, since it is near in memory.
    """
    mask = len(slots) - 1
    after = 0
    for text in range(len(start)):
        if after < len(other_start) and _equal(
            data, start[text], stop[text], others, other_start[after], other_stop[after]
        ):
            found[text] = first[after]
            after += 1
            continue
        slot = _slot(data, start[text], stop[text], seed, mask)
        found[text] = -1
        while slots[slot] >= 0:
            there = slots[slot]
            if _equal(data, start[text], stop[text], others, other_start[there], other_stop[there]):
                found[text] = there
                after = there + 1
                break
            slot = (slot + 1) & mask
