"""How each PostgreSQL type travels into arrays and comes back as the bounds of a group.

One table of type families: numbers, dates and timestamps become ranges, everything else the set
of its texts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal

import numpy as np

Bounds = Callable[[Sequence[str]], tuple[list[str], list[str]]]
"""From the texts of sorted values to the beginnings and the ends of range literals."""


def _exact(greatest: str | None = None) -> Bounds:
    """Values are bounds as they are; the type's greatest one cannot be included as an end.

    Discrete ranges are stored as [low, high + 1), which does not exist beyond the greatest value.
    """

    def bounds(texts: Sequence[str]) -> tuple[list[str], list[str]]:
        lows = [f'["{text}",' for text in texts]
        highs = [")" if text == greatest else f'"{text}"]' for text in texts]
        return lows, highs

    return bounds


def _outward(readings: Callable[[str], list[float]], digits: int, enough: int) -> Bounds:
    """Bounds of floats hold the value whichever way one reads it.

    That is its text, PostgreSQL's cast to numeric, which rounds to ``digits`` digits, and its
    exact binary values, rounded outward to ``enough`` digits, which tell any two floats apart.
    """
    down = Context(prec=enough, rounding=ROUND_FLOOR)
    up = Context(prec=enough, rounding=ROUND_CEILING)

    def bounds(texts: Sequence[str]) -> tuple[list[str], list[str]]:
        lows, highs = [], []
        for text in texts:
            exact = readings(text)
            rounded = [Decimal(text), Decimal(f"{exact[0]:.{digits}g}")]
            lows.append(f"[{min([*map(down.create_decimal, exact), *rounded])},")
            highs.append(f"{max([*map(up.create_decimal, exact), *rounded])}]")
        return lows, highs

    return bounds


def _double(text: str) -> list[float]:
    return [float(text)]


def _single(text: str) -> list[float]:
    """The value itself, and what a client makes of its text that has no single precision."""
    return [float(np.float32(text)), float(text)]


@dataclass(frozen=True)
class QiType:
    """A family of types: how it is stored, published and read.

    ``dtype`` says how values are sent as packed bytes; None: they are sent as texts.
    ``infinite`` is the SQL condition for values that have no place on the line; ``text_of`` the SQL
    for the text of a value from its packed number, where that is not the number itself, and
    ``limits`` the packed numbers beyond which there are no values; ``unit`` is a step that a
    person would notice.
    """

    stored: str
    generalized: str
    dtype: str | None
    infinite: str | None
    bounds: Bounds | None
    text_of: str | None = None
    limits: tuple[float, float] = (-math.inf, math.inf)
    unit: int = 1

    @property
    def stored_array(self) -> str:
        """Return the type of an array of stored values."""
        name, *collation = self.stored.partition(" COLLATE")
        return f"{name}[]{''.join(collation)}"

    @property
    def contains(self) -> str:
        """Return the SQL that tells whether a group's value ({0}) contains a record's ({1})."""
        if self.is_set:
            return "({1} = ANY ({0}))"
        return f"({{0}} @> {{1}}::{_ELEMENTS.get(self.generalized, self.stored)})"

    @property
    def is_set(self) -> bool:
        """Tell whether groups show a set of values instead of a range."""
        return self.bounds is None


_ELEMENTS = {"int4range": "integer", "numrange": "numeric"}

_NOT_FINITE = "{0} IN ('NaN', 'Infinity', '-Infinity')"
_NO_DATE = "NOT pg_catalog.isfinite({0})"

_DAY = "(DATE '2000-01-01' + {0}::integer)::text"
# Multiplying an interval goes through floats, which do not hold all microseconds of a long time.
_MOMENT = (
    "(TIMESTAMP '2000-01-01' + {0} / 86400000000 * INTERVAL '1 day'"
    " + {0} % 86400000000 * INTERVAL '1 microsecond')::text"
)
_INT2, _INT4, _INT8 = ((-(2**bits), 2**bits - 1) for bits in (15, 31, 63))
_REAL, _DOUBLE = (-3.4e38, 3.4e38), (-1.7e308, 1.7e308)
_ONE_DAY = 24 * 3600 * 10**6
# 4713 BC to 5874897 and to 294276.
_DAYS, _MOMENTS = (-2_451_545, 2_145_031_948), (-211_813_488 * 10**9, 9_223_371_331_199_999_999)

_TYPES = (
    QiType("smallint", "int4range", ">i2", None, _exact(), None, _INT2),
    QiType("integer", "int4range", ">i4", None, _exact(str(_INT4[1])), None, _INT4),
    QiType("bigint", "int8range", ">i8", None, _exact(str(_INT8[1])), None, _INT8),
    QiType("numeric", "numrange", None, _NOT_FINITE, _exact()),
    QiType(
        "real", "numrange", ">f4", _NOT_FINITE, _outward(_single, 6, 17), "{0}::real::text", _REAL
    ),
    QiType(
        "double precision",
        "numrange",
        ">f8",
        _NOT_FINITE,
        _outward(_double, 15, 17),
        "{0}::text",
        _DOUBLE,
    ),
    QiType("date", "daterange", ">i4", _NO_DATE, _exact("5874897-12-31"), _DAY, _DAYS),
    QiType(
        "timestamp without time zone",
        "tsrange",
        ">i8",
        _NO_DATE,
        _exact(),
        _MOMENT,
        _MOMENTS,
        _ONE_DAY,
    ),
    QiType(
        "timestamp with time zone",
        "tstzrange",
        ">i8",
        _NO_DATE,
        _exact(),
        _MOMENT,
        _MOMENTS,
        _ONE_DAY,
    ),
)
_BY_NAME = {qi_type.stored: qi_type for qi_type in _TYPES}
SET = QiType('text COLLATE "C"', "text[]", None, None, None)


def qi_type_of(base_type: str) -> QiType:
    """Return the family of a type that is not a domain, named as format_type names it."""
    return _BY_NAME.get(base_type, SET)


def quoted_element(text: str) -> str:
    """Return a text as an element of an array literal."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
