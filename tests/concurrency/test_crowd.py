"""Fifty connections that read and publish for two minutes, without a deadlock."""

from __future__ import annotations

import os
import random
import threading
import time
from collections import Counter
from collections.abc import Callable

import psycopg
import pytest

from tests.integration.cases import Connection, one
from tests.oracle.check_database import check_database

pytestmark = pytest.mark.slow

SECONDS = float(os.environ.get("PG_MDISTINCT_CROWD_SECONDS", "120"))
READERS, PUBLISHERS, ADMINS = 38, 9, 3
DATASETS = 6
# A release is whole in every snapshot that a reader can take.
PARTS = """
SELECT r.release FROM mdistinct_published.releases AS r
LEFT JOIN (SELECT release, count(*) AS rows FROM mdistinct_published.crowd{0} GROUP BY 1) AS p
    USING (release)
WHERE r.dataset = 'crowd{0}' AND r.rows IS DISTINCT FROM coalesce(p.rows, 0)
"""
# What a publication may be told that did not want to wait. Readers are never told anything.
BEING_PUBLISHED = "55P03"


def make_crowd(db: Connection, name: str) -> None:
    db.execute(
        f"CREATE TABLE {name} AS SELECT i AS id, i % 30 AS age, 'v' || i % 5 AS value"
        " FROM generate_series(1, 60) AS i"
    )
    db.execute(f"SELECT mdistinct_register('{name}', '{name}', 'id', '{{age}}', 'value', 2)")
    db.execute(
        f"SELECT mdistinct_allow_update('{name}', 'v' || v, '{{v0,v1,v2,v3,v4}}')"
        " FROM generate_series(0, 4) AS v"
    )


class Crowd:
    """Threads with a connection each, which do the same thing again and again."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._end = time.monotonic() + SECONDS
        self._threads: list[threading.Thread] = []
        self.done: Counter[str] = Counter()
        self.trouble: list[str] = []

    def add(
        self, what: str, pause: float, act: Callable[[Connection, random.Random], None]
    ) -> None:
        """Let one more do this until the time is up."""
        seed = len(self._threads)
        thread = threading.Thread(target=self._live, args=(what, pause, act, seed))
        self._threads.append(thread)
        thread.start()

    def join(self) -> None:
        """Wait for all."""
        for thread in self._threads:
            thread.join(SECONDS + 120)
            assert not thread.is_alive(), "somebody hangs"

    def _live(
        self,
        what: str,
        pause: float,
        act: Callable[[Connection, random.Random], None],
        seed: int,
    ) -> None:
        chance, done = random.Random(seed), False
        try:
            with psycopg.connect(self._dsn, autocommit=True) as db:
                # A machine may be so slow that somebody's first turn comes when the time is up.
                while (time.monotonic() < self._end or not done) and not self.trouble:
                    try:
                        act(db, chance)
                        self.done[what] += 1
                        done = True
                    except psycopg.Error as error:
                        if what == "read" or error.sqlstate != BEING_PUBLISHED:
                            raise
                        self.done[f"{what} refused"] += 1
                    time.sleep(pause * chance.uniform(0.5, 1.5))
        except Exception as error:
            self.trouble.append(f"{what}: {error!r}")


def read(db: Connection, chance: random.Random) -> None:
    # Readers wait for nobody: this is far less than a publication takes.
    db.execute("SET lock_timeout = '100ms'")
    number = chance.randrange(DATASETS)
    parts = db.execute(PARTS.format(number)).fetchall()
    assert parts == [], f"crowd{number} shows parts of releases {parts}"


def publish(db: Connection, chance: random.Random) -> None:
    name = f"crowd{chance.randrange(DATASETS)}"
    db.execute(f"UPDATE {name} SET value = 'v' || {chance.randrange(5)} WHERE random() < 0.1")
    db.execute("SELECT mdistinct_publish(%s, wait => %s)", (name, chance.random() < 0.5))


def administer(db: Connection, chance: random.Random) -> None:
    name = f"crowd{chance.randrange(DATASETS)}"
    deed = chance.randrange(4)
    if deed == 0:
        db.execute(
            "SELECT mdistinct_allow_update(%s, 'v0', '{v0,v1,v2,v3,v4}', %s)",
            (name, chance.choice([[0.2] * 5, [0.6, 0.1, 0.1, 0.1, 0.1]])),
        )
    elif deed == 1:
        assert db.execute("SELECT * FROM mdistinct_verify(%s)", (name,)).fetchall() == []
    elif deed == 2:
        db.execute("SELECT mdistinct_preview(%s, wait => true)", (name,))
    else:
        own = f"passing{db.info.backend_pid}"
        make_crowd(db, own)
        db.execute("SELECT mdistinct_publish(%s)", (own,))
        db.execute("SELECT mdistinct_drop(%s)", (own,))
        db.execute(f"DROP TABLE {own}")


def test_fifty_connections_for_two_minutes(db: Connection, dsn: str) -> None:
    for number in range(DATASETS):
        make_crowd(db, f"crowd{number}")
    deadlocks = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
    before = one(db, deadlocks)
    crowd = Crowd(dsn)
    for _ in range(READERS):
        crowd.add("read", 3.0, read)
    for _ in range(PUBLISHERS):
        crowd.add("publish", 12.0, publish)
    for _ in range(ADMINS):
        crowd.add("administer", 12.0, administer)
    crowd.join()
    assert crowd.trouble == []
    assert one(db, deadlocks) == before
    assert crowd.done["publish"] >= PUBLISHERS
    assert crowd.done["read"] >= READERS
    assert check_database(db) == []
