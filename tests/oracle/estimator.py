"""The paper's estimator once more, from what a reader sees, sharing no code with the server's."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from psycopg.rows import dict_row
from psycopg.types.range import Range

from tests.integration.cases import Connection

EPOCH = date(2000, 1, 1)


@dataclass
class Group:
    """A group as a reader finds it in the published relations."""

    qi: dict[str, Any]
    values: list[str]
    counterfeits: int


def published_groups(db: Connection, release: int) -> list[Group]:
    groups: dict[int, Group] = {}
    with db.cursor(row_factory=dict_row) as cursor:
        for row in cursor.execute(
            "SELECT * FROM mdistinct_published.clinic WHERE release = %s", (release,)
        ):
            gid, disease = row["gid"], row["disease"]
            groups.setdefault(gid, Group(row, [], 0)).values.append(disease)
        for row in cursor.execute(
            "SELECT * FROM mdistinct_published.clinic_counterfeits WHERE release = %s", (release,)
        ):
            groups[row["gid"]].counterfeits = row["count"]
    return list(groups.values())


def number(value: Any) -> Decimal:
    if isinstance(value, datetime):
        since = value.replace(tzinfo=UTC) - datetime(2000, 1, 1, tzinfo=UTC)
        return Decimal(since // timedelta(microseconds=1))
    if isinstance(value, date):
        return Decimal((value - EPOCH).days)
    return Decimal(value)


def interval(found: Range[Any]) -> tuple[Decimal, Decimal]:
    return number(found.lower), number(found.upper)


def is_discrete(name: str) -> bool:
    return name in ("age", "ward", "number", "born")


def shares_of(name: str, found: Any, wanted: Any, rows: int) -> tuple[float, float] | None:
    """The share of a group's range or set that meets a condition, if any row of it can.

    The second takes into account that rows lie at both ends.
    """
    if name == "town":
        share = sum(town in wanted for town in found) / len(found)
        return (share, share) if share else None
    step = 1 if is_discrete(name) else 0
    low, high = interval(found)
    lowest, highest = number(wanted[0]), number(wanted[1]) + step
    first, last = max(low, lowest), min(high, highest)
    if last < first + step:
        return None
    share = float((last - first) / (high - low)) if low < high else 1.0
    if (first, last) == (low, high):
        return share, share
    ends = (first == low) + (last == high)
    return share, (ends + (rows - 2) * share) / rows


def moments(name: str, found: Range[Any], wanted: Any) -> tuple[float, float]:
    """Mean and variance of a uniform value in the part of a range that meets the predicate."""
    low, high = interval(found)
    if wanted is not None:
        low = max(low, number(wanted[0]))
        high = min(high, number(wanted[1]) + (1 if is_discrete(name) else 0))
    width = float(high - low)
    if is_discrete(name):
        return float(low + high - 1) / 2, (width * width - 1) / 12
    return float(low + high) / 2, width * width / 12


def reference(
    groups: list[Group], predicate: dict[str, Any], measure: str | None
) -> dict[str, float]:
    """The paper's estimator, and its error, written down once more."""
    names = ("count", "variance", "bias", "sum", "sum_variance", "sum_bias")
    figures = dict.fromkeys(names, 0.0)
    for group in groups:
        rows, fakes = len(group.values), group.counterfeits
        wanted = predicate.get("disease", group.values)
        matching = sum(value in wanted for value in group.values)
        shares = [
            shares_of(name, group.qi[name], asked, rows)
            for name, asked in predicate.items()
            if name != "disease"
        ]
        if not matching or None in shares:
            continue
        plain = math.prod(share[0] for share in shares if share)
        ends = math.prod(share[1] for share in shares if share)
        real = matching * (rows - fakes) / rows
        count, bias = real * plain, real * (ends - plain)
        variance = (
            real * (rows - real) / (rows - 1) * ends * (1 - ends)
            + real**2 / rows * plain * (1 - plain)
            + real * (1 - matching / rows) * fakes / (rows - 1) * ends**2
        )
        figures["count"] += count
        figures["variance"] += variance
        figures["bias"] += bias
        if measure is not None:
            mean, within = moments(measure, group.qi[measure], predicate.get(measure))
            figures["sum"] += count * mean
            figures["sum_variance"] += count * within + variance * mean**2
            figures["sum_bias"] += bias * mean
    return figures


def as_json(value: Any) -> Any:
    if isinstance(value, list):
        return [as_json(item) for item in value]
    return value if isinstance(value, int | float | str) else str(value)
