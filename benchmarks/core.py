"""The algorithm alone, against sorting the same four columns."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from benchmarks.database import REPEAT, Run, of_size
from benchmarks.figures import Figure
from pg_mdistinct.core.model import M_DISTINCT
from pg_mdistinct.core.publication import plan_release
from pg_mdistinct.experiments.publisher import Publisher
from pg_mdistinct.experiments.records import workload_model
from pg_mdistinct.workload import QI_COLUMNS

RECORDS = 230_000


def measure(run: Run) -> list[Figure]:
    """Plan the second release several times."""
    workload = of_size(int(RECORDS * run.scale))
    model = workload_model(workload)
    publisher = Publisher(model, 4, rng=np.random.default_rng(0))
    first, second = workload.releases(2)
    run.say("compiling ...")
    publisher.publish(first)
    snapshot = publisher.snapshot(second)
    planning = _shortest(
        lambda: plan_release(snapshot, model, 4, M_DISTINCT, np.random.default_rng(1))
    )
    columns = [second[name].astype(np.int64) for name in reversed(QI_COLUMNS)]
    sorting = _shortest(lambda: np.lexsort(columns))
    return [
        Figure(f"core, {len(second):,} records ÷ numpy.lexsort", planning / sorting, 25, 10),
        Figure(f"core, {len(second):,} records, s", planning),
        Figure("numpy.lexsort, s", sorting),
    ]


def _shortest(work: Callable[[], object]) -> float:
    times = []
    for _ in range(REPEAT):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return min(times)
