"""Every statement that the client sends, and how its answer is read."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, LiteralString, Protocol, TypeVar

from psycopg import sql
from sqlalchemy import Table

from pg_mdistinct.client.results import (
    DatasetInfo,
    Estimate,
    LearnedUpdates,
    Publication,
    PublishedColumn,
    ReleaseInfo,
    Transition,
    VersionRisk,
    Violation,
)
from pg_mdistinct.picture import UpdateGraphPicture

T = TypeVar("T")

PUBLISHED = "mdistinct_published"

Targets = Sequence[str] | Mapping[str, float]
"""What a value may become: equally likely, or with a probability each."""

Source = str | Table | type[Any]
"""A table or view: its name as in SQL, or a table or mapped class of SQLAlchemy."""


class Frame(Protocol):
    """A data frame, of pandas or another library: one that lists its columns."""

    @property
    def columns(self) -> Any:
        """The columns, or their names."""


Model = Source | Mapping[str, Targets] | Frame
"""An update model: a table of old_value, new_value, probability, a dictionary or a data frame."""


@dataclass(frozen=True)
class Statement:
    """A query and its parameters."""

    query: LiteralString | sql.Composed
    parameters: Sequence[Any] | Mapping[str, Any] = ()


@dataclass(frozen=True)
class Rows:
    """What a statement returned."""

    columns: list[str]
    rows: list[tuple[Any, ...]]

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (dict(zip(self.columns, row, strict=True)) for row in self.rows)

    def one(self) -> dict[str, Any]:
        """The only row."""
        (row,) = self
        return row


@dataclass(frozen=True)
class Answer:
    """What all statements of a call returned, and what the server warned of meanwhile."""

    results: list[Rows] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Call(Generic[T]):
    """Statements that are sent in one transaction, and what to make of the answer."""

    statements: Sequence[Statement]
    read: Callable[[Answer], T]


def register(
    dataset: str,
    source: Source,
    id_column: str,
    qi_columns: Sequence[str],
    sensitive_column: str,
    m: int,
    variant: str,
    max_risk: float | None,
) -> Call[DatasetInfo]:
    """Registers a table or view."""
    return _one(
        DatasetInfo.of,
        "SELECT * FROM mdistinct_register(%s::name, %s::regclass, %s::name, %s::name[],"
        " %s::name, %s, %s, %s)",
        dataset,
        relation(source),
        id_column,
        list(qi_columns),
        sensitive_column,
        m,
        variant,
        max_risk,
    )


def alter(
    dataset: str,
    source: Source | None,
    qi_columns: Sequence[str] | None,
    m: int | None,
    variant: str | None,
    max_risk: float | None,
) -> Call[DatasetInfo]:
    """Changes what a dataset was registered with."""
    return _one(
        DatasetInfo.of,
        "SELECT * FROM mdistinct_alter(%s::name, %s::regclass, %s::name[], %s::int, %s::text,"
        " %s::float8)",
        dataset,
        None if source is None else relation(source),
        None if qi_columns is None else list(qi_columns),
        m,
        variant,
        max_risk,
    )


def datasets(dataset: str | None = None) -> Call[list[DatasetInfo]]:
    """Reads the catalog: one dataset, or all."""
    return _all(
        DatasetInfo.of,
        "SELECT * FROM mdistinct.datasets AS d"
        " WHERE d.dataset = %(dataset)s::name OR %(dataset)s::name IS NULL ORDER BY d.dataset",
        {"dataset": dataset},
    )


def allow_update(dataset: str, old_value: str, new_values: Targets) -> Call[None]:
    """Declares what a value may become."""
    probabilities = list(new_values.values()) if isinstance(new_values, Mapping) else None
    return _nothing(
        "SELECT mdistinct_allow_update(%s::name, %s, %s::text[], %s::float8[])",
        dataset,
        old_value,
        list(new_values),
        probabilities,
    )


def load_updates(dataset: str, model: Model) -> Call[int]:
    """Declares a whole model, and returns the number of its updates."""
    load: LiteralString = "SELECT mdistinct_load_updates(%s::name, %s::regclass) AS updates"
    if isinstance(model, str | Table | type):
        return _one(lambda row: int(row["updates"]), load, dataset, relation(model))
    # A temporary table carries what is not in the database; it goes again at once, for the
    # caller's own transaction may load another model.
    statements = (
        Statement(
            "CREATE TEMPORARY TABLE mdistinct_model"
            " (old_value text, new_value text, probability float8)"
        ),
        Statement(
            "INSERT INTO pg_temp.mdistinct_model"
            " SELECT * FROM unnest(%s::text[], %s::text[], %s::float8[])",
            [list(column) for column in zip(*_updates(model), strict=True)] or [[], [], []],
        ),
        Statement(load, [dataset, "pg_temp.mdistinct_model"]),
        Statement("DROP TABLE pg_temp.mdistinct_model"),
    )
    return Call(statements, lambda answer: int(answer.results[2].one()["updates"]))


def learn_updates(
    dataset: str, source: Source, id: str, order: str, value: str, options: Mapping[str, Any]
) -> Call[LearnedUpdates]:
    """Learns a model from a history."""
    query = sql.SQL(
        "SELECT * FROM mdistinct_learn_updates(%s::name, %s::regclass, %s::name, %s::name,"
        " %s::name{})"
    ).format(sql.SQL("").join(map(_named, options)))
    parameters = [dataset, relation(source), id, order, value, *options.values()]
    return Call(
        [Statement(query, parameters)],
        lambda answer: LearnedUpdates(
            [Transition.of(row) for row in answer.results[0]], answer.warnings
        ),
    )


def publish(dataset: str, *, wait: bool) -> Call[Publication]:
    """Publishes the source as it is now."""
    return _one(
        Publication.of, "SELECT * FROM mdistinct_publish(%s::name, wait => %s)", dataset, wait
    )


def preview(dataset: str, *, wait: bool) -> Call[Publication]:
    """What publishing would return."""
    return _one(
        Publication.of, "SELECT * FROM mdistinct_preview(%s::name, wait => %s)", dataset, wait
    )


def verify(dataset: str) -> Call[list[Violation]]:
    """Where the history breaks the principle."""
    return _all(Violation.of, "SELECT * FROM mdistinct_verify(%s::name)", [dataset])


def risk(dataset: str, at_release: int | None) -> Call[list[VersionRisk]]:
    """The risk of every version of every record."""
    return Call(
        [
            Statement(
                "SELECT record_id, release, risk, candidates"
                " FROM mdistinct_risk(%s::name, %s::int)",
                [dataset, at_release],
            )
        ],
        lambda answer: [VersionRisk(*row) for row in answer.results[0].rows],
    )


def republication_risk(dataset: str) -> Call[float | None]:
    """The highest risk of any version after any release."""
    return _one(
        lambda row: None if row["risk"] is None else float(row["risk"]),
        "SELECT mdistinct_republication_risk(%s::name) AS risk",
        dataset,
    )


def sug(dataset: str, record_id: str, *, true_path: bool) -> Call[UpdateGraphPicture]:
    """The update graph of one record."""
    return Call(
        [
            Statement(
                "SELECT * FROM mdistinct_sug(%s::name, %s::text, true_path => %s)",
                [dataset, record_id, true_path],
            )
        ],
        lambda answer: UpdateGraphPicture.of(dataset, record_id, answer.results[0]),
    )


def releases(dataset: str | None) -> Call[list[ReleaseInfo]]:
    """What has been published, of one dataset or of all."""
    return _all(
        ReleaseInfo.of,
        "SELECT * FROM mdistinct_published.releases AS r"
        " WHERE r.dataset = %(dataset)s::name OR %(dataset)s::name IS NULL"
        " ORDER BY r.dataset, r.release",
        {"dataset": dataset},
    )


def release(dataset: str, number: int | None) -> Call[tuple[int, list[PublishedColumn]]]:
    """The number of a release, by default the latest, and its columns."""
    statements = (
        Statement(
            "SELECT coalesce(%(number)s::int, max(r.release), 0) AS number"
            " FROM mdistinct_published.releases AS r WHERE r.dataset = %(dataset)s::name",
            {"number": number, "dataset": dataset},
        ),
        Statement(
            "SELECT a.attname::text AS name, pg_catalog.format_type(a.atttypid, -1) AS type"
            " FROM pg_catalog.pg_attribute AS a"
            " WHERE a.attrelid = %s::regclass AND a.attnum > 0 AND NOT a.attisdropped"
            " ORDER BY a.attnum",
            [_quoted(PUBLISHED, dataset)],
        ),
    )
    return Call(
        statements,
        lambda answer: (
            answer.results[0].one()["number"],
            [PublishedColumn(**row) for row in answer.results[1]],
        ),
    )


def release_rows(dataset: str, number: int) -> Call[list[tuple[Any, ...]]]:
    """The rows of a release in the order of their groups."""
    query = sql.SQL("SELECT * FROM {} AS v WHERE v.release = %s ORDER BY v.gid")
    return Call(
        [Statement(query.format(sql.Identifier(PUBLISHED, dataset)), [number])],
        lambda answer: answer.results[0].rows,
    )


def release_counterfeits(dataset: str, number: int) -> Call[dict[int, int]]:
    """How many rows of each group are not real."""
    query = sql.SQL("SELECT v.gid, v.count FROM {} AS v WHERE v.release = %s ORDER BY v.gid")
    view = sql.Identifier(PUBLISHED, f"{dataset}_counterfeits")
    return Call(
        [Statement(query.format(view), [number])],
        lambda answer: dict(answer.results[0].rows),
    )


def estimate(
    dataset: str, release: int | None, where: Mapping[str, Any], measure: str | None
) -> Call[Estimate]:
    """Estimates a count, a sum and an average from a release."""
    return _one(
        Estimate.of,
        "SELECT * FROM mdistinct_estimate(%s::name, %s::int, %s::jsonb, %s::name)",
        dataset,
        release,
        json.dumps(where, default=str),
        measure,
    )


def index(dataset: str) -> Call[int]:
    """Makes indexes for estimates."""
    return _one(
        lambda row: int(row["releases"]), "SELECT mdistinct_index(%s::name) AS releases", dataset
    )


def schedule(dataset: str, cron: str) -> Call[datetime]:
    """Lets pg_cron publish."""
    return _one(
        lambda row: row["first_run"],
        "SELECT mdistinct_schedule(%s::name, %s) AS first_run",
        dataset,
        cron,
    )


def unschedule(dataset: str) -> Call[None]:
    """Ends a schedule."""
    return _nothing("SELECT mdistinct_unschedule(%s::name)", dataset)


def drop(dataset: str) -> Call[None]:
    """Forgets a dataset."""
    return _nothing("SELECT mdistinct_drop(%s::name)", dataset)


def relation(source: Source) -> str:
    """A table as `regclass` reads it."""
    if isinstance(source, str):
        return source
    table = source if isinstance(source, Table) else source.__table__
    return _quoted(*filter(None, (table.schema, table.name)))


def _quoted(*names: str) -> str:
    return sql.Identifier(*names).as_string(None)


def _updates(model: Mapping[str, Targets] | Frame) -> list[tuple[str, str, float | None]]:
    """A model as rows: old value, new value, probability or None."""
    if isinstance(model, Mapping):
        return [
            (old, new, targets[new] if isinstance(targets, Mapping) else None)
            for old, targets in model.items()
            for new in targets
        ]
    return [
        (row["old_value"], row["new_value"], _known(row.get("probability")))
        for row in _records(model)
    ]


def _records(frame: Any) -> Iterable[Mapping[str, Any]]:
    """The rows of a frame of pandas, Arrow or Polars."""
    if hasattr(frame, "to_pylist"):
        return frame.to_pylist()  # type: ignore[no-any-return]
    if hasattr(frame, "to_dicts"):
        return frame.to_dicts()  # type: ignore[no-any-return]
    return frame.to_dict("records")  # type: ignore[no-any-return]


def _known(probability: float | None) -> float | None:
    # A frame of numbers has NaN for what is missing.
    return None if probability is None or probability != probability else float(probability)


def _named(option: str) -> sql.Composed:
    return sql.SQL(", {} => %s").format(sql.Identifier(option))


def _one(read: Callable[[dict[str, Any]], T], query: LiteralString, *parameters: Any) -> Call[T]:
    return Call([Statement(query, parameters)], lambda answer: read(answer.results[0].one()))


def _all(
    read: Callable[[dict[str, Any]], T],
    query: LiteralString,
    parameters: Sequence[Any] | Mapping[str, Any],
) -> Call[list[T]]:
    return Call(
        [Statement(query, parameters)], lambda answer: [read(row) for row in answer.results[0]]
    )


def _nothing(query: LiteralString, *parameters: Any) -> Call[None]:
    return Call([Statement(query, parameters)], lambda _: None)
