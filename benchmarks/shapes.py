"""Tables of other shapes: many QI columns, wide identifiers, categories instead of numbers."""

from __future__ import annotations

from benchmarks.database import Connection, Run, declare, of_size, published, tried
from benchmarks.figures import Figure
from pg_mdistinct.workload import Workload

RECORDS = 100_000
COLUMNS = 20
SHAPES = {
    "4 integers": (
        "(i * 7919) % 1000003",
        [f"(i * {p}) % {n}" for p, n in ((31, 75), (7, 2), (13, 6), (17, 17))],
    ),
    "20 integers": (
        "(i * 7919) % 1000003",
        [f"(i * {2 * p + 29}) % {10 + p * 7}" for p in range(COLUMNS)],
    ),
    "4 integers, identifiers of 200 bytes": (
        "repeat(md5(((i * 7919) % 1000003)::text), 6) || i",
        [f"(i * {p}) % {n}" for p, n in ((31, 75), (7, 2), (13, 6), (17, 17))],
    ),
    "4 texts": (
        "(i * 7919) % 1000003",
        [f"'value ' || (i * {p}) % {n}" for p, n in ((31, 75), (7, 2), (13, 6), (17, 17))],
    ),
    "4 moments": (
        "(i * 7919) % 1000003",
        [
            f"timestamp '2020-01-01' + (i * {p}) % {n} * interval '1 s'"
            for p, n in ((31, 99991), (7, 9973), (13, 49999), (17, 17))
        ],
    ),
}


def measure(run: Run) -> list[Figure]:
    """Publish each shape twice, against sorting and writing the same rows."""
    figures = []
    with run.database() as connection:
        for number, (shape, (identifier, columns)) in enumerate(SHAPES.items()):
            run.say(f"{shape} ...")
            _make(connection, f"shape_{number}", identifier, columns, int(RECORDS * run.scale))
            publishing = published(connection, f"shape_{number}", 3)
            names = ", ".join(f"c{i}" for i in range(len(columns)))
            copying = tried(
                connection,
                f"INSERT INTO public.sorted_copy SELECT * FROM public.shape_{number}"
                f" ORDER BY {names}",
                before=f"CREATE TABLE public.sorted_copy (LIKE public.shape_{number})",
            )
            figures += [
                Figure(f"{shape}: publish ÷ sorted copy", publishing / copying),
                Figure(f"{shape}: publish, s", publishing),
            ]
    return figures


def _make(
    connection: Connection, table: str, identifier: str, columns: list[str], records: int
) -> None:
    """Make a table, publish it once, and change a quarter of it."""
    shown = ", ".join(f"{expression} AS c{i}" for i, expression in enumerate(columns))
    connection.execute(
        f"CREATE TABLE public.{table} AS SELECT {identifier} AS id, {shown},"
        f" (i * 37 % 50)::int AS occupation FROM generate_series(1::bigint, {records}) AS i"
    )
    connection.execute(
        "SELECT mdistinct_register(%s, %s, 'id', %s, 'occupation', 4)",
        (table, f"public.{table}", [f"c{i}" for i in range(len(columns))]),
    )
    workload: Workload = of_size(records)
    declare(connection, table, workload)
    connection.execute(f"SELECT mdistinct_publish('{table}')")
    connection.execute(
        f"UPDATE public.{table} SET occupation = occupation / 10 * 10 + (occupation + 3) % 10"
        " WHERE occupation % 4 = 0"
    )
    connection.execute(f"VACUUM FULL ANALYZE public.{table}")
