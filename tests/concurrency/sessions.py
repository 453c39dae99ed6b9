"""Several sessions at once: statements in the background, and a source that waits when asked to."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from tests.integration.cases import Connection, allow_all, one

PATIENCE = 60.0
_GATE = 4711


class Background:
    """A statement that runs in a session of its own."""

    def __init__(self, dsn: str, statement: str) -> None:
        self._connection: Connection = psycopg.connect(dsn, autocommit=True)
        self.pid = self._connection.info.backend_pid
        self._statement = statement
        self._answer: list[Any] = []
        self._error: list[psycopg.Error] = []
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        with self._connection:
            try:
                # The statements are the tests' own words.
                self._answer += self._connection.execute(self._statement.encode()).fetchall()
            except psycopg.Error as error:
                self._error.append(error)

    @property
    def is_running(self) -> bool:
        """Whether it has not ended."""
        return self._thread.is_alive()

    def answer(self) -> list[Any]:
        """Wait for the rows; an error is raised here."""
        self._thread.join(PATIENCE)
        assert not self.is_running, f"still running: {self._statement}"
        if self._error:
            raise self._error[0]
        return self._answer


def make_gated_ward(db: Connection, name: str, records: int = 12) -> None:
    """Make a dataset whose source can be read while nobody holds its gate shut."""
    db.execute(
        f"CREATE TABLE {name}_rows AS SELECT i AS id, i AS age,"
        " (ARRAY['Flu','Pneumonia','Gastritis','Dyspepsia'])[1 + i % 4] AS disease"
        f" FROM generate_series(1, {records}) AS i"
    )
    db.execute(
        f"CREATE FUNCTION {name}_gate() RETURNS boolean LANGUAGE sql VOLATILE AS"
        f" $$ SELECT pg_advisory_xact_lock_shared({_gate(name)}) IS NOT NULL $$"
    )
    db.execute(
        f"CREATE VIEW {name} AS SELECT r.* FROM {name}_rows AS r,"
        f" (SELECT public.{name}_gate() AS open OFFSET 0) AS g WHERE g.open"
    )
    db.execute(f"SELECT mdistinct_register('{name}', '{name}', 'id', '{{age}}', 'disease', 2)")
    allow_all(db, name)


def _gate(name: str) -> str:
    return f"{_GATE}, 'public.{name}_rows'::regclass::oid::int"


@contextmanager
def gate_shut(dsn: str, name: str) -> Iterator[None]:
    """Hold up whoever reads the source, in the middle of his publication."""
    with psycopg.connect(dsn) as keeper:
        keeper.execute(f"SELECT pg_advisory_xact_lock({_gate(name)})")
        yield
        keeper.rollback()


def wait_until_blocked(db: Connection, pid: int) -> None:
    """Wait until a session waits for a lock of whatever kind."""
    waits = "SELECT coalesce(wait_event_type, '') FROM pg_stat_activity WHERE pid = %s"
    deadline = time.monotonic() + PATIENCE
    while one(db, waits, (pid,)) != "Lock":
        assert time.monotonic() < deadline
        time.sleep(0.01)
