"""A publication costs the same however long the history is: it looks at the last release only."""

from __future__ import annotations

import re
from typing import Any

import psycopg
import pytest

Connection = psycopg.Connection[Any]

RECORDS = 3_000
EARLY, LATE = 3, 12


def publish(db: Connection, release: int) -> None:
    """Let a fifth of the people change, and publish."""
    db.execute("UPDATE people SET value = (value + 1) %% 8 WHERE id %% 5 = %s", (release % 5,))
    db.execute("SELECT mdistinct_publish('people')")


def blocks_read(dsn: str, release: int) -> dict[str, int]:
    """Publish, and say which tables and indexes of the dataset were looked into, and how much.

    A new session has counted nothing else, and what it counts within a transaction is exact.
    """
    with psycopg.connect(dsn) as db:
        publish(db, release)
        rows = db.execute(
            """
            SELECT relname::text, pg_stat_get_xact_blocks_fetched(oid) FROM pg_class
            WHERE relnamespace = 'mdistinct_data'::regnamespace
              AND pg_stat_get_xact_blocks_fetched(oid) > 0
            """
        ).fetchall()
    return dict(rows)


def release_of(relation: str) -> int | None:
    """Which release's partition this is, or an index of; None for what no release owns."""
    found = re.fullmatch(r"people_[a-z]+(\d+)(_\w+)?", relation)
    return int(found[1]) if found else None


@pytest.mark.slow
def test_a_publication_reads_no_release_again(db: Connection, dsn: str) -> None:
    db.execute("CREATE TABLE people (id integer PRIMARY KEY, age integer, value integer)")
    db.execute(
        "INSERT INTO people SELECT i, i %% 90, i %% 8 FROM generate_series(1, %s) AS i", (RECORDS,)
    )
    db.execute("SELECT mdistinct_register('people', 'people', 'id', '{age}', 'value', 3)")
    values = list(map(str, range(8)))
    for value in values:
        db.execute("SELECT mdistinct_allow_update('people', %s, %s)", (value, values))
    read = {}
    for release in range(1, LATE + 1):
        if release in (EARLY, LATE):
            read[release] = blocks_read(dsn, release)
        else:
            publish(db, release)
    for release in (EARLY, LATE):
        looked_into = {release_of(name) for name in read[release]}
        assert looked_into == {release, None}
    # What is kept of the latest release, the dictionary of values, who is away: no more of that.
    assert sum(read[LATE].values()) <= 1.2 * sum(read[EARLY].values())
