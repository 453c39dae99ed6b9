"""Answers analysts' queries from a release: how many records, and their sum or average.

Only what was published is read. Within a group the paper's estimator takes each record to lie
anywhere in the group's ranges and sets with equal chance, and any of the group's rows to be a
counterfeit with equal chance. The variance follows from the same assumptions.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pg_mdistinct.core.errors import MdistinctError
from pg_mdistinct.server import caller
from pg_mdistinct.server.errors import bad_parameter, entry_point, require
from pg_mdistinct.server.plpython import Plpy, Row, run
from pg_mdistinct.server.relations import relations_of

_ROWS = "pg_catalog.cardinality(g.candidates)"
FORMS = (
    "Give a value, a list of values, or for a column of ranges [lowest, highest] (null: no bound)"
    ' or a range such as "[20,40)": {"age": [20, 40], "disease": ["Flu"]}.'
)


@dataclass(frozen=True)
class RangeType:
    """How the bounds of a range become numbers; ``beyond`` stands for a missing upper one.

    The greatest integer and the last date have no successor, so their ranges have no upper bound.
    """

    number: str
    discrete: bool
    beyond: str = "NULL"
    is_number: bool = True


_DAYS = "({0} - DATE '2000-01-01')::pg_catalog.int8"
_SECONDS = "EXTRACT(epoch FROM {0})"
_RANGES = {
    "int4range": RangeType("{0}::pg_catalog.int8", True, "2147483648"),
    "int8range": RangeType("{0}::pg_catalog.numeric", True, "9223372036854775808"),
    "numrange": RangeType("{0}", False),
    "daterange": RangeType(_DAYS, True, "2145031949", is_number=False),
    "tsrange": RangeType(_SECONDS, False, is_number=False),
    "tstzrange": RangeType(_SECONDS, False, is_number=False),
}


@dataclass(frozen=True)
class PublishedColumn:
    """A QI column of a release; ``own`` is its name in the table of groups."""

    name: str
    type: str
    own: str

    @property
    def range(self) -> RangeType | None:
        """Return how its ranges become numbers; None: it has sets."""
        return _RANGES.get(self.type)


@dataclass(frozen=True)
class Condition:
    """What a predicate asks of a QI column, as an SQL constant."""

    column: PublishedColumn
    wanted: str

    @property
    def possible(self) -> str:
        """Return the SQL that tells whether a group can have records that meet the condition."""
        return f"g.{self.column.own} && {self.wanted}"

    @property
    def certain(self) -> str:
        """Return the SQL that tells whether all records of a group meet the condition."""
        return f"g.{self.column.own} <@ {self.wanted}"

    @property
    def share(self) -> str:
        """Return the SQL for the share of the group's range or set that meets the condition."""
        own = f"g.{self.column.own}"
        if self.column.range is None:
            found = (
                f"(SELECT pg_catalog.count(*) FROM pg_catalog.unnest({own}) AS e"
                f" WHERE e = ANY ({self.wanted}))"
            )
            part = f"{found}::float8 / pg_catalog.cardinality({own})"
        else:
            low, high = _bounds(self.column.range, own)
            lowest, highest = _overlap(self.column.range, own, self.wanted)
            # A range of one point of a line has no width.
            part = f"coalesce(({highest} - {lowest})::float8 / nullif({high} - {low}, 0), 1)"
        return f"CASE WHEN {self.certain} THEN 1 ELSE {part} END"

    def share_with_ends(self, share: str) -> str:
        """Return the SQL for the share, given that a row lies at each end of the range.

        Ranges are as narrow as a group's rows allow; every value of a set is some row's anyway.
        """
        if self.column.range is None:
            return share
        own = f"g.{self.column.own}"
        low, high = _bounds(self.column.range, own)
        lowest, highest = _overlap(self.column.range, own, self.wanted)
        ends = f"({lowest} = {low})::int4 + ({highest} = {high})::int4"
        return (
            f"CASE WHEN {self.certain} THEN 1 ELSE ({ends} + ({_ROWS} - 2) * {share}) / {_ROWS} END"
        )


