"""One release: as something to select from, as rows, as a data frame."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import sqlalchemy
from sqlalchemy.dialects import postgresql
from sqlalchemy.types import TypeEngine

from pg_mdistinct.client import calls, frames
from pg_mdistinct.client.connections import Sender
from pg_mdistinct.client.results import PublishedColumn, PublishedRow

if TYPE_CHECKING:
    import pandas
    import pyarrow

_TYPES: dict[str, TypeEngine[Any]] = {
    "smallint": sqlalchemy.SmallInteger(),
    "integer": sqlalchemy.Integer(),
    "bigint": sqlalchemy.BigInteger(),
    "numeric": sqlalchemy.Numeric(),
    "real": sqlalchemy.REAL(),
    "double precision": sqlalchemy.Double(),
    "boolean": sqlalchemy.Boolean(),
    "text": sqlalchemy.Text(),
    "character varying": sqlalchemy.String(),
    "date": sqlalchemy.Date(),
    "timestamp without time zone": sqlalchemy.DateTime(),
    "timestamp with time zone": sqlalchemy.DateTime(timezone=True),
    "uuid": sqlalchemy.Uuid(),
    "int4range": postgresql.INT4RANGE(),
    "int8range": postgresql.INT8RANGE(),
    "numrange": postgresql.NUMRANGE(),
    "daterange": postgresql.DATERANGE(),
    "tsrange": postgresql.TSRANGE(),
    "tstzrange": postgresql.TSTZRANGE(),
    "text[]": postgresql.ARRAY(sqlalchemy.Text()),
}


@dataclass(frozen=True)
class DescribedRelease:
    """What is known of a release without reading its rows."""

    dataset: str
    release: int
    columns: tuple[PublishedColumn, ...]

    @property
    def sensitive_column(self) -> str:
        """The column that is protected; it comes last."""
        return self.columns[-1].name

    @property
    def qi_columns(self) -> tuple[str, ...]:
        """The generalized columns."""
        return tuple(column.name for column in self.columns[2:-1])

    @cached_property
    def selectable(self) -> sqlalchemy.Select[Any]:
        """The rows for SQLAlchemy, with the types of their columns: ranges, arrays."""
        columns = (
            sqlalchemy.column(column.name, _TYPES.get(column.type, sqlalchemy.types.NullType()))
            for column in self.columns
        )
        table = sqlalchemy.table(self.dataset, *columns, schema=calls.PUBLISHED)
        return sqlalchemy.select(table).where(table.c.release == self.release)

    def _as_rows(self, rows: Sequence[tuple[Any, ...]]) -> list[PublishedRow]:
        return [
            PublishedRow(gid, dict(zip(self.qi_columns, qi, strict=True)), sensitive)
            for _, gid, *qi, sensitive in rows
        ]


@dataclass(frozen=True)
class Release(DescribedRelease):
    """All that was published in one release; rows are read when they are first asked for."""

    _sender: Sender = field(repr=False, compare=False)

    @cached_property
    def _rows(self) -> list[tuple[Any, ...]]:
        return self._sender.send(calls.release_rows(self.dataset, self.release))

    @cached_property
    def rows(self) -> list[PublishedRow]:
        """The rows, in the order of their groups."""
        return self._as_rows(self._rows)

    @cached_property
    def counterfeits(self) -> dict[int, int]:
        """How many rows are not real, of each group that has such rows."""
        return self._sender.send(calls.release_counterfeits(self.dataset, self.release))

    def to_pandas(self) -> pandas.DataFrame:
        """The rows as a data frame of pandas: ranges are intervals, sets are lists."""
        return frames.to_pandas(self.columns, self._rows)

    def to_arrow(self) -> pyarrow.Table:
        """The rows as an Arrow table: ranges are structs of lower and upper, sets are lists."""
        return frames.to_arrow(self.columns, self._rows)
