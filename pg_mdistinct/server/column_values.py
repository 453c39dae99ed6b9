"""The distinct values of a QI column, in their order: their texts, and where they lie."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from pg_mdistinct.core import arrays
from pg_mdistinct.core.arrays import FloatArray, IntArray
from pg_mdistinct.core.texts import TextIndex, Texts
from pg_mdistinct.server.packed import SEPARATORS, elements, joined_texts, texts
from pg_mdistinct.server.plpython import Plpy, run
from pg_mdistinct.server.qi_types import QiType

Number = TypeVar("Number", int, float, Decimal)
Numbers = npt.NDArray[Any]

LONGEST_NUMERIC = 150_000
"""In digits: a bit more than PostgreSQL's longest numeric has."""

LEAST_REACH = 9
"""Neighbours of a lone value lie up to so many units away, or a tenth of the value."""


@dataclass(frozen=True)
class ColumnValues:
    """Sorted values; ``numbers`` are those that PostgreSQL sends, empty for other types."""

    type: QiType
    texts: Sequence[str]
    numbers: Numbers

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def positions(self) -> FloatArray:
        """Return where the values lie: only differences count."""
        if self.type.is_set:
            return np.arange(len(self.texts), dtype=np.float64)
        if self.type.dtype is None:
            return _positions_of_decimals(self.texts)
        return _positions_of_numbers(self.numbers)


def packed(qi_type: QiType, expression: str) -> str:
    """Return the SQL that packs an array of values, for ``unpacked``.

    The first two parameters of the statement are the separators of texts.
    """
    if qi_type.dtype is not None:
        return f"pg_catalog.array_send({expression})"
    return joined_texts(expression)


def unpacked(qi_type: QiType, arrays: Sequence[bytes], count: int) -> Numbers | Texts | None:
    """Return the values of a column as numbers, or as texts where they have none.

    None if there is another number of them, or one that has no place on the line.
    """
    if qi_type.dtype is None:
        sent = texts(arrays, count)
        # Of all that a number is written with, only NaN and Infinity have these letters.
        finite = qi_type.is_set or sent is None or not any(x in sent.packed for x in (b"N", b"I"))
        return sent if finite else None
    numbers = elements(arrays, qi_type.dtype)
    if numbers is None or len(numbers) != count or not _all_finite(qi_type, numbers):
        return None
    return numbers


def _all_finite(qi_type: QiType, numbers: Numbers) -> bool:
    if numbers.dtype.kind == "f":
        return bool(np.isfinite(numbers).all())
    lowest, greatest = qi_type.limits
    return not len(numbers) or lowest <= numbers.min() <= numbers.max() <= greatest


def ranked(plpy: Plpy, qi_type: QiType, sent: Numbers | Texts) -> tuple[ColumnValues, IntArray]:
    """Return the distinct values of a column, and for every row the place of its own."""
    if isinstance(sent, Texts):
        return _ranked_texts(qi_type, sent)
    if sent.dtype.kind == "i":
        values, code = arrays.ranked(sent)
    else:
        # 0 and -0 are equal, and written in one way.
        values, code = np.unique(sent + 0, return_inverse=True)
    return ColumnValues(qi_type, _written(plpy, qi_type, values.tolist()), values), code


def _ranked_texts(qi_type: QiType, sent: Texts) -> tuple[ColumnValues, IntArray]:
    rows, which = TextIndex(sent, secrets.randbits(64)).different()
    texts = sent.take(rows).decoded()
    # Python orders texts by code point, as the collation "C" does; numerics by what they are.
    key = str if qi_type.is_set else Decimal
    order = sorted(range(len(texts)), key=lambda i: key(texts[i]))
    rank = np.empty(len(rows), dtype=np.int64)
    rank[order] = np.arange(len(rows))
    return ColumnValues(qi_type, [texts[i] for i in order], np.empty(0)), rank[which]


def distinct(plpy: Plpy, qi_type: QiType, query: str) -> ColumnValues:
    """Return the distinct values of a query's column q."""
    sent = "pg_catalog.array_agg(d.q ORDER BY d.q)"
    row = run(
        plpy,
        f"SELECT coalesce({sent}::text[], '{{}}') AS texts, {packed(qi_type, sent)} AS sent"
        f" FROM (SELECT DISTINCT q FROM ({query}) AS a) AS d",
        ["text", "text"],
        SEPARATORS,
    )[0]
    numbers = elements([row["sent"]], qi_type.dtype) if qi_type.dtype else None
    return ColumnValues(qi_type, row["texts"], np.empty(0) if numbers is None else numbers)


def with_neighbours(plpy: Plpy, values: ColumnValues) -> ColumnValues:
    """Add a value below and one above a lone one, at random distances; sets have no such values."""
    if values.type.is_set:
        return values
    own = values.texts[0]
    if values.type.dtype is None:
        below, above = (str(beside) for beside in _around(Decimal(own), 1))
        return ColumnValues(values.type, [below, own, above], values.numbers)
    number = values.numbers[0].item()
    lowest, greatest = values.type.limits
    texts = {
        beside: _written(plpy, values.type, [beside])[0]
        for beside in _around(number, values.type.unit)
        if lowest <= beside <= greatest
    }
    texts[number] = own
    ordered = sorted(texts)
    return ColumnValues(
        values.type, [texts[n] for n in ordered], np.array(ordered, dtype=values.numbers.dtype)
    )


def _around(number: Number, unit: int) -> tuple[Number, Number]:
    """Return a number below and one above, with all their digits."""
    reach = max(LEAST_REACH * unit, int(abs(number)) // 10)
    with localcontext(prec=LONGEST_NUMERIC):
        return number - 1 - secrets.randbelow(reach), number + 1 + secrets.randbelow(reach)


def _written(plpy: Plpy, qi_type: QiType, numbers: Sequence[float]) -> Sequence[str]:
    """Return the texts of values that are given by the numbers that PostgreSQL sends."""
    if qi_type.text_of is None:
        return list(map(str, numbers))
    text = qi_type.text_of.format("n.number")
    row = run(
        plpy,
        f"SELECT coalesce(pg_catalog.array_agg({text} ORDER BY n.row), '{{}}') AS texts"
        " FROM pg_catalog.unnest($1) WITH ORDINALITY AS n (number, row)",
        ["float8[]" if "f" in (qi_type.dtype or "") else "int8[]"],
        [numbers],
    )[0]
    found: Sequence[str] = row["texts"]
    return found


def _positions_of_numbers(values: npt.NDArray[Any]) -> FloatArray:
    """Return how far each of some sorted numbers lies from the first one, without overflow."""
    if values.dtype.kind == "i":
        # Unsigned arithmetic wraps around to the right difference, whatever the signs.
        return (values.astype(np.uint64) - values.astype(np.uint64)[:1]).astype(np.float64)
    numbers = values.astype(np.float64)
    with np.errstate(over="ignore"):
        offsets = numbers - numbers[:1]
    return offsets if np.isfinite(offsets).all() else numbers / 2 - numbers[:1] / 2


def _positions_of_decimals(texts: Sequence[str]) -> FloatArray:
    """The same for numerics, as shares of the column's width: they may exceed any float."""
    context = Context(prec=40, Emax=999_999, Emin=-999_999)
    values = [Decimal(text) for text in texts]
    if len(values) < 2:
        return np.zeros(len(values))
    width = context.subtract(values[-1], values[0])
    return np.array(
        [float(context.divide(context.subtract(value, values[0]), width)) for value in values]
    )
