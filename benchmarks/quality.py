"""How much of the data a release keeps: generalized ranges, and answers to queries."""

from __future__ import annotations

import numpy as np

from benchmarks.database import Run
from benchmarks.figures import Figure
from pg_mdistinct.core.arrays import FloatArray, IntArray
from pg_mdistinct.core.publication import Release
from pg_mdistinct.experiments.publisher import Publisher
from pg_mdistinct.experiments.records import workload_model
from pg_mdistinct.workload import OCCUPATIONS, QI_COLUMNS, SnapshotArray, Workload

RELEASES = 20
SHOWN = (2, 10, 20)
QUERIES = 2_000
THETA = 0.5
DOMAINS = {"age": (1, 100), "gender": (0, 1), "marital": (0, 5), "education": (0, 16)}


def measure(run: Run) -> list[Figure]:
    """Publish the paper's workload with m = 4 and d = 10."""
    workload = Workload(
        initial=int(20_000 * run.scale),
        insertions=int(5_000 * run.scale),
        deletions=int(2_000 * run.scale),
        updates=int(5_000 * run.scale),
    )
    model = workload_model(workload)
    publisher = Publisher(model, 4, rng=np.random.default_rng(0))
    ncp = {}
    for number, people in enumerate(workload.releases(RELEASES), start=1):
        release = publisher.publish(people)
        ncp[number] = release.ncp
        run.say(f"release {number} of {RELEASES}: NCP {release.ncp:.4f}")
    static = Publisher(model, 4, rng=np.random.default_rng(0)).publish(people)
    error = _median_error(people, release, np.random.default_rng(2008))
    return [
        *(Figure(f"NCP, release {number}", ncp[number], 0.030, 0.020) for number in SHOWN),
        Figure("NCP ÷ that of the same snapshot with no history", ncp[RELEASES] / static.ncp),
        Figure(f"median relative error of {QUERIES:,} counts", error, 0.015, 0.005),
    ]


def _median_error(people: SnapshotArray, release: Release, rng: np.random.Generator) -> float:
    """Ask for counts over a part THETA of every domain; records lie evenly within their group."""
    rows = release.candidates.lengths
    errors = []
    for _ in range(QUERIES):
        matching = np.ones(len(people), dtype=np.bool_)
        expected: FloatArray = (rows - release.counterfeits).astype(np.float64)
        for i, name in enumerate(QI_COLUMNS):
            lowest, highest = _range(*DOMAINS[name], rng)
            matching &= (people[name] >= lowest) & (people[name] <= highest)
            values = np.unique(people[name])
            low, high = values[release.low[i]], values[release.high[i]]
            expected = expected * _share(low, high, lowest, highest)
        lowest, highest = _range(0, OCCUPATIONS - 1, rng)
        matching &= (people["occupation"] >= lowest) & (people["occupation"] <= highest)
        asked = (release.candidates.items >= lowest) & (release.candidates.items <= highest)
        share = np.add.reduceat(asked, release.candidates.offsets[:-1]) / rows
        estimate = float((expected * share).sum())
        if estimate > 0:
            errors.append(abs(estimate - int(matching.sum())) / estimate)
    return float(np.median(errors))


def _range(lowest: int, highest: int, rng: np.random.Generator) -> tuple[int, int]:
    """Return a random range that covers a part THETA of a domain."""
    width = max(round(THETA * (highest - lowest + 1)), 1)
    start = int(rng.integers(lowest, highest - width + 2))
    return start, start + width - 1


def _share(low: IntArray, high: IntArray, lowest: int, highest: int) -> FloatArray:
    """Return the part of each group's range that a query covers."""
    common = np.minimum(high, highest) - np.maximum(low, lowest) + 1
    share: FloatArray = np.maximum(common, 0) / (high - low + 1)
    return share
