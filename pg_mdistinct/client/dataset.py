"""A dataset to work with: the calls of the SQL interface as methods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cached_property
from typing import Any

from pg_mdistinct.client import calls
from pg_mdistinct.client.calls import Model, Source, Targets
from pg_mdistinct.client.connections import Sender
from pg_mdistinct.client.errors import UnknownDatasetError
from pg_mdistinct.client.progress import OnProgress
from pg_mdistinct.client.release import Release
from pg_mdistinct.client.results import (
    DatasetInfo,
    Estimate,
    LearnedUpdates,
    Publication,
    ReleaseInfo,
    VersionRisk,
    Violation,
)
from pg_mdistinct.picture import UpdateGraphPicture


class Dataset:
    """A dataset of one database; made without asking whether it exists.

    What the catalog knows of it (`m`, `qi_columns`, ...) is read when it is first asked for.
    """

    def __init__(self, sender: Sender, name: str) -> None:
        self.name = name
        self._sender = sender

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}>"

    @cached_property
    def info(self) -> DatasetInfo:
        """The dataset's row of the catalog, which admins may read."""
        return found(self.name, self._sender.send(calls.datasets(self.name)))

    @property
    def dataset(self) -> str:
        """Its name, as the columns of the SQL interface call it."""
        return self.name

    @property
    def id_column(self) -> str:
        """The column that tells records apart."""
        return self.info.id_column

    @property
    def qi_columns(self) -> list[str]:
        """The quasi-identifying columns."""
        return self.info.qi_columns

    @property
    def sensitive_column(self) -> str:
        """The column that is protected."""
        return self.info.sensitive_column

    @property
    def m(self) -> int:
        """The number of distinct values that each group has at least."""
        return self.info.m

    @property
    def variant(self) -> str:
        """The variant of the principle."""
        return self.info.variant

    @property
    def max_risk(self) -> float | None:
        """The bound on the adversary's best guess, if there is one."""
        return self.info.max_risk

    def allow_update(self, old_value: str, new_values: Targets) -> None:
        """Declares what `old_value` may become by the next release."""
        self._sender.send(calls.allow_update(self.name, old_value, new_values))

    def load_updates(self, model: Model) -> int:
        """Declares a whole update model, from a table, a dictionary of old values or a data frame.

        Returns the number of updates.
        """
        return self._sender.send(calls.load_updates(self.name, model))

    def learn_updates(
        self, source: Source, id: str, order: str, value: str, **options: Any
    ) -> LearnedUpdates:
        """Estimates the update model from a history; options are those of the SQL function."""
        return self._sender.send(calls.learn_updates(self.name, source, id, order, value, options))

    def publish(self, *, wait: bool = False, on_progress: OnProgress | None = None) -> Publication:
        """Publishes the source as it is now; `wait` for a publication that is running."""
        return self._sender.send(calls.publish(self.name, wait=wait), on_progress)

    def preview(self, *, wait: bool = False, on_progress: OnProgress | None = None) -> Publication:
        """What `publish` would return; writes nothing."""
        return self._sender.send(calls.preview(self.name, wait=wait), on_progress)

    def verify(self, *, on_progress: OnProgress | None = None) -> list[Violation]:
        """Where the history breaks the principle; an empty list: nowhere."""
        return self._sender.send(calls.verify(self.name), on_progress)

    def risk(
        self, at_release: int | None = None, *, on_progress: OnProgress | None = None
    ) -> list[VersionRisk]:
        """The risk of every version of every record after a release, by default the latest."""
        return self._sender.send(calls.risk(self.name, at_release), on_progress)

    def republication_risk(self, *, on_progress: OnProgress | None = None) -> float | None:
        """The highest risk of any version after any release; None before the first one."""
        return self._sender.send(calls.republication_risk(self.name), on_progress)

    def sug(self, record_id: str, *, true_path: bool = False) -> UpdateGraphPicture:
        """The update graph of one record, to be drawn; admins may ask for the true path."""
        return self._sender.send(calls.sug(self.name, record_id, true_path=true_path))

    def releases(self) -> list[ReleaseInfo]:
        """What has been published."""
        return self._sender.send(calls.releases(self.name))

    def release(self, number: int | None = None) -> Release:
        """One release, by default the latest."""
        chosen, columns = self._sender.send(calls.release(self.name, number))
        return Release(self.name, chosen, tuple(columns), self._sender)

    def estimate(
        self,
        where: Mapping[str, Any] | None = None,
        *,
        measure: str | None = None,
        release: int | None = None,
    ) -> Estimate:
        """How many records of a release meet a predicate, and sum and average of a QI column."""
        return self._sender.send(calls.estimate(self.name, release, where or {}, measure))

    def index(self) -> int:
        """Makes indexes for estimates on the releases that have none; returns their number."""
        return self._sender.send(calls.index(self.name))

    def schedule(self, cron: str) -> datetime:
        """Lets pg_cron publish the dataset; returns the first run."""
        return self._sender.send(calls.schedule(self.name, cron))

    def unschedule(self) -> None:
        """Ends what `schedule` began."""
        self._sender.send(calls.unschedule(self.name))

    def alter(
        self,
        *,
        source: Source | None = None,
        qi_columns: Sequence[str] | None = None,
        m: int | None = None,
        variant: str | None = None,
        max_risk: float | None = None,
    ) -> DatasetInfo:
        """Changes what was registered, from the next release on; what is None stays."""
        self.info = self._sender.send(
            calls.alter(self.name, source, qi_columns, m, variant, max_risk)
        )
        return self.info

    def drop(self) -> None:
        """Forgets the dataset and its releases; its source stays."""
        self._sender.send(calls.drop(self.name))


def found(name: str, datasets: list[DatasetInfo]) -> DatasetInfo:
    """The only dataset of a list."""
    if not datasets:
        raise UnknownDatasetError(
            f'dataset "{name}" is not registered',
            hint="Client.datasets() lists those that are.",
            sqlstate="42704",
        )
    return datasets[0]
