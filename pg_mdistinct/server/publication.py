"""The flow of a publication: lock, read, plan, write, in one transaction."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from pg_mdistinct.core.errors import MdistinctError
from pg_mdistinct.core.model import UpdateModel
from pg_mdistinct.core.publication import Release, check_updates, plan_release
from pg_mdistinct.core.snapshot import Snapshot
from pg_mdistinct.server import catalog, reading, source, updates, validation, writing
from pg_mdistinct.server.catalog import Dataset
from pg_mdistinct.server.errors import entry_point
from pg_mdistinct.server.plpython import Plpy, Row, run
from pg_mdistinct.server.progress import Progress
from pg_mdistinct.server.reading import ReadColumn
from pg_mdistinct.server.relations import relations_of

TRIAL_TABLE = "mdistinct_snapshot"

T = TypeVar("T")


@dataclass(frozen=True)
class Prepared:
    """All that a release is planned from."""

    dataset: Dataset
    model: UpdateModel
    snapshot: Snapshot
    columns: list[ReadColumn]

    def plan(self, plpy: Plpy) -> Release:
        """Plan the release, with randomness that nobody can predict."""
        rng = np.random.default_rng(secrets.randbits(128))
        dataset = self.dataset
        return plan_release(
            self.snapshot, self.model, dataset.m, dataset.variant, rng, Progress(plpy)
        )


class _RollBack(Exception):  # noqa: N818 - no error: the way out of a trial
    """Ends a subtransaction that has only been tried."""


@entry_point
def publish(plpy: Plpy, dataset: str, wait: bool | None) -> Row:
    """Publish the next release; nothing of it is visible unless all of it is written."""
    started = time.monotonic()
    found = catalog.lock(plpy, dataset, wait=bool(wait))
    partitions = writing.create_partitions(plpy, found)
    prepared = _prepare(plpy, found, partitions["versions"])
    release = prepared.plan(plpy)
    writing.write(plpy, found, release, prepared.columns, partitions)
    row = figures(prepared, release, started)
    _record(plpy, found, row)
    return row


@entry_point
def preview(plpy: Plpy, dataset: str, wait: bool | None) -> Row:
    """Return the row that publishing would return."""
    started = time.monotonic()
    prepared = try_out(plpy, dataset, lambda prepared, _: prepared, wait=bool(wait))
    return figures(prepared, prepared.plan(plpy), started)


def try_out(plpy: Plpy, dataset: str, look: Callable[[Prepared, str], T], *, wait: bool) -> T:
    """Prepare a publication, look at it and at the snapshot's table, and leave no trace.

    Not even the lock stays: what comes after looking keeps nobody from publishing.
    """
    seen: list[T] = []
    try:
        with plpy.subtransaction():
            found = catalog.lock(plpy, dataset, wait=wait)
            versions = relations_of(plpy, found.name).versions
            plpy.execute(f"CREATE TEMPORARY TABLE {TRIAL_TABLE} (LIKE {versions})")
            table = f"pg_temp.{TRIAL_TABLE}"
            seen.append(look(_prepare(plpy, found, table), table))
            raise _RollBack
    except _RollBack:
        return seen[0]


def figures(prepared: Prepared, release: Release, started: float) -> Row:
    """Return the row that tells how a publication went."""
    return {
        "dataset": prepared.dataset.name,
        "release": prepared.dataset.last_release + 1,
        "records": len(prepared.snapshot),
        "groups": len(release.counterfeits),
        "counterfeits": int(release.counterfeits.sum()),
        "withheld": 0,
        "ncp": release.ncp,
        "max_risk": None,
        "seconds": time.monotonic() - started,
    }


def _prepare(plpy: Plpy, dataset: Dataset, table: str) -> Prepared:
    """Read the source into a table and the table into arrays, refusing what cannot be published."""
    _refuse_bound(dataset)
    source.check(plpy, dataset)
    model = updates.read_model(plpy, dataset)
    model.check(dataset.m, dataset.variant)
    staged = reading.stage(plpy, dataset, table)
    validation.check_staged(plpy, dataset, staged)
    snapshot, columns = reading.read(plpy, dataset, staged)
    validation.refuse_updates(plpy, staged, snapshot, model, check_updates(snapshot, model))
    return Prepared(dataset, model, snapshot, columns)


def _refuse_bound(dataset: Dataset) -> None:
    """Refuse to publish under a bound that is not measured: it must not be ignored in silence."""
    if dataset.max_risk is not None:
        raise MdistinctError(
            f'dataset "{dataset.name}" bounds the risk by max_risk = {dataset.max_risk:g}, '
            "which this version cannot keep",
            hint="Register the dataset without max_risk.",
            sqlstate="0A000",
        )


def _record(plpy: Plpy, dataset: Dataset, row: Row) -> None:
    counts = ("release", "records", "groups", "counterfeits", "withheld")
    shares = ("ncp", "max_risk", "seconds")
    run(
        plpy,
        "INSERT INTO mdistinct.releases (dataset, m, variant, release, records, groups,"
        " counterfeits, withheld, ncp, max_risk, seconds)"
        " VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
        ["name", "int4", "text", *["int4"] * len(counts), *["float8"] * len(shares)],
        [dataset.name, dataset.m, dataset.variant, *(row[name] for name in (*counts, *shares))],
    )
    run(
        plpy,
        "UPDATE mdistinct.datasets AS d SET last_release = $2 WHERE d.dataset = $1",
        ["name", "int4"],
        [dataset.name, row["release"]],
    )
