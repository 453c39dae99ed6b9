"""Another tool: ℓ-diversity of one snapshot, against a whole publication of the same rows."""

from __future__ import annotations

import importlib
import time

from benchmarks.database import Run, of_size, published, second_release
from benchmarks.figures import Figure
from pg_mdistinct.workload import QI_COLUMNS

RECORDS = 23_000


def measure(run: Run) -> list[Figure]:
    """Time anonypy, if it is there."""
    try:
        anonypy, pandas = map(importlib.import_module, ("anonypy", "pandas"))
    except ImportError:
        run.say("anonypy is not installed: pip install 'pg-mdistinct[bench]'")
        return []
    workload = of_size(int(RECORDS * run.scale))
    _, second = workload.releases(2)
    frame = pandas.DataFrame({name: second[name] for name in (*QI_COLUMNS, "occupation")})
    frame["occupation"] = frame["occupation"].astype(str).astype("category")
    run.say(f"anonypy, {len(second):,} records ...")
    preserver = anonypy.Preserver(frame, list(QI_COLUMNS), "occupation")
    started = time.perf_counter()
    preserver.anonymize_l_diversity(k=4, l=4)
    theirs = time.perf_counter() - started
    with run.database() as connection:
        second_release(connection, "people", workload, 4)
        ours = published(connection, "people")
    return [
        Figure(f"anonypy ÷ publish, {len(second):,} records", theirs / ours, 10, 30, at_least=True),
        Figure("anonypy, s", theirs),
    ]
