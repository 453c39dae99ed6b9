"""Update models whose reach sets are nested, against those whose reach sets are apart."""

from __future__ import annotations

from benchmarks.database import Run, of_size, published, second_release
from benchmarks.figures import Figure

RECORDS = 23_000


def measure(run: Run) -> list[Figure]:
    """Let values become any of their class, or only later ones; chains of 5 and of 10 values."""
    figures = []
    with run.database() as connection:
        for d in (5, 10):
            for m in (4, 8):
                took = {}
                for nested in (False, True):
                    table = f"d{d}_m{m}_{'nested' if nested else 'apart'}"
                    run.say(f"{table} ...")
                    workload = of_size(int(RECORDS * run.scale), d=d, nested=nested)
                    second_release(connection, table, workload, m)
                    took[nested] = published(connection, table)
                what = f"chains of {d}, m = {m}: nested ÷ classes"
                figures.append(Figure(what, took[True] / took[False], 10, 3))
    return figures