@entry_point
def estimate(
    plpy: Plpy, dataset: str, release: int | None, predicate: str | None, measure: str | None
) -> Row:
    """Estimate how many records of a release meet a predicate, and the sum of a QI column."""
    require(dataset=dataset, predicate=predicate)
    assert predicate is not None
    columns, sensitive = _columns(plpy, dataset)
    chosen = _release(plpy, dataset, release)
    wanted = _parsed(predicate, [*columns, sensitive])
    conditions = [
        Condition(columns[name], _constant(plpy, columns[name], given))
        for name, given in wanted.items()
        if name in columns
    ]
    codes = _codes(plpy, dataset, sensitive, wanted[sensitive]) if sensitive in wanted else None
    measured = None if measure is None else _measured(columns, measure)
    groups = f"{relations_of(plpy, dataset).groups} AS g WHERE g.release = {chosen}"
    used = [condition.column for condition in conditions] + ([measured] if measured else [])
    _refuse_missing(plpy, groups, chosen, used)
    origin = 0.0 if measured is None else _origin(plpy, measured, groups)
    row = plpy.execute(_statement(groups, conditions, codes, measured, origin))[0]
    return _figures(row, origin, measured is not None)


def _columns(plpy: Plpy, dataset: str) -> tuple[dict[str, PublishedColumn], str]:
    """Return the QI columns by name, and the name of the sensitive one, as readers see them.

    Whoever may not read the release may not ask about it either.
    """
    found = run(
        plpy,
        "SELECT a.attname::text AS name, pg_catalog.format_type(a.atttypid, -1) AS type,"
        f" pg_catalog.has_table_privilege({caller.CALLER}, c.oid, 'SELECT') AS readable"
        " FROM pg_catalog.pg_class AS c"
        " JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 2"
        " WHERE c.oid = pg_catalog.to_regclass($1)"
        " AND EXISTS (SELECT FROM mdistinct.datasets AS d WHERE d.dataset = $2)"
        " ORDER BY a.attnum",
        ["text", "name"],
        [relations_of(plpy, dataset).published, dataset],
    )
    if not found.nrows():
        raise MdistinctError(
            f'dataset "{dataset}" is not registered',
            hint="The datasets that have releases are listed in mdistinct_published.releases.",
            sqlstate="42704",
        )
    *qi, sensitive = found
    if not sensitive["readable"]:
        raise MdistinctError(
            f'you may not read the releases of dataset "{dataset}"',
            hint="Ask for the role mdistinct_reader.",
            sqlstate="42501",
        )
    columns = {
        row["name"]: PublishedColumn(row["name"], row["type"], f"q{i}")
        for i, row in enumerate(qi, start=1)
    }
    return columns, sensitive["name"]


def _release(plpy: Plpy, dataset: str, release: int | None) -> int:
    row = run(
        plpy,
        "SELECT pg_catalog.max(r.release) AS last,"
        " pg_catalog.max(r.release) FILTER (WHERE r.release = $2) AS chosen"
        " FROM mdistinct_published.releases AS r WHERE r.dataset = $1",
        ["name", "int4"],
        [dataset, release],
    )[0]
    found = row["last"] if release is None else row["chosen"]
    if found is None:
        raise bad_parameter(
            f'dataset "{dataset}" has no release' + ("" if release is None else f" {release}"),
            "Nothing has been published yet."
            if row["last"] is None
            else f"Its releases are 1 to {row['last']}.",
        )
    return int(found)


def _parsed(predicate: str, columns: Sequence[str]) -> Mapping[str, Any]:
    """Return the conditions by column; numbers stay the texts that they are."""
    wanted = json.loads(predicate, parse_int=str, parse_float=str)
    if not isinstance(wanted, dict):
        raise bad_parameter("the predicate is not a JSON object of columns", FORMS)
    for name in wanted:
        if name not in columns:
            raise bad_parameter(
                f'the release has no column "{name}"',
                "Its columns are " + ", ".join(f'"{other}"' for other in columns) + ".",
                "42703",
            )
    return wanted


def _constant(plpy: Plpy, column: PublishedColumn, given: Any) -> str:
    """Return what is wanted of a QI column as a constant of the column's own type."""
    if column.range is None:
        chosen = ", ".join(plpy.quote_literal(text) for text in _texts(column.name, given))
        return f"ARRAY[{chosen}]::pg_catalog.text[]"
    literal = _range_literal(column.name, given)
    try:
        row = run(plpy, f"SELECT $1::pg_catalog.{column.type}::text AS text", ["text"], [literal])
    except plpy.SPIError as error:
        raise bad_parameter(
            f'the predicate for "{column.name}" is no {column.type}: {error}', FORMS
        ) from None
    return f"{plpy.quote_literal(row[0]['text'])}::pg_catalog.{column.type}"


def _range_literal(name: str, given: Any) -> str:
    if isinstance(given, str) and given[:1] in ("[", "("):
        return given
    ends = given if isinstance(given, list) else [given, given]
    if len(ends) != 2 or given is None:
        raise bad_parameter(f'the predicate for "{name}" is no interval', FORMS)
    low, high = ("" if end is None else f'"{_text(name, end)}"' for end in ends)
    return f"[{low},{high}]"


