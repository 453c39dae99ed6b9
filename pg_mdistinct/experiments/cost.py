"""How long a republication takes: section 6, "computation cost"."""

from __future__ import annotations

import time

from pg_mdistinct.core.model import M_DISTINCT
from pg_mdistinct.core.publication import plan_release
from pg_mdistinct.experiments.publications import DIAMETERS, SIZES
from pg_mdistinct.experiments.publisher import Publisher
from pg_mdistinct.experiments.records import workload_model
from pg_mdistinct.experiments.registry import Chart, Experiment, Outcome, Progress, Setting, Table

REPEAT = 5


def seconds_of_second_release(setting: Setting, m: int, d: int) -> tuple[float, int]:
    """Plan the second release several times; return the shortest time, and the buckets it has.

    It is the processor's time: planning uses a single core, and others may be busy on it too.
    """
    workload = setting.workload(d)
    model = workload_model(workload)
    publisher = Publisher(model, m, rng=setting.rng("cost", m, d))
    first, second = workload.releases(2)
    publisher.publish(first)
    snapshot = publisher.snapshot(second)
    times = []
    for _ in range(REPEAT):
        started = time.process_time()
        release = plan_release(snapshot, model, m, M_DISTINCT, setting.rng("cost again", m, d))
        times.append(time.process_time() - started)
    return min(times), len(release.buckets.kind)


def _measure(
    setting: Setting, progress: Progress, name: str, cases: list[tuple[int, int]], x: str
) -> Outcome:
    # Whatever has to be compiled or loaded is, before anything is timed.
    seconds_of_second_release(setting, *cases[0])
    rows = []
    for turn, (m, d) in enumerate(cases):
        progress(f"m = {m}, d = {d}", turn / len(cases))
        rows.append((m, d, *seconds_of_second_release(setting, m, d)))
    table = Table(name, ("m", "d", "seconds", "buckets"), tuple(rows))
    chart = Chart(
        name=name,
        table=table,
        x=x,
        y="seconds",
        x_label="diameter d of updates" if x == "d" else x,
        y_label="processor seconds for release 2",
        bars=True,
    )
    return Outcome((table,), (chart,))


def versus_d(setting: Setting, progress: Progress) -> Outcome:
    """Time the second release for update models of all diameters."""
    return _measure(setting, progress, "cost-d", [(4, d) for d in DIAMETERS], "d")


def versus_m(setting: Setting, progress: Progress) -> Outcome:
    """Time the second release for all m."""
    return _measure(setting, progress, "cost-m", [(m, 10) for m in SIZES], "m")


EXPERIMENTS = (
    Experiment(
        "cost-d",
        "Computation cost versus d",
        "A larger diameter costs more: there are more buckets for a new record to choose from, "
        "and more records in a bucket.",
        versus_d,
    ),
    Experiment(
        "cost-m",
        "Computation cost versus m",
        "The cost falls from m = 2 to m = 4, where buckets are fewer and larger, and rises from 4 "
        "to 8, where finding a legal split is the major cost.",
        versus_m,
    ),
)
