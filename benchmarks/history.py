"""The twentieth release against the second one, with as many records."""

from __future__ import annotations

from benchmarks.database import Run, load, published, register
from benchmarks.figures import Figure
from pg_mdistinct.workload import Workload

RECORDS, RELEASES = 23_000, 20


def measure(run: Run) -> list[Figure]:
    """Publish a table that neither grows nor shrinks."""
    records = int(RECORDS * run.scale)
    workload = Workload(
        initial=records, insertions=records // 8, deletions=records // 8, updates=records // 4
    )
    took = {}
    with run.database() as connection:
        register(connection, "people", workload, 4)
        for number, snapshot in enumerate(workload.releases(RELEASES), start=1):
            load(connection, "people", snapshot)
            if number in (2, RELEASES):
                took[number] = published(connection, "people")
            connection.execute("SELECT mdistinct_publish('people')")
            run.say(f"release {number} of {RELEASES}")
    return [
        Figure(f"release {RELEASES} ÷ release 2", took[RELEASES] / took[2], 1.15, 1.0),
        Figure(f"release {RELEASES}, s", took[RELEASES]),
    ]