def _texts(name: str, given: Any) -> list[str]:
    """Return the values of a list, or of one alone."""
    values = given if isinstance(given, list) else [given]
    if not values:
        raise bad_parameter(f'the predicate for "{name}" names no value', FORMS)
    return [_text(name, value) for value in values]


def _text(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str):
        raise bad_parameter(f'the predicate for "{name}" has something that is no value', FORMS)
    return value


def _codes(plpy: Plpy, dataset: str, sensitive: str, given: Any) -> str:
    """Return the codes of the sensitive values that are wanted; nobody has the unknown ones."""
    row = run(
        plpy,
        "SELECT coalesce(pg_catalog.array_agg(d.code), '{}')::text AS codes"
        f" FROM {relations_of(plpy, dataset).domain} AS d WHERE d.label = ANY ($1)",
        ["text[]"],
        [_texts(sensitive, given)],
    )[0]
    return f"{plpy.quote_literal(row['codes'])}::pg_catalog.int4[]"


def _measured(columns: Mapping[str, PublishedColumn], measure: str) -> PublishedColumn:
    """Return the column that is summed, if it has numbers."""
    numbers = [name for name, column in columns.items() if column.range and column.range.is_number]
    if measure not in numbers:
        raise bad_parameter(
            f'"{measure}" is no QI column with numbers',
            "Those that can be summed are " + ", ".join(f'"{name}"' for name in numbers) + "."
            if numbers
            else "No column of the release can be summed.",
            "42804" if measure in columns else "42703",
        )
    return columns[measure]


def _refuse_missing(
    plpy: Plpy, groups: str, release: int, columns: Sequence[PublishedColumn]
) -> None:
    """Refuse columns that came later than the release: all of its groups are NULL there."""
    names = ", ".join(f"g.{column.own} IS NULL AS {column.own}" for column in columns)
    for row in plpy.execute(f"SELECT {names} FROM {groups} LIMIT 1") if columns else ():
        for column in columns:
            if row[column.own]:
                raise bad_parameter(
                    f'release {release} has no column "{column.name}"',
                    "It was added to the dataset later: leave it out, or ask a later release.",
                    "42703",
                )


def _origin(plpy: Plpy, column: PublishedColumn, groups: str) -> float:
    """Return a number near all the others: differences from it keep their digits in a square."""
    rows = plpy.execute(
        f"SELECT pg_catalog.lower(g.{column.own})::float8 AS low FROM {groups} LIMIT 1"
    )
    return float(rows[0]["low"]) if rows.nrows() else 0.0


def _bounds(kind: RangeType, own: str) -> tuple[str, str]:
    """Return the bounds of a group's range as numbers."""
    low, high = (kind.number.format(f"pg_catalog.{end}({own})") for end in ("lower", "upper"))
    return low, f"coalesce({high}, {kind.beyond})"


def _overlap(kind: RangeType, own: str, wanted: str | None) -> tuple[str, str]:
    """Return the bounds of the part of a group's range that a condition leaves."""
    low, high = _bounds(kind, own)
    if wanted is None:
        return low, high
    lowest, highest = (
        kind.number.format(f"pg_catalog.{end}({wanted})") for end in ("lower", "upper")
    )
    return f"GREATEST({low}, {lowest})", f"LEAST({high}, {highest})"


_MOMENTS = """,
            pg_catalog.sum(u.mean * u.centre) AS moment,
            pg_catalog.sum(u.bias * u.centre) AS tilt,
            pg_catalog.sum(u.mean * u.spread) AS within,
            pg_catalog.sum(u.variance * u.centre) AS once,
            pg_catalog.sum(u.variance * u.centre * u.centre) AS twice"""


