"""The first publication of a session, which has everything to load."""

from __future__ import annotations

from benchmarks.database import REPEAT, Run, another, of_size, published, second_release
from benchmarks.figures import Figure

RECORDS = 23_000


def measure(run: Run) -> list[Figure]:
    """Compare the first publications of new sessions with their second ones."""
    with run.database() as connection:
        second_release(connection, "people", of_size(int(RECORDS * run.scale)), 4)
        cold, warm = [], []
        for _ in range(REPEAT):
            with another(connection.info.dsn) as session:
                cold.append(published(session, "people", 1))
                warm.append(published(session, "people", 2))
    return [
        Figure("first publication of a session − second one, s", min(cold) - min(warm), 1.0, 0.3),
        Figure("first publication of a session, s", min(cold)),
    ]
