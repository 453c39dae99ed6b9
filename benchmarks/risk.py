"""Exact risks of a million record versions, against counting the records."""

from __future__ import annotations

from benchmarks.database import Run, load, register, seconds
from benchmarks.figures import Figure
from pg_mdistinct.workload import Workload

RELEASES = 21


def measure(run: Run) -> list[Figure]:
    """Publish the paper's workload until there are a million versions, then ask for all risks."""
    with run.database() as connection:
        workload = Workload(
            initial=int(20_000 * run.scale),
            insertions=int(5_000 * run.scale),
            deletions=int(2_000 * run.scale),
            updates=int(5_000 * run.scale),
        )
        register(connection, "people", workload, 4)
        for number, snapshot in enumerate(workload.releases(RELEASES), start=1):
            load(connection, "people", snapshot)
            took = seconds(connection, "SELECT mdistinct_publish('people')")
            run.say(f"release {number} of {RELEASES}: {len(snapshot)} records in {took:.1f} s")
        connection.execute("VACUUM ANALYZE")
        versions = connection.execute("SELECT count(*) FROM mdistinct.people_membership").fetchone()
        counting = seconds(
            connection, "SELECT count(DISTINCT record_id) FROM mdistinct.people_membership", 3
        )
        reading = seconds(
            connection,
            "SELECT count(record_id), sum(gid) FROM mdistinct.people_membership",
            3,
        )
        asking = seconds(connection, "SELECT count(*) FROM mdistinct_risk('people')", 3)
        return [
            Figure("versions", float(versions[0] if versions else 0)),
            Figure("(risk − reading) ÷ count distinct", (asking - reading) / counting),
            Figure("count distinct, s", counting),
            Figure("reading, s", reading),
            Figure("risk, s", asking),
        ]
