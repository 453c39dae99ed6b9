"""The flow of a publication: lock, read, plan, write, in one transaction."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from pg_mdistinct.core.knowledge import Knowledge, learn
from pg_mdistinct.core.model import M_INVARIANCE, UpdateModel
from pg_mdistinct.core.publication import Release, check_updates, plan_release
from pg_mdistinct.core.snapshot import Snapshot
from pg_mdistinct.server import (
    bound,
    catalog,
    knowledge,
    latest,
    reading,
    source,
    updates,
    validation,
    writing,
)
from pg_mdistinct.server.audit import audited
from pg_mdistinct.server.catalog import Dataset
from pg_mdistinct.server.errors import entry_point
from pg_mdistinct.server.history import PlannedRelease
from pg_mdistinct.server.latest import Latest
from pg_mdistinct.server.plpython import Plpy, Row, run
from pg_mdistinct.server.progress import Progress
from pg_mdistinct.server.reading import ReadSnapshot
from pg_mdistinct.server.relations import relations_of

TRIAL_TABLE = "mdistinct_snapshot"

T = TypeVar("T")


@dataclass(frozen=True)
class Prepared:
    """All that a release is planned from."""

    dataset: Dataset
    model: UpdateModel
    read: ReadSnapshot
    previous: Latest

    @property
    def snapshot(self) -> Snapshot:
        """Return the microdata to be published."""
        return self.read.snapshot

    def plan(self, plpy: Plpy) -> Release:
        """Plan the release, with randomness that nobody can predict."""
        rng = np.random.default_rng(secrets.randbits(128))
        dataset = self.dataset
        with validation.discreet(plpy, dataset), Progress(plpy) as progress:
            return plan_release(
                self.snapshot, self.model, dataset.m, dataset.variant, rng, progress
            )

    def planned(self, release: Release) -> PlannedRelease:
        """Return a release of it as the history takes one that is not published yet."""
        return PlannedRelease(self.read.record_ids, self.snapshot.value, release)

    def absent_risk(self, plpy: Plpy) -> float:
        """Return the largest risk of all records that the new release will not have."""
        left = self.previous.known.take(self.read.leaving).largest_risk
        away = knowledge.largest_risk_of_absent(plpy, self.dataset, self.read.returned)
        return max(away, float(left.max(initial=0.0)))

    def known_after(
        self, plpy: Plpy, release: Release, absent_risk: float
    ) -> tuple[Knowledge, float | None]:
        """Return what he will know, and the largest risk of all versions of all records."""
        before, candidates, group = self.read.known, release.candidates, release.group
        with Progress(plpy) as progress:
            known, risk = learn(before, self.snapshot, candidates, group, self.model, progress)
        # No version has a risk of 0: that would be none at all.
        return known, max(float(risk.max(initial=0.0)), absent_risk) or None


class _RollBack(Exception):  # noqa: N818 - no error: the way out of a trial
    """Ends a subtransaction that has only been tried."""


@entry_point
@audited("publish", writes=True)
def publish(plpy: Plpy, dataset: str, wait: bool | None) -> Row:
    """Publish the next release; nothing of it is visible unless all of it is written."""
    started = time.monotonic()
    found = catalog.lock(plpy, dataset, wait=bool(wait))
    partitions = writing.create_partitions(plpy, found)
    prepared = _prepare(plpy, found, partitions["versions"])
    release = prepared.plan(plpy)
    known, max_risk = prepared.known_after(plpy, release, prepared.absent_risk(plpy))
    bound.keep(plpy, found, prepared.model, max_risk, prepared.planned(release))
    _write(plpy, prepared, release, known, partitions)
    row = figures(prepared, release, max_risk, started)
    _record(plpy, found, row)
    return row


@entry_point
@audited("preview")
def preview(plpy: Plpy, dataset: str, wait: bool | None) -> Row:
    """Return the row that publishing would return, also where a bound would refuse it."""
    started = time.monotonic()
    prepared, absent_risk = try_out(
        plpy, dataset, lambda prepared: (prepared, prepared.absent_risk(plpy)), wait=bool(wait)
    )
    release = prepared.plan(plpy)
    _, max_risk = prepared.known_after(plpy, release, absent_risk)
    return figures(prepared, release, max_risk, started)


def try_out(plpy: Plpy, dataset: str, look: Callable[[Prepared], T], *, wait: bool) -> T:
    """Prepare a publication, look at it while the snapshot's table is there, and leave no trace.

    Not even the lock stays: what comes after looking keeps nobody from publishing.
    """
    seen: list[T] = []
    try:
        with plpy.subtransaction():
            found = catalog.lock(plpy, dataset, wait=wait)
            versions = relations_of(plpy, found.name).versions
            plpy.execute(
                f"CREATE TEMPORARY TABLE {TRIAL_TABLE} (LIKE {versions} INCLUDING STORAGE)"
            )
            seen.append(look(_prepare(plpy, found, f"pg_temp.{TRIAL_TABLE}")))
            raise _RollBack
    except _RollBack:
        return seen[0]


def figures(prepared: Prepared, release: Release, max_risk: float | None, started: float) -> Row:
    """Return the row that tells how a publication went."""
    return {
        "dataset": prepared.dataset.name,
        "release": prepared.dataset.last_release + 1,
        "records": len(prepared.snapshot),
        "groups": len(release.counterfeits),
        "counterfeits": int(release.counterfeits.sum()),
        "withheld": 0,
        "ncp": release.ncp,
        "max_risk": max_risk,
        "seconds": time.monotonic() - started,
    }


def _prepare(plpy: Plpy, dataset: Dataset, table: str) -> Prepared:
    """Read the source into a table and the table into arrays, refusing what cannot be published."""
    source.check(plpy, dataset)
    staged, rows = reading.stage(plpy, dataset, table)
    if rows is not None and dataset.variant == M_INVARIANCE:
        updates.learn_values(plpy, dataset, sorted(rows.labels))
    model = updates.read_model(plpy, dataset)
    value = None if rows is None else rows.values(model)
    if rows is None or value is None:
        validation.refuse(plpy, dataset, staged, model)
    with validation.discreet(plpy, dataset):
        model.check(dataset.m, dataset.variant)
    previous = knowledge.latest_release(plpy, dataset, model)
    read = reading.snapshot(plpy, dataset, staged, rows, value, previous)
    impossible = check_updates(read.snapshot, model)
    validation.refuse_updates(plpy, dataset, read.record_ids, read.snapshot, model, impossible)
    return Prepared(dataset, model, read, previous)


def _write(
    plpy: Plpy,
    prepared: Prepared,
    release: Release,
    known: Knowledge,
    partitions: dict[str, str],
) -> None:
    """Write the release, and keep of it what the next one needs."""
    dataset, read = prepared.dataset, prepared.read
    writing.write(plpy, dataset, release, read.columns, partitions)
    writing.update_absent(plpy, dataset, read.returned, prepared.previous, read.leaving)
    value, candidates = read.snapshot.value, release.candidates
    new = Latest(read.record_ids, release.group, value, candidates, known)
    latest.store(plpy, dataset, prepared.model, new)


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
