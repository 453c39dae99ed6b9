"""Rows of a release as data frames; pandas and Arrow are imported when they are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from importlib import import_module
from typing import TYPE_CHECKING, Any

from psycopg.types.range import Range

from pg_mdistinct.client.results import PublishedColumn

if TYPE_CHECKING:
    import pandas
    import pyarrow

# PostgreSQL writes ranges of whole numbers and days as [low, high); the others are published as
# [low, high].
_DISCRETE = ("int4range", "int8range", "daterange")
_CONTINUOUS = ("numrange", "tsrange", "tstzrange")

Rows = Sequence[tuple[Any, ...]]


def to_pandas(columns: Sequence[PublishedColumn], rows: Rows) -> pandas.DataFrame:
    """A data frame with intervals for ranges."""
    pd = _imported("pandas")
    cells = _by_column(columns, rows)
    return pd.DataFrame(  # type: ignore[no-any-return]
        {
            column.name: _intervals(pd, column.type, values)
            for column, values in zip(columns, cells, strict=True)
        }
    )


def to_arrow(columns: Sequence[PublishedColumn], rows: Rows) -> pyarrow.Table:
    """An Arrow table with structs for ranges; the metadata of such a field has its bounds."""
    pa = _imported("pyarrow")
    fields, arrays = [], []
    for column, values in zip(columns, _by_column(columns, rows), strict=True):
        array = pa.array(_structs(column.type, values), type=_arrow_type(pa, column.type))
        bounds = {"bounds": _bounds(column.type)} if column.type in _RANGES else None
        fields.append(pa.field(column.name, array.type, metadata=bounds))
        arrays.append(array)
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))  # type: ignore[no-any-return]


_RANGES = (*_DISCRETE, *_CONTINUOUS)


def _imported(library: str) -> Any:
    try:
        return import_module(library)
    except ImportError as error:
        raise ImportError(
            f"{library} is not installed: pip install 'pg-mdistinct[{library}]'"
        ) from error


def _by_column(columns: Sequence[PublishedColumn], rows: Rows) -> list[list[Any]]:
    return [[row[i] for row in rows] for i in range(len(columns))]


def _bounds(kind: str) -> str:
    return "[)" if kind in _DISCRETE else "[]"


def _intervals(pd: Any, kind: str, values: list[Any]) -> Any:
    """Intervals for ranges that have two bounds, all of them; else the values as they are."""
    if kind not in _RANGES or not values or not all(map(_is_bounded, values)):
        return values
    closed = "left" if kind in _DISCRETE else "both"
    low = pd.Index([_number(value.lower) for value in values])
    high = pd.Index([_number(value.upper) for value in values])
    if isinstance(values[0].lower, date):
        low, high = pd.to_datetime(low), pd.to_datetime(high)
    return pd.arrays.IntervalArray.from_arrays(low, high, closed=closed)


def _is_bounded(value: Range[Any] | None) -> bool:
    return value is not None and value.lower is not None and value.upper is not None


def _number(bound: Any) -> Any:
    return float(bound) if isinstance(bound, Decimal) else bound


def _structs(kind: str, values: list[Any]) -> list[Any]:
    if kind not in _RANGES:
        return values
    return [value and {"lower": value.lower, "upper": value.upper} for value in values]


def _arrow_type(pa: Any, kind: str) -> Any:
    """The type of a column; None: Arrow finds it out, as it must for decimals of any length."""
    ends = {
        "int4range": pa.int32(),
        "int8range": pa.int64(),
        "daterange": pa.date32(),
        "tsrange": pa.timestamp("us"),
        "tstzrange": pa.timestamp("us", tz="UTC"),
    }
    if kind in ends:
        return pa.struct([("lower", ends[kind]), ("upper", ends[kind])])
    plain = {"integer": pa.int32(), "text": pa.string(), "text[]": pa.list_(pa.string())}
    return plain.get(kind)
