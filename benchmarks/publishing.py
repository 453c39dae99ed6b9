"""A whole second publication, against sorting and writing the same rows; and its growth."""

from __future__ import annotations

from functools import partial

from benchmarks.database import (
    Run,
    another,
    by_turns,
    of_size,
    peak_megabytes,
    published,
    second_release,
    sorted_copy,
)
from benchmarks.figures import Figure

SMALL, MEDIUM, LARGE = 23_000, 230_000, 1_150_000
TURNS = {SMALL: 5, MEDIUM: 15, LARGE: 3}
"""A copy takes a moment, which the machine may be quiet for; a publication needs several tries."""
BARS = {MEDIUM: (5.0, 2.5), LARGE: (8.0, 4.0)}


def measure(run: Run) -> list[Figure]:
    """Publish twice at several sizes; the second one counts."""
    figures, each = [], {}
    with run.database() as connection:
        for size in (SMALL, MEDIUM, LARGE):
            run.say(f"{int(size * run.scale):,} records ...")
            table = f"people_{size}"
            records = second_release(connection, table, of_size(int(size * run.scale)), 4)
            with another(connection.info.dsn) as session:
                published(session, table, 1)
                publishing, copying = by_turns(
                    TURNS[size],
                    partial(published, session, table, 1),
                    partial(sorted_copy, connection, table, 1),
                )
                peak = peak_megabytes(session)
            each[size] = publishing / records
            bar, aim = BARS.get(size, (None, None))
            figures += [
                Figure(
                    f"publish {records:,} records ÷ sorted copy", publishing / copying, bar, aim
                ),
                Figure(f"publish {records:,} records, s", publishing),
                Figure(f"sorted copy of {records:,} records, s", copying),
            ]
    growth = each[LARGE] / each[SMALL]
    return [
        *figures,
        Figure("growth: seconds a record, 50 times as many", growth, 1.5, 1.1),
        Figure(
            f"peak memory of the backend at {int(LARGE * run.scale):,} records, MB", peak, 1536, 717
        ),
    ]
