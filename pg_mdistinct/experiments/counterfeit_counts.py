"""Counterfeits in a group: section 6, with 3,000 deletions a release as there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from pg_mdistinct.core.arrays import IntArray, Ragged
from pg_mdistinct.core.assignment import assign
from pg_mdistinct.core.generalize import scaled_positions
from pg_mdistinct.core.model import M_DISTINCT
from pg_mdistinct.core.snapshot import Snapshot
from pg_mdistinct.experiments.greedy import (
    NOWHERE,
    GreedyRelease,
    publish_greedily,
)
from pg_mdistinct.experiments.l_diversity import divisible, first_groups
from pg_mdistinct.experiments.publications import (
    DIAMETERS,
    FEWER_RELEASES,
    SIZES,
    published,
    snapshots,
)
from pg_mdistinct.experiments.records import qi_columns, workload_model
from pg_mdistinct.experiments.registry import (
    RELEASES,
    Chart,
    Experiment,
    Outcome,
    Progress,
    Setting,
    Table,
)
from pg_mdistinct.workload import OCCUPATIONS, SnapshotArray

DELETIONS = 3_000

GREEDY = "the paper's, greedy"
FLOW = "flow, after the paper's releases"
CORE = "flow, after its own releases"
METHODS = (GREEDY, FLOW, CORE)

COMPARED = (2, 4, 7, 10, 15, 20)
"""Releases that flows assign once more, after what greed did in those before."""


def greedy_releases(
    setting: Setting, m: int, d: int, releases: int = RELEASES
) -> Iterator[tuple[SnapshotArray, GreedyRelease]]:
    """Publish with the paper's assignment; first groups have m records, as close as can be."""
    first, *later = snapshots(setting, d, DELETIONS)[:releases]
    people = [divisible(first, m), *later]
    group = first_groups(people[0], m, setting.rng("greedy groups", m, d))
    signatures = _by_class(group, people[0]["occupation"], d)[group]
    rng = setting.rng("greedy", m, d)
    yield from zip(people, publish_greedily(people, signatures, d, rng), strict=True)


def _by_class(group: IntArray, value: IntArray, d: int) -> IntArray:
    """Count the records of each group by class."""
    classes = -(-OCCUPATIONS // d)
    shape = (int(group.max()) + 1, classes)
    cells = np.bincount(group * classes + value // d, minlength=shape[0] * classes)
    return cells.reshape(shape).astype(np.int64)


def flow_counterfeits(
    setting: Setting, people: SnapshotArray, found: GreedyRelease, m: int, d: int
) -> tuple[int, int]:
    """Let the core assign what greed assigned, after the same releases; counterfeits and groups."""
    known = found.before != NOWHERE
    snapshot = Snapshot(
        value=people["occupation"],
        qi=qi_columns(people),
        last_group=found.before,
        gap=known.astype(np.int64),
        last_candidates=_candidates(found.buckets.entries, d),
        last_value=np.where(known, people["occupation"], -1),
    )
    model = workload_model(setting.workload(d, DELETIONS))
    rng = setting.rng("flow", m, d)
    buckets = assign(snapshot, scaled_positions(snapshot), model, m, M_DISTINCT, rng).buckets
    return sum(bucket.holes for bucket in buckets), sum(bucket.groups for bucket in buckets)


def _candidates(entries: IntArray, d: int) -> Ragged:
    """Return a group for each signature: as many values of each class as it has entries."""
    return Ragged.of(
        [
            [c * d + i for c, count in enumerate(row) for i in range(count)]
            for row in entries.tolist()
        ]
    )


def versus_time(setting: Setting, progress: Progress) -> Outcome:
    """Count counterfeits release by release: greedily, and by flows."""
    progress("core", 0.0)
    ours = published(setting, 6, 5, DELETIONS, asked=()).releases
    rows: list[tuple[str, int, int, int, float]] = [
        (CORE, found.release, found.counterfeits, found.groups, found.counterfeits_a_group)
        for found in ours
    ]
    for number, (people, found) in enumerate(greedy_releases(setting, 6, 5), start=1):
        progress(GREEDY, 0.5 + number / RELEASES / 2)
        counts = {GREEDY: (found.buckets.counterfeits(5), int(found.buckets.groups(5).sum()))}
        if number in COMPARED:
            counts[FLOW] = flow_counterfeits(setting, people, found, 6, 5)
        for name, (counterfeits, groups) in counts.items():
            rows.append((name, number, counterfeits, groups, counterfeits / groups))
    rows.sort(key=lambda row: METHODS.index(row[0]))
    columns = ("assignment", "release", "counterfeits", "groups", "counterfeits_a_group")
    table = Table("counterfeits-time", columns, tuple(rows))
    chart = Chart(
        name="counterfeits-time",
        table=table,
        x="release",
        y="counterfeits_a_group",
        x_label="release",
        y_label="counterfeits a group",
        by="assignment",
    )
    return Outcome((table,), (chart,))


def _sweep(
    setting: Setting, progress: Progress, name: str, cases: Sequence[tuple[int, int]], x: str
) -> Outcome:
    """Average the counterfeits a group over some releases, for all of some m and d."""
    rows = []
    for turn, (m, d) in enumerate(cases):
        progress(f"m = {m}, d = {d}", turn / len(cases))
        greedy = [
            found.buckets.counterfeits(d) / int(found.buckets.groups(d).sum())
            for _, found in greedy_releases(setting, m, d, FEWER_RELEASES)
        ]
        ours = published(setting, m, d, DELETIONS, releases=FEWER_RELEASES, asked=()).releases
        rows.append((GREEDY, m, d, float(np.mean(greedy))))
        mean = float(np.mean([found.counterfeits_a_group for found in ours]))
        rows.append((CORE, m, d, mean))
    table = Table(name, ("assignment", "m", "d", "counterfeits_a_group"), tuple(rows))
    chart = Chart(
        name=name,
        table=table,
        x=x,
        y="counterfeits_a_group",
        x_label="diameter d of updates" if x == "d" else x,
        y_label="counterfeits a group, mean of 10 releases",
        by="assignment",
        bars=True,
    )
    return Outcome((table,), (chart,))


def versus_d(setting: Setting, progress: Progress) -> Outcome:
    """Count counterfeits for update models of all diameters."""
    return _sweep(setting, progress, "counterfeits-d", [(6, d) for d in DIAMETERS], "d")


def versus_m(setting: Setting, progress: Progress) -> Outcome:
    """Count counterfeits for all m."""
    return _sweep(setting, progress, "counterfeits-m", [(m, 5) for m in SIZES], "m")


EXPERIMENTS = (
    Experiment(
        "counterfeits-time",
        "Counterfeits a group versus time, m = 6 and d = 5",
        "The counterfeits a group increase at first and decrease after the 7th publication, as "
        "their number gets stable while groups become more.",
        versus_time,
    ),
    Experiment(
        "counterfeits-d",
        "Counterfeits a group versus d, m = 6",
        "A larger diameter needs fewer counterfeits, since new records can go to more buckets.",
        versus_d,
    ),
    Experiment(
        "counterfeits-m",
        "Counterfeits a group versus m, d = 5",
        "8-Distinct needs most counterfeits, and fewer than 2 a group.",
        versus_m,
    ),
)
