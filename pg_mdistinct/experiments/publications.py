"""Publications of the workload that several figures are made from; each is computed once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from pg_mdistinct.core.model import M_DISTINCT
from pg_mdistinct.experiments.boxes import Boxes, boxes_of_release
from pg_mdistinct.experiments.publisher import Publisher
from pg_mdistinct.experiments.queries import median_error
from pg_mdistinct.experiments.records import workload_model
from pg_mdistinct.experiments.registry import RELEASES, Setting
from pg_mdistinct.workload import SnapshotArray

SIZES = (2, 4, 6, 8)
"""The values of ℓ and m."""

DIAMETERS = (1, 2, 5, 10, 25, 50)
"""The values of d: divisors of the 50 occupations, so that all classes are of one size."""


FEWER_RELEASES = 10
"""How often is published where a figure is over something else than time."""

ASKED = (1, *range(2, RELEASES + 1, 2))
"""Releases that queries are asked of, where a figure is over time."""


@dataclass(frozen=True)
class ReleaseFigures:
    """One release in numbers; the error is the median one of queries with θ = 50 %, if asked."""

    release: int
    records: int
    groups: int
    counterfeits: int
    ncp: float
    error: float | None

    @property
    def counterfeits_a_group(self) -> float:
        """Return what the paper calls CNT_g."""
        return self.counterfeits / self.groups


@dataclass(frozen=True)
class Publication:
    """All releases of a workload in numbers, and the last one as it is shown."""

    releases: tuple[ReleaseFigures, ...]
    people: SnapshotArray
    boxes: Boxes


@lru_cache(maxsize=2)
def snapshots(setting: Setting, d: int = 10, deletions: int = 2_000) -> tuple[SnapshotArray, ...]:
    """Return the snapshots of all releases."""
    return tuple(setting.workload(d, deletions).releases(RELEASES))


@lru_cache(maxsize=64)
def published(
    setting: Setting,
    m: int,
    d: int = 10,
    deletions: int = 2_000,
    variant: str = M_DISTINCT,
    releases: int = RELEASES,
    asked: tuple[int, ...] = ASKED,
) -> Publication:
    """Publish the workload with the core; fails where the update model leaves no room for m."""
    model = workload_model(setting.workload(d, deletions))
    publisher = Publisher(model, m, variant, setting.rng("publish", m, d, deletions, variant))
    found = []
    for number, people in enumerate(snapshots(setting, d, deletions)[:releases], start=1):
        release = publisher.publish(people)
        boxes = boxes_of_release(people, release)
        found.append(
            ReleaseFigures(
                release=number,
                records=len(people),
                groups=len(boxes.rows),
                counterfeits=int(boxes.counterfeits.sum()),
                ncp=release.ncp,
                error=_error(setting, people, boxes, number) if number in asked else None,
            )
        )
    return Publication(tuple(found), people, boxes)


def _error(setting: Setting, people: SnapshotArray, boxes: Boxes, release: int) -> float:
    # The same queries for all publications: differences are not those of luck.
    return median_error(people, boxes, setting.rng("queries", release))
