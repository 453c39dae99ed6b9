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
from pg_mdistinct.server.packed import gather_texts, literal, numbers, separated
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
    """Return the SQL that packs the values of a column, for ``unpacked``."""
    if qi_type.send is not None:
        return f"pg_catalog.string_agg(pg_catalog.{qi_type.send}({expression}), '')"
    if qi_type.is_set:
        return gather_texts(expression)
    # Equal numbers have equal texts then.
    return gather_texts(f"pg_catalog.trim_scale({expression})::text")


def unpacked(qi_type: QiType, sent: bytes | None, count: int) -> Numbers | Texts:
    """Return the values of a column as numbers, or as texts where they have none."""
    if qi_type.dtype is not None:
        return numbers(sent, qi_type.dtype)
    return Texts.separated(separated(sent), count)


def ranked(
    plpy: Plpy, qi_type: QiType, sent: Numbers | Texts, table: str, expression: str
) -> tuple[ColumnValues, IntArray]:
    """Return the distinct values of a column, and for every row the place of its own."""
    if isinstance(sent, Texts):
        return _ranked_texts(qi_type, sent)
    if sent.dtype.kind == "i" and qi_type.text_of is None:
        values, code = arrays.ranked(sent)
        return ColumnValues(qi_type, list(map(str, values.tolist())), values), code
    values, first, code = np.unique(sent, return_index=True, return_inverse=True)
    row = run(
        plpy,
        f"SELECT coalesce(pg_catalog.array_agg(({expression})::text ORDER BY {expression}), '{{}}')"
        f" AS texts FROM {table} WHERE v.seq IN (SELECT pg_catalog.unnest($1::int4[]))",
        ["text"],
        [literal(first)],
    )[0]
    return ColumnValues(qi_type, row["texts"], values), code.astype(np.int64)


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
    sent = f"pg_catalog.{qi_type.send}(q)" if qi_type.send else "NULL::bytea"
    row = plpy.execute(
        "SELECT coalesce(pg_catalog.array_agg(q::text ORDER BY q), '{}') AS texts,"
        f" pg_catalog.string_agg({sent}, '' ORDER BY q) AS sent"
        f" FROM (SELECT DISTINCT q FROM ({query}) AS a) AS d"
    )[0]
    return ColumnValues(qi_type, row["texts"], numbers(row["sent"], qi_type.dtype or ">i8"))


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
        beside: _text(plpy, values.type, beside)
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


def _text(plpy: Plpy, qi_type: QiType, number: float) -> str:
    if qi_type.text_of is None:
        return str(number)
    return str(plpy.execute(f"SELECT {qi_type.text_of.format(number)} AS text")[0]["text"])


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
