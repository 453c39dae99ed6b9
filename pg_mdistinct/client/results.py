"""What the calls return, one dataclass for each kind of row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, Self


class _Row:
    """A dataclass that takes from a row the columns that it knows."""

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Self:
        """Columns that a later version of the plugin adds are left aside."""
        names = [field.name for field in fields(cls)]  # type: ignore[arg-type]
        return cls(**{name: row[name] for name in names})


@dataclass(frozen=True)
class DatasetInfo(_Row):
    """A registered dataset, as the catalog has it."""

    dataset: str
    source_schema: str
    source_table: str
    id_column: str
    qi_columns: list[str]
    sensitive_column: str
    m: int
    variant: str
    max_risk: float | None
    last_release: int


@dataclass(frozen=True)
class Publication(_Row):
    """The figures of one publication; `max_risk` is None where it was not measured."""

    dataset: str
    release: int
    records: int
    groups: int
    counterfeits: int
    withheld: int
    ncp: float
    max_risk: float | None
    seconds: float


@dataclass(frozen=True)
class Violation(_Row):
    """One place where the history breaks the principle."""

    release: int
    gid: int | None
    record_id: str | None
    rule: str
    detail: str | None


@dataclass(frozen=True, slots=True)
class VersionRisk(_Row):
    """r_n(t_i): how sure the adversary can be of one version of one record."""

    record_id: str
    release: int
    risk: float
    candidates: int


@dataclass(frozen=True)
class ReleaseInfo(_Row):
    """One line of the list of releases."""

    dataset: str
    release: int
    published_at: datetime
    m: int
    variant: str
    rows: int
    groups: int
    counterfeits: int


@dataclass(frozen=True, slots=True)
class Transition(_Row):
    """How often one value followed another, and what the model makes of it.

    `note` is "rare", "unseen" (but possible), "impossible", or None.
    """

    old_value: str
    new_value: str
    seen: int
    probability: float
    note: str | None


@dataclass(frozen=True)
class LearnedUpdates:
    """An update model learnt from a history; `warnings` tell where data are thin."""

    transitions: list[Transition]
    warnings: list[str]


@dataclass(frozen=True)
class Estimate(_Row):
    """An answer from a release, with standard errors and bounds that hold for certain.

    Sum and average are None unless a column was to be measured.
    """

    count: float
    count_error: float
    at_least: int
    at_most: int
    sum: float | None
    sum_error: float | None
    avg: float | None
    avg_error: float | None


@dataclass(frozen=True)
class PublishedColumn:
    """A column of a release, with PostgreSQL's name of its type."""

    name: str
    type: str


@dataclass(frozen=True)
class PublishedRow:
    """One row of a release, as a reader sees it."""

    gid: int
    qi: dict[str, Any]
    sensitive: Any
