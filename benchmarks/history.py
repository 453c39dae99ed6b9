"""The twentieth release against the second one, with as many records."""

from __future__ import annotations

from functools import partial

from benchmarks.database import REPEAT, Connection, Run, by_turns, load, published, register
from benchmarks.figures import Figure
from pg_mdistinct.workload import Workload

RECORDS, RELEASES = 23_000, 20


def measure(run: Run) -> list[Figure]:
    """Publish a table that neither grows nor shrinks."""
    records = int(RECORDS * run.scale)
    workload = Workload(
        initial=records, insertions=records // 8, deletions=records // 8, updates=records // 4
    )
    with run.database() as connection:
        _publish_before(connection, "young", workload, 2, run)
        _publish_before(connection, "old", workload, RELEASES, run)
        second, last = by_turns(
            4 * REPEAT,
            partial(published, connection, "young", 1),
            partial(published, connection, "old", 1),
        )
    return [
        Figure(f"release {RELEASES} ÷ release 2", last / second, 1.15, 1.0),
        Figure(f"release {RELEASES}, s", last),
    ]


def _publish_before(
    connection: Connection, dataset: str, workload: Workload, last: int, run: Run
) -> None:
    """Publish all releases before one, and load that one."""
    register(connection, dataset, workload, 4)
    for number, snapshot in enumerate(workload.releases(last), start=1):
        load(connection, dataset, snapshot)
        if number < last:
            connection.execute(f"SELECT mdistinct_publish('{dataset}')")
            run.say(f"{dataset}: release {number} of {last}")
