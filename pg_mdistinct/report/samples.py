"""Sample queries: what the latest release answers, and what the source says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from statistics import median
from typing import Any

import psycopg
from psycopg import sql

from pg_mdistinct.client import Dataset, Estimate, MdistinctSqlError, Release

Connection = psycopg.Connection[Any]

# Pairs of columns grow fast; a page takes about a dozen lines.
PAIRED_COLUMNS = 3


@dataclass(frozen=True)
class Condition:
    """A column between two values, or equal to one; values are texts as PostgreSQL writes them."""

    column: str
    values: tuple[str, ...]

    @property
    def is_interval(self) -> bool:
        """Whether the values are two ends."""
        return len(self.values) == 2

    @property
    def words(self) -> str:
        """The condition for people."""
        if self.is_interval:
            return f"{self.column} from {self.values[0]} to {self.values[1]}"
        return f"{self.column} is {self.values[0]}"

    @property
    def predicate(self) -> list[str]:
        """The condition as `mdistinct_estimate` takes it."""
        return list(self.values)

    @property
    def sql(self) -> sql.Composed:
        """The condition on the source."""
        column = sql.Identifier("s", self.column)
        if self.is_interval:
            return sql.SQL("{} BETWEEN %s AND %s").format(column)
        return sql.SQL("{}::text = %s").format(column)


@dataclass(frozen=True)
class SampleQuery:
    """A count, by the release and by the source."""

    words: str
    truth: int
    answer: Estimate

    @property
    def error(self) -> float | None:
        """How far the answer is off, relative to the truth; None where nobody is meant."""
        return abs(self.answer.count - self.truth) / self.truth if self.truth else None


@dataclass(frozen=True)
class Samples:
    """Some queries and their answers, or the reason why there are none."""

    queries: list[SampleQuery] = field(default_factory=list)
    source_rows: int = 0
    reason: str | None = None

    @property
    def median_error(self) -> float | None:
        """Half of the queries are off by no more than that."""
        errors = [query.error for query in self.queries if query.error is not None]
        return median(errors) if errors else None


def sample(connection: Connection, dataset: Dataset, release: Release) -> Samples:
    """Asks the release and the source the same questions; a source may be out of reach."""
    try:
        with connection.transaction():
            # Texts of dates are read again by a function that keeps to this style.
            connection.execute("SET LOCAL datestyle = 'ISO, YMD'")
            return _answered(connection, dataset, release)
    except (psycopg.ProgrammingError, MdistinctSqlError) as error:
        said = error.diag.message_primary if isinstance(error, psycopg.Error) else error.message
        return Samples(reason=said)


def _answered(connection: Connection, dataset: Dataset, release: Release) -> Samples:
    info = dataset.info
    source = sql.Identifier(info.source_schema, info.source_table)
    types = {column.name: column.type for column in release.columns}
    columns = [name for name in info.qi_columns if name in types]
    found = {
        name: _condition(connection, source, name, is_set=types[name] == "text[]")
        for name in columns
    }
    found[info.sensitive_column] = _condition(
        connection, source, info.sensitive_column, is_set=True
    )
    conditions = [condition for condition in found.values() if condition is not None]
    if not conditions:
        return Samples(reason="the source has no rows")
    questions = list(_questions(conditions))
    rows, *truths = _truths(connection, source, questions)
    return Samples(
        queries=[
            SampleQuery(
                words=" and ".join(condition.words for condition in question),
                truth=truth,
                answer=dataset.estimate(
                    {condition.column: condition.predicate for condition in question},
                    release=release.release,
                ),
            )
            for question, truth in zip(questions, truths, strict=True)
        ],
        source_rows=rows,
    )


def _condition(
    connection: Connection, source: sql.Identifier, column: str, *, is_set: bool
) -> Condition | None:
    """The middle half of a column of ranges, the most frequent value of another."""
    chosen = (
        "pg_catalog.mode() WITHIN GROUP (ORDER BY {column}::text)"
        if is_set
        else "pg_catalog.percentile_disc(0.25) WITHIN GROUP (ORDER BY {column})::text,"
        " pg_catalog.percentile_disc(0.75) WITHIN GROUP (ORDER BY {column})::text"
    )
    query = sql.SQL(f"SELECT {chosen} FROM {{source}} AS s").format(
        column=sql.Identifier("s", column), source=source
    )
    values = connection.execute(query).fetchone()
    assert values is not None
    return None if values[0] is None else Condition(column, tuple(values))


def _questions(conditions: Sequence[Condition]) -> Iterator[tuple[Condition, ...]]:
    """Each condition alone, pairs of the first few, and the sensitive one with each of those."""
    *qi, sensitive = conditions
    yield from ((condition,) for condition in conditions)
    yield from combinations(qi[:PAIRED_COLUMNS], 2)
    yield from ((condition, sensitive) for condition in qi[:PAIRED_COLUMNS])


def _truths(
    connection: Connection, source: sql.Identifier, questions: Sequence[Sequence[Condition]]
) -> tuple[int, ...]:
    """How many rows the source has, and how many of them meet each question."""
    counts = [
        sql.SQL("pg_catalog.count(*) FILTER (WHERE {})").format(
            sql.SQL(" AND ").join(condition.sql for condition in question)
        )
        for question in questions
    ]
    query = sql.SQL("SELECT {} FROM {} AS s").format(
        sql.SQL(", ").join([sql.SQL("pg_catalog.count(*)"), *counts]), source
    )
    values = [v for question in questions for condition in question for v in condition.values]
    row = connection.execute(query, values).fetchone()
    assert row is not None
    return tuple(row)
