"""How much of the data a release keeps: generalized ranges, and answers to queries."""

from __future__ import annotations

import numpy as np

from benchmarks.database import Run
from benchmarks.figures import Figure
from pg_mdistinct.experiments.boxes import boxes_of_release
from pg_mdistinct.experiments.publisher import Publisher
from pg_mdistinct.experiments.queries import median_error
from pg_mdistinct.experiments.records import workload_model
from pg_mdistinct.workload import Workload

RELEASES = 20
SHOWN = (2, 10, 20)
QUERIES = 2_000


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
    boxes = boxes_of_release(people, release)
    error = median_error(people, boxes, np.random.default_rng(2008), queries=QUERIES)
    return [
        *(Figure(f"NCP, release {number}", ncp[number], 0.030, 0.020) for number in SHOWN),
        Figure("NCP ÷ that of the same snapshot with no history", ncp[RELEASES] / static.ncp),
        Figure(f"median relative error of {QUERIES:,} counts", error, 0.015, 0.005),
    ]
