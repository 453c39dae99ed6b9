"""Publications that are cancelled, time out, or lose their client."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

import psycopg
import pytest

from tests.faults.victim import (
    PATIENCE,
    begin_publication,
    change,
    expect_whole,
    last_release,
    make_ward,
    publish,
)
from tests.integration.cases import Connection, one

TIMES = 8


@pytest.fixture
def connect(dsn: str) -> Callable[[], Connection]:
    return lambda: psycopg.connect(dsn, autocommit=True)


@pytest.fixture
def lasted(db: Connection) -> float:
    """How long a publication of the dataset takes that there is."""
    make_ward(db, "ward", 400)
    publish(db, "ward")
    started = time.monotonic()
    publish(db, "ward")
    return time.monotonic() - started


def test_a_cancelled_publication(
    db: Connection, connect: Callable[[], Connection], lasted: float
) -> None:
    moment, cancelled = random.Random(1), 0
    with connect() as other:
        publish(other, "ward")
        for number in range(TIMES):
            change(db, "ward", number)
            before = last_release(db, "ward")
            begin_publication(other, "ward")
            time.sleep(moment.uniform(0, lasted))
            other.cancel_safe()
            results = []
            while (result := other.pgconn.get_result()) is not None:
                results.append(result.error_field(psycopg.pq.DiagnosticField.SQLSTATE))
            assert results[-1] in (None, b"57014")
            cancelled += results[-1] == b"57014"
            assert last_release(db, "ward") == before + (results[-1] is None)
            expect_whole(db, "ward")
            # On the very connection that was interrupted.
            publish(other, "ward")
    assert cancelled


def test_a_publication_that_takes_too_long(db: Connection, lasted: float) -> None:
    moment, timed_out = random.Random(2), 0
    for number in range(TIMES):
        change(db, "ward", number)
        before = last_release(db, "ward")
        limit = 1 + int(1000 * moment.uniform(0, lasted))
        db.execute(f"SET statement_timeout = {limit}")
        try:
            publish(db, "ward")
            done = 1
        except psycopg.errors.QueryCanceled:
            done = 0
        db.execute("SET statement_timeout = 0")
        timed_out += not done
        assert last_release(db, "ward") == before + done
        expect_whole(db, "ward")
        publish(db, "ward")
    assert timed_out


@pytest.mark.parametrize("begin", ["", "BEGIN; "], ids=["alone", "in a transaction"])
def test_a_client_that_is_gone(
    db: Connection, connect: Callable[[], Connection], lasted: float, begin: str
) -> None:
    """The release is there or not; it never is if the client had a COMMIT still to say."""
    moment = random.Random(3)
    for number in range(TIMES // 2):
        change(db, "ward", number)
        before = last_release(db, "ward")
        with connect() as other:
            other.execute("SELECT count(*) FROM mdistinct_verify('ward')")
            pid = other.info.backend_pid
            text = f"{begin}SELECT * FROM mdistinct_publish('ward')"
            other.pgconn.send_query(text.encode())
            time.sleep(moment.uniform(0, lasted))
            other.pgconn.finish()
        _wait_for_the_end_of(db, pid)
        assert last_release(db, "ward") in ((before,) if begin else (before, before + 1))
        expect_whole(db, "ward")
        publish(db, "ward")


def _wait_for_the_end_of(db: Connection, pid: int) -> None:
    deadline = time.monotonic() + PATIENCE
    while one(db, "SELECT count(*) FROM pg_stat_activity WHERE pid = %s", (pid,)):
        assert time.monotonic() < deadline
        time.sleep(0.01)
