"""`Client`: a database that has the plugin."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Self

from pg_mdistinct.client import calls
from pg_mdistinct.client.calls import Model, Source, Targets
from pg_mdistinct.client.connections import Database, Sender
from pg_mdistinct.client.dataset import Dataset
from pg_mdistinct.client.progress import OnProgress
from pg_mdistinct.client.release import Release
from pg_mdistinct.client.results import (
    DatasetInfo,
    Publication,
    ReleaseInfo,
    VersionRisk,
    Violation,
)
from pg_mdistinct.picture import UpdateGraphPicture


class Client:
    """Registers, publishes and reads datasets of one database.

    Takes a DSN or an SQLAlchemy engine: then every call is one transaction. Takes a connection or
    session of SQLAlchemy, or a connection of psycopg: then calls are a part of the transaction that
    is open there, and become lasting when the caller commits; one that fails undoes itself alone.
    """

    def __init__(self, database: Database) -> None:
        self._sender = Sender(database)

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
        """Closes the connections, unless they were given."""
        self._sender.close()

    def dataset(self, name: str) -> Dataset:
        """A dataset to work with."""
        return Dataset(self._sender, name)

    def datasets(self) -> list[DatasetInfo]:
        """All that are registered; for admins."""
        return self._sender.send(calls.datasets())

    def register(
        self,
        dataset: str,
        source: Source,
        id_column: str,
        qi_columns: Sequence[str],
        sensitive_column: str,
        m: int,
        variant: str = "m-distinct",
        max_risk: float | None = None,
    ) -> Dataset:
        """Registers a table or view (`source` as in SQL: `schema.table`) as a dataset."""
        info = self._sender.send(
            calls.register(
                dataset, source, id_column, qi_columns, sensitive_column, m, variant, max_risk
            )
        )
        registered = self.dataset(dataset)
        registered.info = info
        return registered

    def releases(self, dataset: str | None = None) -> list[ReleaseInfo]:
        """What has been published, of one dataset or of all."""
        return self._sender.send(calls.releases(dataset))

    def allow_update(self, dataset: str, old_value: str, new_values: Targets) -> None:
        """See `Dataset.allow_update`."""
        self.dataset(dataset).allow_update(old_value, new_values)

    def load_updates(self, dataset: str, source: Model) -> int:
        """See `Dataset.load_updates`."""
        return self.dataset(dataset).load_updates(source)

    def publish(
        self, dataset: str, *, wait: bool = False, on_progress: OnProgress | None = None
    ) -> Publication:
        """See `Dataset.publish`."""
        return self.dataset(dataset).publish(wait=wait, on_progress=on_progress)

    def preview(
        self, dataset: str, *, wait: bool = False, on_progress: OnProgress | None = None
    ) -> Publication:
        """See `Dataset.preview`."""
        return self.dataset(dataset).preview(wait=wait, on_progress=on_progress)

    def verify(self, dataset: str, *, on_progress: OnProgress | None = None) -> list[Violation]:
        """See `Dataset.verify`."""
        return self.dataset(dataset).verify(on_progress=on_progress)

    def risk(
        self,
        dataset: str,
        at_release: int | None = None,
        *,
        on_progress: OnProgress | None = None,
    ) -> list[VersionRisk]:
        """See `Dataset.risk`."""
        return self.dataset(dataset).risk(at_release, on_progress=on_progress)

    def republication_risk(
        self, dataset: str, *, on_progress: OnProgress | None = None
    ) -> float | None:
        """See `Dataset.republication_risk`."""
        return self.dataset(dataset).republication_risk(on_progress=on_progress)

    def sug(self, dataset: str, record_id: str, *, true_path: bool = False) -> UpdateGraphPicture:
        """See `Dataset.sug`."""
        return self.dataset(dataset).sug(record_id, true_path=true_path)

    def release(self, dataset: str, number: int | None = None) -> Release:
        """See `Dataset.release`."""
        return self.dataset(dataset).release(number)

    def drop(self, dataset: str) -> None:
        """See `Dataset.drop`."""
        self.dataset(dataset).drop()