def _statement(
    groups: str,
    conditions: Sequence[Condition],
    codes: str | None,
    measured: PublishedColumn | None,
    origin: float,
) -> str:
    """Return the query over the groups that can have records that meet the conditions.

    Of a group's n rows c are counterfeits, k have a wanted sensitive value, and so h real ones are
    expected to have one: their number is hypergeometric. A row meets the conditions on QI columns
    with the chance p; f is the same chance for rows of which two lie at the ends of the ranges.
    The number of rows that do is binomial, and which of them are the h is hypergeometric again.
    How far p and f are apart is no noise: groups side by side have it in common, so it is summed
    before it is squared.
    OFFSET 0 keeps the planner from working the same share out several times.
    """
    matching = (
        _ROWS
        if codes is None
        else "(SELECT pg_catalog.count(*) FROM pg_catalog.unnest(g.candidates) AS e"
        f" WHERE e = ANY ({codes}))"
    )
    shares = [f"({condition.share})" for condition in conditions]
    with_ends = [
        f"({condition.share_with_ends(share)})"
        for condition, share in zip(conditions, shares, strict=True)
    ]
    certain = " AND ".join(condition.certain for condition in conditions) or "true"
    where = [condition.possible for condition in conditions]
    if codes is not None:
        where.append(f"g.candidates && {codes}")
    centre, spread = _measure(measured, conditions, origin)
    return f"""
        SELECT pg_catalog.sum(u.mean) AS mean, pg_catalog.sum(u.variance) AS variance,
            pg_catalog.sum(u.bias) AS bias,
            pg_catalog.sum(u.at_least)::int8 AS at_least,
            pg_catalog.sum(u.at_most)::int8 AS at_most{"" if measured is None else _MOMENTS}
        FROM (
            SELECT t.h * t.p AS mean,
                t.h * (t.n - t.h) / GREATEST(t.n - 1, 1) * t.f * (1 - t.f)
                + t.h * t.h / t.n * t.p * (1 - t.p)
                + t.h * (1 - t.k / t.n) * t.c / GREATEST(t.n - 1, 1) * t.f * t.f AS variance,
                t.h * (t.f - t.p) AS bias,
                CASE WHEN t.certain THEN GREATEST(t.k - t.c, 0) ELSE 0 END AS at_least,
                LEAST(t.k, t.n - t.c) AS at_most,
                t.centre, t.spread
            FROM (
                SELECT *, s.k * (s.n - s.c) / s.n AS h
                FROM (
                    SELECT {_ROWS}::float8 AS n, g.counterfeits::float8 AS c,
                        {matching}::float8 AS k, {certain} AS certain,
                        ({" * ".join(shares) or "1"})::float8 AS p,
                        ({" * ".join(with_ends) or "1"})::float8 AS f,
                        ({centre})::float8 AS centre, ({spread})::float8 AS spread
                    FROM {" AND ".join([groups, *where])}
                    OFFSET 0
                ) AS s
            ) AS t
        ) AS u
    """


def _measure(
    measured: PublishedColumn | None, conditions: Sequence[Condition], origin: float
) -> tuple[str, str]:
    """Return mean and variance of the measured column within the part that conditions leave."""
    if measured is None:
        return "0", "0"
    kind = measured.range
    assert kind is not None
    wanted = next((c.wanted for c in conditions if c.column == measured), None)
    low, high = _overlap(kind, f"g.{measured.own}", wanted)
    width = f"({high} - {low})::float8"
    if kind.discrete:
        middle, spread = f"({low} + {high} - 1)", f"({width} * {width} - 1) / 12"
    else:
        middle, spread = f"({low} + {high})", f"{width} * {width} / 12"
    return f"{middle}::float8 / 2 - {origin!r}::float8", spread


def _figures(row: Row, origin: float, measured: bool) -> Row:
    """Return the row that the caller gets; without a record there is no average."""
    mean, variance, bias = (row[name] or 0.0 for name in ("mean", "variance", "bias"))
    figures: dict[str, Any] = {
        "count": mean,
        "count_error": math.hypot(math.sqrt(variance), bias),
        "at_least": row["at_least"] or 0,
        "at_most": row["at_most"] or 0,
    }
    figures.update(dict.fromkeys(("sum", "sum_error", "avg", "avg_error")))
    if measured:
        moments = (row[name] or 0.0 for name in ("moment", "tilt", "within", "once", "twice"))
        figures.update(_sums(mean, variance, bias, origin, *moments))
    return figures


def _sums(
    mean: float,
    variance: float,
    bias: float,
    origin: float,
    moment: float,
    tilt: float,
    within: float,
    once: float,
    twice: float,
) -> Iterator[tuple[str, float | None]]:
    """Yield sum and average with their errors; that of a quotient is the linear one."""

    def error_around(centre: float) -> float:
        """Return the error of the sum of what the values differ from a centre by."""
        noise = within + twice - 2 * centre * once + centre**2 * variance
        return math.sqrt(max(noise, 0.0) + (tilt - centre * bias) ** 2)

    yield "sum", moment + origin * mean
    yield "sum_error", error_around(-origin)
    yield "avg", moment / mean + origin if mean else None
    yield "avg_error", error_around(moment / mean) / mean if mean else None
