"""Another tool: ℓ-diversity of one snapshot, against a whole publication of the same rows."""

from __future__ import annotations

import importlib.util

from benchmarks.database import Run, of_size, published, second_release
from benchmarks.figures import Figure
from pg_mdistinct.experiments.others import publish_with_anonypy

RECORDS = 23_000


def measure(run: Run) -> list[Figure]:
    """Time anonypy, if it is there."""
    if importlib.util.find_spec("anonypy") is None:
        run.say("anonypy is not installed: pip install 'pg-mdistinct[bench]'")
        return []
    workload = of_size(int(RECORDS * run.scale))
    _, second = workload.releases(2)
    run.say(f"anonypy, {len(second):,} records ...")
    (theirs,) = publish_with_anonypy([second]).seconds
    with run.database() as connection:
        second_release(connection, "people", workload, 4)
        ours = published(connection, "people")
    return [
        Figure(f"anonypy ÷ publish, {len(second):,} records", theirs / ours, 10, 30, at_least=True),
        Figure("anonypy, s", theirs),
    ]
