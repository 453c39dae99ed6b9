"""`AsyncClient` and what it gives: the client for asyncio."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from pg_mdistinct.client import calls, frames
from pg_mdistinct.client.async_connections import AsyncDatabase, AsyncSender
from pg_mdistinct.client.calls import Model, Source, Targets
from pg_mdistinct.client.dataset import found
from pg_mdistinct.client.progress import OnProgress
from pg_mdistinct.client.release import DescribedRelease
from pg_mdistinct.client.results import (
    DatasetInfo,
    Estimate,
    LearnedUpdates,
    Publication,
    PublishedRow,
    ReleaseInfo,
    VersionRisk,
    Violation,
)
from pg_mdistinct.picture import UpdateGraphPicture

if TYPE_CHECKING:
    import pandas
    import pyarrow


@dataclass(frozen=True)
class AsyncRelease(DescribedRelease):
    """One release, like `Release`; what reads rows is awaited, and reads them each time."""

    _sender: AsyncSender = field(repr=False, compare=False)

    async def _rows(self) -> list[tuple[Any, ...]]:
        return await self._sender.send(calls.release_rows(self.dataset, self.release))

    async def rows(self) -> list[PublishedRow]:
        """The rows, in the order of their groups."""
        return self._as_rows(await self._rows())

    async def counterfeits(self) -> dict[int, int]:
        """How many rows are not real, of each group that has such rows."""
        return await self._sender.send(calls.release_counterfeits(self.dataset, self.release))

    async def to_pandas(self) -> pandas.DataFrame:
        """The rows as a data frame of pandas: ranges are intervals, sets are lists."""
        return frames.to_pandas(self.columns, await self._rows())

    async def to_arrow(self) -> pyarrow.Table:
        """The rows as an Arrow table: ranges are structs of lower and upper, sets are lists."""
        return frames.to_arrow(self.columns, await self._rows())


class AsyncDataset:
    """A dataset of one database, like `Dataset`: everything that asks the database is awaited."""

    def __init__(self, sender: AsyncSender, name: str) -> None:
        self.name = name
        self._sender = sender

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}>"

    async def info(self) -> DatasetInfo:
        """The dataset's row of the catalog, which admins may read."""
        return found(self.name, await self._sender.send(calls.datasets(self.name)))

    async def allow_update(self, old_value: str, new_values: Targets) -> None:
        """Declares what `old_value` may become by the next release."""
        await self._sender.send(calls.allow_update(self.name, old_value, new_values))

    async def load_updates(self, model: Model) -> int:
        """Declares a whole update model, from a table, a dictionary of old values or a data frame.

        Returns the number of updates.
        """
        return await self._sender.send(calls.load_updates(self.name, model))

    async def learn_updates(
        self, source: Source, id: str, order: str, value: str, **options: Any
    ) -> LearnedUpdates:
        """Estimates the update model from a history; options are those of the SQL function."""
        return await self._sender.send(
            calls.learn_updates(self.name, source, id, order, value, options)
        )

    async def publish(
        self, *, wait: bool = False, on_progress: OnProgress | None = None
    ) -> Publication:
        """Publishes the source as it is now; `wait` for a publication that is running."""
        return await self._sender.send(calls.publish(self.name, wait=wait), on_progress)

    async def preview(
        self, *, wait: bool = False, on_progress: OnProgress | None = None
    ) -> Publication:
        """What `publish` would return; writes nothing."""
        return await self._sender.send(calls.preview(self.name, wait=wait), on_progress)

    async def verify(self, *, on_progress: OnProgress | None = None) -> list[Violation]:
        """Where the history breaks the principle; an empty list: nowhere."""
        return await self._sender.send(calls.verify(self.name), on_progress)

    async def risk(
        self, at_release: int | None = None, *, on_progress: OnProgress | None = None
    ) -> list[VersionRisk]:
        """The risk of every version of every record after a release, by default the latest."""
        return await self._sender.send(calls.risk(self.name, at_release), on_progress)

    async def republication_risk(self, *, on_progress: OnProgress | None = None) -> float | None:
        """The highest risk of any version after any release; None before the first one."""
        return await self._sender.send(calls.republication_risk(self.name), on_progress)

    async def sug(self, record_id: str, *, true_path: bool = False) -> UpdateGraphPicture:
        """The update graph of one record, to be drawn; admins may ask for the true path."""
        return await self._sender.send(calls.sug(self.name, record_id, true_path=true_path))

    async def releases(self) -> list[ReleaseInfo]:
        """What has been published."""
        return await self._sender.send(calls.releases(self.name))

    async def release(self, number: int | None = None) -> AsyncRelease:
        """One release, by default the latest."""
        chosen, columns = await self._sender.send(calls.release(self.name, number))
        return AsyncRelease(self.name, chosen, tuple(columns), self._sender)

    async def estimate(
        self,
        where: Mapping[str, Any] | None = None,
        *,
        measure: str | None = None,
        release: int | None = None,
    ) -> Estimate:
        """How many records of a release meet a predicate, and sum and average of a QI column."""
        return await self._sender.send(calls.estimate(self.name, release, where or {}, measure))

    async def index(self) -> int:
        """Makes indexes for estimates on the releases that have none; returns their number."""
        return await self._sender.send(calls.index(self.name))

    async def schedule(self, cron: str) -> datetime:
        """Lets pg_cron publish the dataset; returns the first run."""
        return await self._sender.send(calls.schedule(self.name, cron))

    async def unschedule(self) -> None:
        """Ends what `schedule` began."""
        await self._sender.send(calls.unschedule(self.name))

    async def alter(
        self,
        *,
        source: Source | None = None,
        qi_columns: Sequence[str] | None = None,
        m: int | None = None,
        variant: str | None = None,
        max_risk: float | None = None,
    ) -> DatasetInfo:
        """Changes what was registered, from the next release on; what is None stays."""
        return await self._sender.send(
            calls.alter(self.name, source, qi_columns, m, variant, max_risk)
        )

    async def drop(self) -> None:
        """Forgets the dataset and its releases; its source stays."""
        await self._sender.send(calls.drop(self.name))


class AsyncClient:
    """Registers, publishes and reads datasets of one database, like `Client`, from asyncio.

    Takes a DSN, or an async engine, connection or session of SQLAlchemy, or an `AsyncConnection`
    of psycopg.
    """

    def __init__(self, database: AsyncDatabase) -> None:
        self._sender = AsyncSender(database)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes the connections, unless they were given."""
        await self._sender.close()

    def dataset(self, name: str) -> AsyncDataset:
        """A dataset to work with."""
        return AsyncDataset(self._sender, name)

    async def datasets(self) -> list[DatasetInfo]:
        """All that are registered; for admins."""
        return await self._sender.send(calls.datasets())

    async def register(
        self,
        dataset: str,
        source: Source,
        id_column: str,
        qi_columns: Sequence[str],
        sensitive_column: str,
        m: int,
        variant: str = "m-distinct",
        max_risk: float | None = None,
    ) -> AsyncDataset:
        """Registers a table or view (`source` as in SQL: `schema.table`) as a dataset."""
        await self._sender.send(
            calls.register(
                dataset, source, id_column, qi_columns, sensitive_column, m, variant, max_risk
            )
        )
        return self.dataset(dataset)

    async def releases(self, dataset: str | None = None) -> list[ReleaseInfo]:
        """What has been published, of one dataset or of all."""
        return await self._sender.send(calls.releases(dataset))
