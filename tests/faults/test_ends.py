"""Publications that are cancelled, time out, or lose their client."""

from __future__ import annotations

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
    moments,
    publish,
    seconds_to_publish,
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
    return seconds_to_publish(db, "ward")


def test_a_cancelled_publication(
    db: Connection, connect: Callable[[], Connection], lasted: float
) -> None:
    cancelled = 0
    with connect() as other:
        publish(other, "ward")
        for number, moment in enumerate(moments(1, TIMES, lasted)):
            change(db, "ward", number)
            before = last_release(db, "ward")
            begin_publication(other, "ward")
            time.sleep(moment)
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
    timed_out = 0
    for number, moment in enumerate(moments(2, TIMES, lasted)):
        change(db, "ward", number)
        before = last_release(db, "ward")
        db.execute(f"SET statement_timeout = {1 + int(1000 * moment)}")
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
    undone = 0
    for number, moment in enumerate(moments(3, TIMES // 2, lasted)):
        change(db, "ward", number)
        before = last_release(db, "ward")
        with connect() as other:
            other.execute("SELECT count(*) FROM mdistinct_verify('ward')")
            # Otherwise the server notices when it has something to say, and that is in the end.
            other.execute("SET client_connection_check_interval = 1")
            pid = other.info.backend_pid
            text = f"{begin}SELECT * FROM mdistinct_publish('ward')"
            other.pgconn.send_query(text.encode())
            time.sleep(moment)
            other.pgconn.finish()
        _wait_for_the_end_of(db, pid)
        assert last_release(db, "ward") in ((before,) if begin else (before, before + 1))
        undone += last_release(db, "ward") == before
        expect_whole(db, "ward")
        publish(db, "ward")
    assert undone


def _wait_for_the_end_of(db: Connection, pid: int) -> None:
    deadline = time.monotonic() + PATIENCE
    while one(db, "SELECT count(*) FROM pg_stat_activity WHERE pid = %s", (pid,)):
        assert time.monotonic() < deadline
        time.sleep(0.01)
