"""A server that tests may break: how to publish on it, and what must hold when it is back."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Iterator

import psycopg
import pytest

from pg_mdistinct.embedded import EmbeddedServer
from pg_mdistinct.embedded.postmaster import is_gone
from pg_mdistinct.install import install
from tests import compiled
from tests.fix_server import Server
from tests.integration.cases import Connection, one
from tests.oracle.check_database import check_database

PATIENCE = 60.0
# Every record's rows and groups of a release are there, or none of them.
HALF_RELEASES = """
SELECT r.release FROM mdistinct_published.releases AS r
LEFT JOIN (SELECT release, count(*) AS rows FROM {view} GROUP BY release) AS p USING (release)
WHERE r.dataset = {name} AND coalesce(p.rows, 0) <> r.rows
UNION ALL
SELECT p.release FROM {view} AS p
LEFT JOIN mdistinct_published.releases AS r ON r.dataset = {name} AND r.release = p.release
WHERE r.release IS NULL
"""


class Victim:
    """An embedded server; what is committed stays committed, unlike on other throwaway ones."""

    def __init__(self, embedded: EmbeddedServer, config: pytest.Config) -> None:
        self.embedded = embedded
        embedded.start()
        server = Server(embedded.dsn("postgres"), data=embedded.home / "data")
        compiled.restore(server, config)
        self.dsn = embedded.dsn("mdistinct")
        install(self.dsn, on_message=lambda _: None)
        with self.connect() as db:
            db.execute("ALTER SYSTEM SET synchronous_commit = on")
            db.execute("SELECT pg_reload_conf()")

    def connect(self) -> Connection:
        """Connect as soon as the server lets one in: after a crash it recovers first."""
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                return psycopg.connect(self.dsn, autocommit=True)
            except psycopg.OperationalError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.01)

    def start_again(self) -> None:
        """Start if it has stopped; somebody else may have taken the port meanwhile."""
        self.dsn = self.embedded.start()

    def stop_at_once(self) -> None:
        """Stop like a power cut would, as far as the server's processes are concerned."""
        pid = self.embedded.status().pid
        assert pid is not None
        os.kill(pid, signal.SIGQUIT)
        deadline = time.monotonic() + PATIENCE
        while not is_gone(pid):
            assert time.monotonic() < deadline, "the server does not stop"
            time.sleep(0.01)


def make_ward(db: Connection, name: str, records: int) -> None:
    """Make a dataset whose values stay or become their neighbour, with some that are rare."""
    db.execute(
        f"CREATE TABLE {name} AS SELECT i AS id, i % 60 AS age, 'v' || floor(sqrt(i % 50)) AS value"
        f" FROM generate_series(1, {records}) AS i"
    )
    db.execute(f"CREATE TABLE {name}_away (LIKE {name})")
    db.execute(f"SELECT mdistinct_register('{name}', '{name}', 'id', '{{age}}', 'value', 3)")
    db.execute(
        f"SELECT mdistinct_allow_update('{name}', 'v' || v, ARRAY['v' || v, 'v' || (v + 1) % 8])"
        " FROM generate_series(0, 7) AS v"
    )


def change(db: Connection, name: str, seed: int) -> None:
    """Let some records return, some change, some leave, and some come."""
    db.execute(f"WITH back AS (DELETE FROM {name}_away RETURNING *) INSERT INTO {name} TABLE back")
    db.execute(
        f"UPDATE {name} SET value = 'v' || (substr(value, 2)::int + 1) % 8"
        f" WHERE id % 7 = {seed % 7}"
    )
    db.execute(
        f"WITH gone AS (DELETE FROM {name} WHERE id % 23 = {seed % 23} RETURNING *)"
        f" INSERT INTO {name}_away TABLE gone"
    )
    db.execute(
        f"INSERT INTO {name} SELECT i, i % 60, 'v' || i % 3"
        f" FROM generate_series({100_000 * (seed + 1)}, {100_000 * (seed + 1) + 5}) AS i"
    )


def moments(seed: int, count: int, longest: float) -> Iterator[float]:
    """Return moments of a publication, some in each part of it: the first ones hardly miss."""
    chance = random.Random(seed)
    for number in range(count):
        yield longest * (number + chance.random()) / count


def seconds_to_publish(db: Connection, name: str) -> float:
    """Publish some times, and return how long it takes when nobody else keeps the machine busy."""
    return min(_timed(db, name) for _ in range(3))


def _timed(db: Connection, name: str) -> float:
    started = time.monotonic()
    publish(db, name)
    return time.monotonic() - started


def publish(db: Connection, name: str) -> int:
    """Publish, and return the number of the release."""
    return int(one(db, "SELECT release FROM mdistinct_publish(%s)", (name,)))


def last_release(db: Connection, name: str) -> int:
    """Return the number of the latest release that is there."""
    return int(one(db, "SELECT last_release FROM mdistinct.datasets WHERE dataset = %s", (name,)))


def expect_whole(db: Connection, name: str) -> None:
    """See that there is no half release, and that the plugin finds nothing wrong."""
    query = HALF_RELEASES.format(view=f"mdistinct_published.{name}", name=f"'{name}'")
    assert db.execute(query).fetchall() == []
    assert db.execute("SELECT * FROM mdistinct_verify(%s)", (name,)).fetchall() == []
    leftover = (
        "SELECT count(*) FROM pg_class WHERE relnamespace = 'mdistinct_data'::regnamespace"
        " AND relkind = 'r' AND NOT relispartition AND relname ~ ('^' || %s || '_[vpg][0-9]+$')"
    )
    assert one(db, leftover, (name,)) == 0


def expect_principle(db: Connection) -> None:
    """Ask the independent checker about everything in the database."""
    assert check_database(db) == []


def begin_publication(db: Connection, name: str) -> None:
    """Send the statement, and do not wait for its end."""
    db.pgconn.send_query(f"SELECT * FROM mdistinct_publish('{name}')".encode())


def ended_well(db: Connection) -> bool:
    """Wait for the statement that was sent; tell whether it was carried out."""
    try:
        statuses = []
        while (result := db.pgconn.get_result()) is not None:
            statuses.append(result.status)
    except psycopg.Error:
        return False
    return psycopg.pq.ExecStatus.TUPLES_OK in statuses


def wait_until_cut_off(witness: Connection) -> None:
    """Wait until the server has seen the crash: it ends all sessions then, and recovers."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            witness.execute("SELECT")
        except psycopg.OperationalError:
            return
        time.sleep(0.005)
    pytest.fail("the server has not noticed")
