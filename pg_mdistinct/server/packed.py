"""Between PostgreSQL and NumPy: numbers and texts packed into bytes, and numbers as literals."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pg_mdistinct.core.arrays import IntArray, Ragged
from pg_mdistinct.core.texts import Texts, digits, with_zero_bytes
from pg_mdistinct.server.plpython import Row

SEPARATORS = _BETWEEN, _NULL = f"\x01{secrets.token_hex(4)}", f"\x02{secrets.token_hex(8)}"
"""Stand between texts, which may hold anything but a zero byte, and for NULL.

Nobody knows them: they are given as parameters, since code behind a source sees our statements.
"""

_HEADER = 20
"""The bytes before the elements of an array that is sent: dimensions, whether there is NULL, type,
length and lower bound. Before each element comes its size."""


def numbers(packed: bytes | None, dtype: str) -> npt.NDArray[Any]:
    """Return numbers of the given type, in the machine's own byte order."""
    sent = np.frombuffer(packed or b"", dtype=dtype)
    return sent.astype(sent.dtype.newbyteorder("="))


class Integers:
    """Columns of type integer that one row of a query gathers, all in the same order of rows.

    Two of them travel as one bigint: most of the time goes into calls, not into bytes.
    """

    def __init__(self, **expressions: str) -> None:
        names = list(expressions)
        self._pairs = [names[i : i + 2] for i in range(0, len(names), 2)]
        self.select = ", ".join(
            f"pg_catalog.string_agg({_sent(*(expressions[name] for name in pair))}, '')"
            f' AS "{" ".join(pair)}"'
            for pair in self._pairs
        )
        """The SELECT list."""

    def read(self, row: Row) -> dict[str, IntArray]:
        """Return the columns by name; a row with NULL in any of them is an error."""
        columns: dict[str, IntArray] = {}
        for pair in self._pairs:
            sent = numbers(row[" ".join(pair)], ">i4").reshape(-1, len(pair)).astype(np.int64)
            if len(pair) == 2:
                sent[:, 0] ^= sent[:, 1] >> 63
            columns |= {name: sent[:, i] for i, name in enumerate(pair)}
        assert len({len(column) for column in columns.values()}) == 1, "there is NULL in a column"
        return columns


def _sent(first: str, second: str | None = None) -> str:
    if second is None:
        return f"pg_catalog.int4send({first})"
    # Where the second one is negative, its sign flips the bits of the first.
    return f"pg_catalog.int8send(({first}) * 4294967296 # ({second}))"


def gather_arrays(name: str, expression: str) -> str:
    """Return the SELECT list that packs an expression of type integer[], for ``ragged``."""
    return f"pg_catalog.string_agg(pg_catalog.array_send({expression}), '') AS {name}"


def ragged(row: Row, name: str, lengths: IntArray) -> Ragged:
    """Return what ``gather_arrays`` has packed: one row an array, of the given lengths.

    An array is sent as five numbers (dimensions, flags, type, length, lower bound) and, for each
    element, its size and the element; an empty one as three.
    """
    sent = numbers(row[name], ">i4")
    size = np.where(lengths > 0, 5 + 2 * lengths, 3)
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    within = np.arange(offsets[-1]) - np.repeat(offsets[:-1], lengths)
    first_element = np.cumsum(size) - size + 6
    items = sent[np.repeat(first_element, lengths) + 2 * within]
    return Ragged(offsets, items.astype(np.int64))


def elements(arrays: Sequence[bytes], dtype: str) -> npt.NDArray[Any] | None:
    """Return the numbers in arrays that array_send has packed; None if NULL is among them."""
    if any(any(array[4:8]) for array in arrays):
        return None
    sized = np.dtype([("size", ">i4"), ("number", dtype)])
    sent = np.frombuffer(b"".join(array[_HEADER:] for array in arrays), sized)["number"]
    # Integers of any size are ranked and compared by the same compiled code.
    return sent.astype(np.int64 if sent.dtype.kind == "i" else sent.dtype.newbyteorder("="))


def joined_texts(expression: str) -> str:
    """Return the SQL that packs an array, as the texts of its elements, for ``texts``.

    The first two parameters of the statement are the separators. They are put together as texts,
    since turning each into bytes takes longer than all the rest.
    """
    return f"pg_catalog.convert_to(pg_catalog.array_to_string({expression}, $1, $2), 'UTF8')"


def texts(arrays: Sequence[bytes], count: int) -> Texts | None:
    """Return the texts of arrays, none of them empty, with so many elements in all.

    None if there is NULL among them, or another number.
    """
    sent = _BETWEEN.encode().join(arrays)
    if _NULL.encode() in sent:
        return None
    packed = with_zero_bytes(sent, _BETWEEN.encode())
    expected = packed.count(b"\0") == max(count - 1, 0)
    return Texts.separated(packed, count) if expected else None


def joined(column: Texts) -> tuple[str, str]:
    """Return texts for string_to_array: all of them, and what stands between any two."""
    return column.joined().replace(b"\0", _BETWEEN.encode()).decode(), _BETWEEN


def literal(column: IntArray) -> str:
    """Return the literal of an integer[] of numbers from 0 on, which PostgreSQL reads fastest.

    A list of Python's integers takes three times as long to send.
    """
    return f"{{{digits(np.ascontiguousarray(column, dtype=np.int64), ',')}}}"
