"""A whole second publication, against sorting and writing the same rows."""

from __future__ import annotations

from benchmarks.database import Connection, Say, load, register, seconds, server
from pg_mdistinct.workload import Workload

COPY = (
    "CREATE TABLE public.sorted_copy AS SELECT * FROM public.{0}"
    " ORDER BY age, gender, marital, education"
)


def measure(say: Say, scale: float) -> dict[str, float]:
    """Publish twice at several sizes; the second one counts."""
    figures: dict[str, float] = {}
    with server(say) as connection:
        for size in (1, 10):
            records = int(20_000 * size * scale)
            say(f"{records} records ...")
            figures |= _second_release(connection, f"people_{size}", records)
    return figures


def _second_release(connection: Connection, table: str, records: int) -> dict[str, float]:
    workload = Workload(
        initial=records,
        insertions=records // 4,
        deletions=records // 10,
        updates=records // 4,
    )
    register(connection, table, workload, 4)
    first, second = workload.releases(2)
    load(connection, table, first)
    seconds(connection, f"SELECT mdistinct_publish('{table}')")
    load(connection, table, second)
    publishing = seconds(connection, f"SELECT mdistinct_publish('{table}')")
    copying = []
    for _ in range(3):
        copying.append(seconds(connection, COPY.format(table)))
        connection.execute("DROP TABLE public.sorted_copy")
    return {
        f"publish {len(second)}, s": publishing,
        f"sorted copy {len(second)}, s": min(copying),
        f"publish / sorted copy, {len(second)}": publishing / min(copying),
    }
