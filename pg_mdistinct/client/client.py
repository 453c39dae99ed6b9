"""`Client`: the calls of the SQL interface as methods."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, LiteralString, Self

import psycopg
from psycopg import sql
from psycopg.rows import dict_row
from sqlalchemy import Engine, create_engine

from pg_mdistinct.client.errors import MdistinctSqlError, translated
from pg_mdistinct.client.results import (
    Dataset,
    Publication,
    PublishedRow,
    Release,
    ReleaseInfo,
    VersionRisk,
    Violation,
)
from pg_mdistinct.picture import UpdateGraphPicture

Targets = Sequence[str] | Mapping[str, float]
"""What a value may become: equally likely, or with a probability each."""


class Client:
    """Registers, publishes and reads datasets of one database.

    Takes a DSN or an SQLAlchemy engine of the psycopg driver. Every call is one transaction.
    """

    def __init__(self, database: str | Engine) -> None:
        if isinstance(database, Engine):
            if database.driver != "psycopg":
                raise ValueError(f"the engine must use psycopg 3, not {database.driver}")
            self._engine, self._owns_engine = database, False
        else:
            self._engine, self._owns_engine = _engine(database), True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connections, unless they belong to an engine that was given."""
        if self._owns_engine:
            self._engine.dispose()

    def register(
        self,
        dataset: str,
        source: str,
        id_column: str,
        qi_columns: Sequence[str],
        sensitive_column: str,
        m: int,
        variant: str = "m-distinct",
        max_risk: float | None = None,
    ) -> Dataset:
        """Registers a table or view (`source` as in SQL: `schema.table`) as a dataset."""
        row = self._one(
            "SELECT * FROM mdistinct_register(%s::name, %s::regclass, %s::name, %s::name[],"
            " %s::name, %s, %s, %s)",
            [
                dataset,
                source,
                id_column,
                list(qi_columns),
                sensitive_column,
                m,
                variant,
                max_risk,
            ],
        )
        return Dataset.of(row)

    def allow_update(self, dataset: str, old_value: str, new_values: Targets) -> None:
        """Declares what `old_value` may become by the next release."""
        with self._cursor() as cursor:
            cursor.execute(
                "SELECT mdistinct_allow_update(%s::name, %s, %s::text[], %s::float8[])",
                [dataset, old_value, list(new_values), _probabilities(new_values)],
            )

    def load_updates(self, dataset: str, source: str | Mapping[str, Targets]) -> None:
        """Declares a whole update model, from a table or from a dictionary of old values."""
        with self._cursor() as cursor:
            if not isinstance(source, str):
                source = _write_model(cursor, source)
            cursor.execute(
                "SELECT mdistinct_load_updates(%s::name, %s::regclass)", [dataset, source]
            )

    def publish(self, dataset: str, *, wait: bool = False) -> Publication:
        """Publishes the source as it is now; `wait` for a publication that is running."""
        return Publication.of(
            self._one("SELECT * FROM mdistinct_publish(%s::name, wait => %s)", [dataset, wait])
        )

    def preview(self, dataset: str) -> Publication:
        """What `publish` would return; writes nothing."""
        return Publication.of(self._one("SELECT * FROM mdistinct_preview(%s::name)", [dataset]))

    def verify(self, dataset: str) -> list[Violation]:
        """Where the history breaks the principle; an empty list: nowhere."""
        rows = self._all("SELECT * FROM mdistinct_verify(%s::name)", [dataset])
        return [Violation.of(row) for row in rows]

    def risk(self, dataset: str, at_release: int | None = None) -> list[VersionRisk]:
        """The risk of every version of every record after a release, by default the latest."""
        rows = self._all(
            "SELECT record_id, release, risk, candidates FROM mdistinct_risk(%s::name, %s::int)",
            [dataset, at_release],
        )
        return [VersionRisk(**row) for row in rows]

    def republication_risk(self, dataset: str) -> float | None:
        """The highest risk of any version after any release; None before the first one."""
        row = self._one("SELECT mdistinct_republication_risk(%s::name) AS risk", [dataset])
        return None if row["risk"] is None else float(row["risk"])

    def sug(self, dataset: str, record_id: str, *, true_path: bool = False) -> UpdateGraphPicture:
        """The update graph of one record, to be drawn; admins may ask for the true path."""
        rows = self._all(
            "SELECT * FROM mdistinct_sug(%s::name, %s::text, true_path => %s)",
            [dataset, record_id, true_path],
        )
        return UpdateGraphPicture.of(dataset, record_id, rows)

    def releases(self, dataset: str | None = None) -> list[ReleaseInfo]:
        """What has been published, of one dataset or of all."""
        rows = self._all(
            "SELECT * FROM mdistinct_published.releases"
            " WHERE dataset = %(dataset)s::name OR %(dataset)s::name IS NULL"
            " ORDER BY dataset, release",
            {"dataset": dataset},
        )
        return [ReleaseInfo.of(row) for row in rows]

    def release(self, dataset: str, number: int | None = None) -> Release:
        """The rows of one release, by default the latest, in the order of their groups."""
        if number is None:
            number = max((info.release for info in self.releases(dataset)), default=0)
        view = sql.Identifier("mdistinct_published", dataset)
        counts = sql.Identifier("mdistinct_published", f"{dataset}_counterfeits")
        query = sql.SQL("SELECT * FROM {} WHERE release = %s ORDER BY gid").format(view)
        with self._cursor() as cursor:
            rows = cursor.execute(query, [number]).fetchall()
            columns = [column.name for column in cursor.description or ()]
            found = cursor.execute(
                sql.SQL("SELECT gid, count FROM {} WHERE release = %s ORDER BY gid").format(counts),
                [number],
            ).fetchall()
        *qi, sensitive = columns[2:]
        return Release(
            dataset=dataset,
            release=number,
            sensitive_column=sensitive,
            rows=[
                PublishedRow(row["gid"], {name: row[name] for name in qi}, row[sensitive])
                for row in rows
            ],
            counterfeits={row["gid"]: row["count"] for row in found},
        )

    def drop(self, dataset: str) -> None:
        """Forgets the dataset and its releases; its source stays."""
        with self._cursor() as cursor:
            cursor.execute("SELECT mdistinct_drop(%s::name)", [dataset])

    def _one(self, query: LiteralString, parameters: Sequence[Any]) -> dict[str, Any]:
        rows = self._all(query, parameters)
        if len(rows) != 1:
            raise MdistinctSqlError(f"one row was expected, not {len(rows)}: {query}")
        return rows[0]

    def _all(
        self, query: LiteralString, parameters: Sequence[Any] | Mapping[str, Any]
    ) -> list[dict[str, Any]]:
        with self._cursor() as cursor:
            return cursor.execute(query, parameters).fetchall()

    @contextmanager
    def _cursor(self) -> Iterator[psycopg.Cursor[dict[str, Any]]]:
        """A cursor of psycopg's own, inside a transaction of the engine."""
        with translated(), self._engine.begin() as connection:
            driver = connection.connection.driver_connection
            assert isinstance(driver, psycopg.Connection)
            with driver.cursor(row_factory=dict_row) as cursor:
                yield cursor


def _engine(dsn: str) -> Engine:
    """An engine that connects as libpq does, whichever way the DSN is spelt."""
    plain = dsn.replace("postgresql+psycopg://", "postgresql://", 1)
    return create_engine(
        "postgresql+psycopg://",
        creator=lambda: psycopg.connect(plain, application_name="pg-mdistinct"),
        pool_pre_ping=True,
    )


def _probabilities(targets: Targets) -> list[float] | None:
    return list(targets.values()) if isinstance(targets, Mapping) else None


def _write_model(cursor: psycopg.Cursor[dict[str, Any]], model: Mapping[str, Targets]) -> str:
    """Puts the model where `mdistinct_load_updates` can read it, and returns the table's name."""
    cursor.execute(
        "CREATE TEMPORARY TABLE mdistinct_model"
        " (old_value text, new_value text, probability float8) ON COMMIT DROP"
    )
    rows = [
        (old, new, targets[new] if isinstance(targets, Mapping) else None)
        for old, targets in model.items()
        for new in targets
    ]
    cursor.executemany("INSERT INTO pg_temp.mdistinct_model VALUES (%s, %s, %s)", rows)
    return "pg_temp.mdistinct_model"
