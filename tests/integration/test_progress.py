"""A long publication can be cancelled at any moment, and says how far it is."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import psycopg
import pytest

from tests.integration.cases import Connection, one, publish

MANY = 600_000
WAIT_SECONDS = 60.0
ATTEMPTS = 20

# A session of its own: what it has computed and compiled so far is known.
LONG_WORK = """
DO LANGUAGE plpython3u $python$
import time
from pg_mdistinct.server.progress import Progress
with Progress(plpy) as progress:
    for step in range({steps}):
        GD["step"] = step
        time.sleep(0.01)
        progress("split", step / {steps})
$python$
"""

HOW_FAR = "DO LANGUAGE plpython3u $$ plpy.notice(GD['step']) $$"

COMPILED = """
DO LANGUAGE plpython3u $python$
import sys
from numba.core.dispatcher import Dispatcher
kernels = [
    found
    for name, module in list(sys.modules.items()) if name.startswith("pg_mdistinct.core.")
    for found in vars(module).values() if isinstance(found, Dispatcher)
]
plpy.notice(sum(len(kernel.signatures) for kernel in kernels))
plpy.notice(sum(sum(kernel.stats.cache_misses.values()) for kernel in kernels))
$python$
"""


@pytest.fixture
def crowd(db: Connection) -> Connection:
    """A dataset that takes a while to publish."""
    db.execute("CREATE TABLE public.crowd (id integer, age integer, pay integer, value integer)")
    db.execute(
        "INSERT INTO public.crowd SELECT i, i %% 97, i * 7 %% 1009, i %% 40"
        " FROM generate_series(1, %s) AS i",
        (MANY,),
    )
    db.execute("SELECT mdistinct_register('crowd', 'crowd', 'id', '{age,pay}', 'value', 5)")
    db.execute(
        "CREATE VIEW public.moves AS SELECT i AS old_value, i / 10 * 10 + j AS new_value"
        " FROM generate_series(0, 39) AS i, generate_series(0, 9) AS j"
    )
    db.execute("SELECT mdistinct_load_updates('crowd', 'moves')")
    return db


def nothing_written(db: Connection) -> bool:
    tables = one(
        db,
        "SELECT count(*) FROM pg_class WHERE relnamespace = 'mdistinct_data'::regnamespace"
        " AND relname ~ '^crowd_([vp][0-9]+|g([2-9]|1[0-9]))$'",
    )
    counts = "SELECT (SELECT count(*) FROM {}) + (SELECT count(*) FROM {})"
    rows = one(db, counts.format("mdistinct.releases", "mdistinct_data.crowd_groups"))
    return bool(tables == 0 and rows == 0)


def await_that(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def running(dsn: str, statement: str, pool: ThreadPoolExecutor) -> tuple[int, Future[Any]]:
    """Run a statement in a session of its own; return its process and what comes of it."""
    session = psycopg.connect(dsn, autocommit=True, application_name="patient")

    def run() -> Any:
        with session:
            return session.execute(statement)

    return session.info.backend_pid, pool.submit(run)


def cancelled_when_seen(crowd: Connection, dsn: str, pool: ThreadPoolExecutor) -> bool:
    """Publish and cancel that as soon as it shows; it may end before it was seen."""
    attempt = "BEGIN; SELECT mdistinct_publish('crowd'); ROLLBACK"
    seen = "SELECT count(*) FROM mdistinct.progress WHERE pid = %s"
    pid, result = running(dsn, attempt, pool)
    await_that(lambda: result.done() or one(crowd, seen, (pid,)) > 0)
    crowd.execute("SELECT pg_cancel_backend(%s)", (pid,))
    try:
        result.result(WAIT_SECONDS)
    except psycopg.errors.QueryCanceled:
        return True
    return False


def test_a_publication_is_cancelled_while_it_computes(crowd: Connection, dsn: str) -> None:
    with ThreadPoolExecutor() as pool:
        assert any(cancelled_when_seen(crowd, dsn, pool) for _ in range(ATTEMPTS))
    assert nothing_written(crowd)
    crowd.execute("DELETE FROM public.crowd WHERE id > 400")
    assert publish(crowd, "crowd")["release"] == 1


def test_a_timeout_strikes_at_any_moment(crowd: Connection) -> None:
    cancelled = 0
    for milliseconds in (30, 170, 410, 650):
        try:
            with crowd.transaction():
                crowd.execute(f"SET LOCAL statement_timeout = {milliseconds}")
                publish(crowd, "crowd")
                raise psycopg.Rollback
        except psycopg.errors.QueryCanceled:
            cancelled += 1
        assert nothing_written(crowd)
    assert cancelled > 1


def test_a_session_that_is_ended_takes_no_other_with_it(crowd: Connection, dsn: str) -> None:
    ended = 0
    with ThreadPoolExecutor() as pool:
        started = time.monotonic()
        running(dsn, "SELECT mdistinct_publish('crowd')", pool)[1].result(WAIT_SECONDS)
        lasted = time.monotonic() - started
        for share in (0.3, 0.5, 0.6, 0.7, 0.8, 0.9):
            pid, result = running(dsn, "SELECT mdistinct_publish('crowd')", pool)
            time.sleep(share * lasted)
            crowd.execute("SELECT pg_terminate_backend(%s)", (pid,))
            try:
                result.result(WAIT_SECONDS)
            except psycopg.errors.AdminShutdown:
                ended += 1
    # A process that crashes ends all the others with it, and so the session that this one is.
    assert one(crowd, "SELECT count(*) FROM public.crowd") == MANY
    assert ended
    assert one(crowd, "SELECT count(*) FROM mdistinct.releases") == 7 - ended


def test_work_between_statements_can_be_cancelled(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as session:
        with pytest.raises(psycopg.errors.UndefinedObject):
            session.execute("SELECT mdistinct_publish('nothing')")
        session.execute("SET statement_timeout = 500")
        # Too short for a notice, which would be a chance to be cancelled too.
        with pytest.raises(psycopg.errors.QueryCanceled):
            session.execute(LONG_WORK.format(steps=120))
        session.execute("RESET statement_timeout")
        # It ended in the middle of the work, not when the work was done.
        notices: list[str] = []
        session.add_notice_handler(lambda notice: notices.append(str(notice.message_primary)))
        session.execute(HOW_FAR)
        assert int(notices[-1]) < 119


def test_progress_is_told_and_seen(db: Connection, dsn: str) -> None:
    notices: list[str] = []
    with psycopg.connect(dsn, autocommit=True, application_name="patient") as session:
        session.add_notice_handler(lambda notice: notices.append(str(notice.message_primary)))
        with pytest.raises(psycopg.errors.UndefinedObject):
            session.execute("SELECT mdistinct_publish('nothing')")
        pid = session.info.backend_pid
        seen = "SELECT phase, share FROM mdistinct.progress WHERE pid = %s"
        with ThreadPoolExecutor() as pool:
            work = pool.submit(session.execute, LONG_WORK.format(steps=500))
            db.execute("SET ROLE mdistinct_publisher")
            shown: list[tuple[str, float]] = []

            def is_shown() -> bool:
                shown[:] = db.execute(seen, (pid,)).fetchall()
                return bool(shown)

            await_that(is_shown)
            db.execute("RESET ROLE")
            work.result(WAIT_SECONDS)
        ((phase, share),) = shown
        assert phase == "split"
        assert 0 <= share <= 1
        assert notices
        assert all(notice.startswith("split: ") for notice in notices)
        assert one(session, "SHOW application_name") == "patient"
        assert one(db, "SELECT count(*) FROM mdistinct.progress") == 0


def test_readers_see_no_progress(db: Connection) -> None:
    db.execute("SET ROLE mdistinct_reader")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        db.execute("TABLE mdistinct.progress")


def test_publishing_compiles_nothing(crowd: Connection, dsn: str) -> None:
    crowd.execute("DELETE FROM public.crowd WHERE id > 400")
    publish(crowd, "crowd")
    crowd.execute("UPDATE public.crowd SET value = value / 10 * 10 + id % 10 WHERE id > 200")
    notices: list[int] = []
    with psycopg.connect(dsn, autocommit=True) as session:
        publish(session, "crowd")
        session.add_notice_handler(lambda notice: notices.append(int(notice.message_primary or 0)))
        session.execute(COMPILED)
    loaded, compiled = notices
    assert loaded > 0
    assert compiled == 0
