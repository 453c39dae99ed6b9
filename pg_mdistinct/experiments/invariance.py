"""Records that m-Invariance cannot publish once values change: section 6 again.

m-Invariance always publishes a record with the same m values, its signature. It is m-Distinct
under the model in which no value ever changes, so the core publishes it, counterfeits and all. A
record whose value has left its signature is invalid: there is no group that it may go to. It stays
away until its value comes back.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

import numpy as np

from pg_mdistinct.core.arrays import BoolArray
from pg_mdistinct.core.model import M_INVARIANCE, UpdateModel
from pg_mdistinct.core.snapshot import Snapshot
from pg_mdistinct.experiments.publications import DIAMETERS, FEWER_RELEASES, SIZES, snapshots
from pg_mdistinct.experiments.publisher import Publisher
from pg_mdistinct.experiments.registry import (
    RELEASES,
    Chart,
    Experiment,
    Outcome,
    Progress,
    Setting,
    Table,
)
from pg_mdistinct.workload import OCCUPATIONS


@dataclass(frozen=True)
class InvariantRelease:
    """One release in numbers: all records, those left out, and counterfeits."""

    release: int
    records: int
    invalid: int
    counterfeits: int
    groups: int


def in_signature(snapshot: Snapshot) -> BoolArray:
    """Tell which records have a value that was in their last group; new ones have."""
    last = snapshot.last_candidates
    signatures = np.zeros((len(last) + 1, OCCUPATIONS), dtype=np.bool_)
    signatures[last.row_of_item, last.items] = True
    # The row after the last one, number -1, is that of those who were never published.
    signatures[-1] = True
    inside: BoolArray = signatures[snapshot.last_group, snapshot.value]
    return inside


@lru_cache(maxsize=64)
def publish_invariant(
    setting: Setting, m: int, d: int, releases: int = RELEASES
) -> tuple[InvariantRelease, ...]:
    """Publish the workload under m-Invariance, without the records that it cannot take."""
    return tuple(_releases(setting, m, d, releases))


def _releases(setting: Setting, m: int, d: int, releases: int) -> Iterator[InvariantRelease]:
    labels, _ = setting.workload(d).model()
    model = UpdateModel.unchanging(labels)
    publisher = Publisher(model, m, M_INVARIANCE, setting.rng(M_INVARIANCE, m, d))
    for number, people in enumerate(snapshots(setting, d)[:releases], start=1):
        valid = in_signature(publisher.snapshot(people))
        release = publisher.publish(people[valid])
        yield InvariantRelease(
            release=number,
            records=len(people),
            invalid=int((~valid).sum()),
            counterfeits=int(release.counterfeits.sum()),
            groups=len(release.counterfeits),
        )


def versus_time(setting: Setting, progress: Progress) -> Outcome:
    """Count invalid records release by release."""
    rows = []
    for turn, m in enumerate(SIZES):
        progress(f"m = {m}", turn / len(SIZES))
        total = 0
        for found in publish_invariant(setting, m, 10):
            total += found.invalid
            rows.append((m, found.release, found.records, found.invalid, total, found.counterfeits))
    columns = ("m", "release", "records", "invalid", "invalid_so_far", "counterfeits")
    table = Table("invalid-time", columns, tuple(rows))
    chart = Chart(
        name="invalid-time",
        table=table,
        x="release",
        y="invalid",
        x_label="release",
        y_label="invalid records",
        by="m",
    )
    return Outcome((table,), (chart,))


def versus_d(setting: Setting, progress: Progress) -> Outcome:
    """Count invalid records of the tenth release, for update models of all diameters."""
    rows = []
    settings = list(product(DIAMETERS, SIZES))
    for turn, (d, m) in enumerate(settings):
        progress(f"d = {d}, m = {m}", turn / len(settings))
        releases = publish_invariant(setting, m, d, FEWER_RELEASES)
        total = sum(found.invalid for found in releases)
        rows.append((m, d, releases[-1].records, releases[-1].invalid, total))
    table = Table("invalid-d", ("m", "d", "records", "invalid", "invalid_so_far"), tuple(rows))
    chart = Chart(
        name="invalid-d",
        table=table,
        x="d",
        y="invalid",
        x_label="diameter d of updates",
        y_label="invalid records in release 10",
        by="m",
        bars=True,
    )
    return Outcome((table,), (chart,))


EXPERIMENTS = (
    Experiment(
        "invalid-time",
        "Invalid records under m-Invariance versus time",
        "The number of records that m-Invariance cannot publish grows gradually from release to "
        "release.",
        versus_time,
    ),
    Experiment(
        "invalid-d",
        "Invalid records under m-Invariance versus d",
        "Invalid records increase dramatically with d; at d = 1, where nothing changes, there are "
        "none.",
        versus_d,
    ),
)
