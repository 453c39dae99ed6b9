"""Schedules, their runs, and publishing all that is due."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from pg_mdistinct.install import install, uninstall
from tests.concurrency.sessions import Background
from tests.fix_database import acting_as
from tests.fix_server import Server
from tests.integration.cases import Connection, allow_all, make_ward, one, refused
from tests.oracle.check_database import check_database

NEVER_SOON = "0 0 1 1 *"
ASLEEP = (
    "SELECT count(*) FROM pg_stat_activity"
    " WHERE wait_event = 'PgSleep' AND datname = current_database()"
)


def register(db: Connection, dataset: str, *, known: bool = True) -> None:
    """Make another dataset of the ward's table; one without a model cannot be published."""
    db.execute(
        "SELECT mdistinct_register(%s, 'ward', 'id', ARRAY['age'], 'disease', 2)", (dataset,)
    )
    if known:
        allow_all(db, dataset)


def publish_all(db: Connection) -> dict[str, int]:
    cursor = db.execute("CALL mdistinct_publish_all()")
    row = cursor.fetchone()
    assert row is not None
    assert cursor.description is not None
    return dict(zip((column.name for column in cursor.description), row, strict=True))


def run(db: Connection, dataset: str = "ward") -> str:
    return str(one(db, "SELECT status FROM mdistinct.run(%s)", (dataset,)))


def runs(db: Connection) -> list[tuple[Any, ...]]:
    return db.execute("SELECT dataset, status, release FROM mdistinct.runs ORDER BY run").fetchall()


def schedule_without_pg_cron(db: Connection, dataset: str, cron: str, since: timedelta) -> None:
    db.execute(
        "INSERT INTO mdistinct.schedules VALUES (%s, %s, 'somebody', now() - %s)",
        (dataset, cron, since),
    )


# Runs


def test_a_run_publishes_and_is_written_down(db: Connection) -> None:
    make_ward(db)
    with acting_as(db, "mdistinct_publisher"):
        assert run(db) == "published"
    row = db.execute(
        "SELECT dataset, run_by, release, sqlstate, message, hint, ended_at > started_at"
        " FROM mdistinct.runs"
    ).fetchone()
    assert row == ("ward", "mdistinct_publisher", 1, None, None, None, True)


def test_a_run_that_fails_is_written_down_and_leaves_nothing_else(db: Connection) -> None:
    make_ward(db)
    db.execute("UPDATE ward SET disease = 'Plague' WHERE id = 3")
    relations = "SELECT count(*) FROM pg_class WHERE relname ~ '^ward'"
    before = one(db, relations)
    with acting_as(db, "mdistinct_publisher"):
        assert run(db) == "failed"
    assert run(db) == "failed"
    told, named = db.execute("SELECT sqlstate, message, hint FROM mdistinct.runs ORDER BY run")
    assert told[0] == named[0] == "MD001"
    assert "Plague" not in told[1]
    assert "Plague" in named[1]
    assert "mdistinct_allow_update" in told[2]
    assert one(db, relations) == before
    assert one(db, "SELECT count(*) FROM mdistinct.releases") == 0


def test_a_run_of_an_unknown_dataset_fails(db: Connection) -> None:
    assert run(db, "nothing") == "failed"
    assert one(db, "SELECT sqlstate FROM mdistinct.runs") == "42704"
    with refused(db, "22004", "dataset"):
        db.execute("SELECT mdistinct.run(NULL)")


def test_a_run_does_not_wait_for_another(db: Connection, dsn: str) -> None:
    make_ward(db)
    with psycopg.connect(dsn) as other:
        other.execute("SELECT mdistinct_publish('ward')")
        assert run(db) == "skipped"
        assert publish_all(db) == {"published": 0, "skipped": 1, "failed": 0}
    assert run(db) == "published"
    assert runs(db) == [("ward", "skipped", None)] * 2 + [("ward", "published", 2)]
    assert one(db, "SELECT sqlstate FROM mdistinct.runs LIMIT 1") == "55P03"


def begin_slow_run(db: Connection, dsn: str, statement: str) -> psycopg.Connection[Any]:
    """Start a run whose source does not come to an end, on a connection of its own."""
    make_ward(db)
    db.execute("CREATE VIEW slow AS SELECT ward.* FROM ward, pg_sleep(60)")
    db.execute("SELECT mdistinct_register('slow', 'slow', 'id', ARRAY['age'], 'disease', 2)")
    allow_all(db, "slow")
    db.execute("SELECT mdistinct_drop('ward')")
    schedule_without_pg_cron(db, "slow", NEVER_SOON, timedelta(hours=1))
    other = psycopg.connect(dsn, autocommit=True)
    other.pgconn.send_query(statement.encode())
    until(db, ASLEEP)
    return other


def until(db: Connection, query: str) -> None:
    deadline = time.monotonic() + 30
    while not one(db, query):
        assert time.monotonic() < deadline, query
        time.sleep(0.05)


def shown(db: Connection) -> str:
    with acting_as(db, "mdistinct_admin"):
        return str(one(db, "SELECT status FROM mdistinct.schedule"))


def test_a_killed_run_leaves_a_trace_and_is_due_again(db: Connection, dsn: str) -> None:
    with begin_slow_run(db, dsn, "CALL mdistinct.run_job('slow')") as other:
        assert runs(db) == [("slow", "running", None)]
        assert shown(db) == "running"
        db.execute("SELECT pg_terminate_backend(%s)", (other.info.backend_pid,))
        until(db, "SELECT status <> 'running' FROM mdistinct.schedule")
        other.close()
    assert shown(db) == "interrupted"
    db.execute("CREATE OR REPLACE VIEW slow AS SELECT * FROM ward")
    # Its only run was interrupted, and so it is due, although the schedule is far away.
    db.execute("UPDATE mdistinct.schedules SET scheduled_at = now() - interval '400 days'")
    assert publish_all(db)["published"] == 1
    assert runs(db) == [("slow", "interrupted", None), ("slow", "published", 1)]
    assert one(db, "SELECT ended_at IS NULL FROM mdistinct.runs WHERE run = 1")
    assert shown(db) == "published"


def test_a_run_ends_the_row_that_it_began_and_no_other(db: Connection, dsn: str) -> None:
    make_ward(db)
    with psycopg.connect(dsn, autocommit=True) as other:
        begun = one(other, "SELECT mdistinct.begin_run('ward')")
        assert run(db) == "published"
        assert runs(db) == [("ward", "running", None), ("ward", "published", 1)]
        assert one(other, "SELECT run FROM mdistinct.run('ward')") == begun
    assert runs(db) == [("ward", "published", 2), ("ward", "published", 1)]


def test_nobody_holds_up_runs_by_holding_their_locks(db: Connection, dsn: str) -> None:
    make_ward(db)
    with psycopg.connect(dsn, autocommit=True) as other:
        for number in (1, 2):
            other.execute(
                "SELECT pg_advisory_lock('mdistinct.runs'::regclass::oid::int, %s)", (number,)
            )
        db.execute("CALL mdistinct.run_job('ward')")
    assert runs(db) == [("ward", "published", 1)]


def test_no_lock_outlasts_its_run(db: Connection) -> None:
    make_ward(db)
    db.execute("CALL mdistinct.run_job('ward')")
    with pytest.raises(psycopg.Error):
        db.execute("CALL mdistinct.run_job('nothing')")
    assert publish_all(db)["published"] == 1
    locks = (
        "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND database ="
        " (SELECT oid FROM pg_database WHERE datname = current_database())"
    )
    assert one(db, locks) == 0


def test_only_admins_read_the_runs_and_nobody_writes_them(db: Connection) -> None:
    make_ward(db)
    assert run(db) == "published"
    with acting_as(db, "mdistinct_admin"):
        assert len(runs(db)) == 1
        for statement in (
            "UPDATE mdistinct.runs SET message = ''",
            "DELETE FROM mdistinct.runs",
            "TRUNCATE mdistinct.runs",
            "INSERT INTO mdistinct.schedules VALUES ('ward', '* * * * *', 'me')",
            "SELECT mdistinct.add_job('ward', '* * * * *')",
            "SELECT mdistinct.remove_job('ward')",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                db.execute(statement)
    for role in ("mdistinct_publisher", "mdistinct_scheduler", "mdistinct_reader"):
        with acting_as(db, role):
            for relation in ("runs", "schedules", "schedule", "datasets"):
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    db.execute(f"SELECT FROM mdistinct.{relation}")
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                db.execute("SELECT mdistinct_schedule('ward', '* * * * *')")


# Publishing all that is due


def test_one_that_fails_does_not_stop_the_others(db: Connection) -> None:
    make_ward(db)
    register(db, "also")
    register(db, "broken", known=False)
    warnings: list[str] = []
    db.add_notice_handler(lambda diag: warnings.append(diag.message_primary or ""))
    with acting_as(db, "mdistinct_publisher"):
        assert publish_all(db) == {"published": 2, "skipped": 0, "failed": 1}
    assert runs(db) == [
        ("also", "published", 1),
        ("broken", "failed", None),
        ("ward", "published", 1),
    ]
    assert [text for text in warnings if text.startswith('failed "broken": ')]


def test_each_dataset_has_a_transaction_of_its_own(db: Connection) -> None:
    make_ward(db)
    register(db, "also")
    publish_all(db)
    assert one(db, "SELECT count(DISTINCT xmin::text) FROM mdistinct.runs") == 2


def test_nothing_is_published_where_it_cannot_commit(db: Connection) -> None:
    make_ward(db)
    with refused(db, "2D000", "transaction"), db.transaction():
        db.execute("CALL mdistinct_publish_all()")


def test_readers_may_not_publish_all(db: Connection) -> None:
    with acting_as(db, "mdistinct_reader"), pytest.raises(psycopg.errors.InsufficientPrivilege):
        db.execute("CALL mdistinct_publish_all()")


def test_a_schedule_decides_when_a_dataset_is_due(db: Connection) -> None:
    make_ward(db)
    register(db, "later")
    register(db, "now")
    schedule_without_pg_cron(db, "later", NEVER_SOON, timedelta())
    schedule_without_pg_cron(db, "now", NEVER_SOON, timedelta(days=400))
    assert publish_all(db)["published"] == 2
    assert [row[0] for row in runs(db)] == ["now", "ward"]
    # It has had its run; what has no schedule is due whenever somebody asks.
    assert publish_all(db)["published"] == 1
    assert [row[0] for row in runs(db)] == ["now", "ward", "ward"]


def test_canceling_ends_the_whole_call_and_keeps_what_was_done(db: Connection, dsn: str) -> None:
    make_ward(db)
    db.execute("CREATE VIEW slow AS SELECT ward.* FROM ward, pg_sleep(60)")
    db.execute("SELECT mdistinct_register('slow', 'slow', 'id', ARRAY['age'], 'disease', 2)")
    allow_all(db, "slow")
    register(db, "first")
    publish_all_but_slow = "SELECT mdistinct_publish('first'), mdistinct_publish('ward')"
    db.execute(publish_all_but_slow)
    running = Background(dsn, "CALL mdistinct_publish_all()")
    until(db, ASLEEP)
    db.execute("SELECT pg_cancel_backend(%s)", (running.pid,))
    with pytest.raises(psycopg.errors.QueryCanceled) as caught:
        running.answer()
    assert caught.value.diag.message_hint
    assert runs(db) == [("first", "published", 2), ("slow", "failed", None)]


# Schedules where there is no pg_cron


def test_without_pg_cron_the_hint_says_what_to_do(db: Connection) -> None:
    make_ward(db)
    expected = psycopg.errors.ObjectNotInPrerequisiteState
    with acting_as(db, "mdistinct_admin"), pytest.raises(expected) as caught:
        db.execute("SELECT mdistinct_schedule('ward', '0 2 * * 0')")
    hint = caught.value.diag.message_hint or ""
    assert "CREATE EXTENSION pg_cron" in hint
    assert "pg-mdistinct publish" in hint
    with refused(db, "55000", "no pg_cron"):
        db.execute("SELECT mdistinct_schedule('ward', '0 2 * * 0')")


@pytest.mark.parametrize(
    ("arguments", "sqlstate", "word"),
    [
        (("ward", "0 2 * *"), "22023", "4 fields"),
        (("ward", "0 25 * * *"), "22023", "hour"),
        (("ward", "0 0 30 2 *"), "22023", "never"),
        (("ward", None), "22004", "cron"),
        ((None, "0 2 * * 0"), "22004", "dataset"),
        (("nothing", "0 2 * * 0"), "42704", "nothing"),
    ],
)
def test_bad_schedules_are_refused(
    db: Connection, arguments: tuple[str | None, str | None], sqlstate: str, word: str
) -> None:
    make_ward(db)
    with refused(db, sqlstate, word):
        db.execute("SELECT mdistinct_schedule(%s, %s)", arguments)


def test_what_is_not_scheduled_cannot_be_unscheduled(db: Connection) -> None:
    make_ward(db)
    with refused(db, "42704", "not scheduled"):
        db.execute("SELECT mdistinct_unschedule('ward')")
    with refused(db, "42704", "not registered"):
        db.execute("SELECT mdistinct_unschedule('nothing')")


def test_the_next_run_is_the_same_in_every_time_zone(db: Connection) -> None:
    make_ward(db)
    schedule_without_pg_cron(db, "ward", "0 2 * * 0", timedelta())
    db.execute("SET timezone = 'Asia/Kolkata'")
    db.execute("SET datestyle = 'German'")
    query = (
        "SELECT mdistinct.next_run('0 2 * * 0', '2026-03-11 12:00 UTC') = '2026-03-15 02:00 UTC'"
    )
    assert one(db, query)
    db.execute("RESET datestyle")
    with acting_as(db, "mdistinct_admin"):
        row = db.execute("SELECT next_run, last_run, status FROM mdistinct.schedule").fetchone()
    assert row is not None
    assert row[0] > datetime.now(UTC)
    assert row[0].astimezone(UTC).strftime("%a %H:%M") == "Sun 02:00"
    assert row[1:] == (None, None)


def test_the_schedule_shows_the_last_run_only(db: Connection) -> None:
    make_ward(db)
    schedule_without_pg_cron(db, "ward", NEVER_SOON, timedelta(hours=1))
    assert run(db) == "published"
    db.execute("UPDATE ward SET disease = 'Plague' WHERE id = 3")
    assert run(db) == "failed"
    rows = db.execute("SELECT status, message ~ 'Plague', release FROM mdistinct.schedule")
    assert rows.fetchall() == [("failed", True, None)]


# Schedules of the real pg_cron


@pytest.fixture
def cron_dsn(server: Server, template: str) -> Iterator[str]:
    """The one database that the server's pg_cron serves, with the plugin, for one test at a time.

    The template comes first: with it the server's code is there and compiled.
    """
    with server.maintenance() as connection:
        name = one(connection, "SELECT current_setting('cron.database_name', true)")
        if not name:
            pytest.skip("the server has not loaded pg_cron")
        # Held until the connection closes: tests of other workers wait here.
        connection.execute("SELECT pg_advisory_lock(hashtext('cron_dsn'))")
        dsn = server.dsn(name)
        prepare(dsn)
        yield dsn


def prepare(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        if one(connection, "SELECT to_regprocedure('mdistinct.run_job(name)') IS NULL"):
            connection.execute("CREATE EXTENSION IF NOT EXISTS pg_cron")
            install(dsn, on_message=lambda _: None)


@pytest.fixture
def cron_db(cron_dsn: str) -> Iterator[Connection]:
    """A connection to it, with the ward; all of it goes after the test, the jobs too."""
    with psycopg.connect(cron_dsn, autocommit=True) as connection:
        make_ward(connection)
        try:
            yield connection
            assert check_database(connection) == []
        finally:
            connection.execute("SELECT mdistinct_drop(dataset) FROM mdistinct.datasets")
            connection.execute("DROP TABLE ward CASCADE")
            connection.execute("TRUNCATE mdistinct.runs")
        assert jobs(connection) == []


def jobs(db: Connection) -> list[tuple[Any, ...]]:
    return db.execute(
        "SELECT jobname, schedule, username FROM cron.job WHERE jobname LIKE 'mdistinct:%'"
    ).fetchall()


def test_a_schedule_is_a_job_of_the_scheduler(cron_db: Connection) -> None:
    with acting_as(cron_db, "mdistinct_admin"):
        first = one(cron_db, "SELECT mdistinct_schedule('ward', '0 2 * * 0')")
        assert first == one(cron_db, "SELECT next_run FROM mdistinct.schedule")
        row = cron_db.execute("SELECT dataset, cron, scheduled_by FROM mdistinct.schedule")
        assert row.fetchall() == [("ward", "0 2 * * 0", "mdistinct_admin")]
    assert jobs(cron_db) == [("mdistinct:ward", "0 2 * * 0", "mdistinct_scheduler")]


def test_a_second_schedule_replaces_the_first(cron_db: Connection) -> None:
    for cron in ("0 2 * * 0", "@daily"):
        cron_db.execute("SELECT mdistinct_schedule('ward', %s)", (cron,))
    assert jobs(cron_db) == [("mdistinct:ward", "@daily", "mdistinct_scheduler")]
    assert one(cron_db, "SELECT array_agg(cron) FROM mdistinct.schedule") == ["@daily"]


def test_unscheduling_and_dropping_remove_the_job(cron_db: Connection) -> None:
    name = 'o\'ne "two" \\'
    register(cron_db, name)
    for statement in ("mdistinct_unschedule", "mdistinct_drop"):
        cron_db.execute("SELECT mdistinct_schedule(%s, '0 2 * * 0')", (name,))
        assert jobs(cron_db) == [(f"mdistinct:{name}", "0 2 * * 0", "mdistinct_scheduler")]
        with acting_as(cron_db, "mdistinct_admin"):
            cron_db.execute(f"SELECT {statement}(%s)", (name,))
        assert jobs(cron_db) == []
        assert one(cron_db, "SELECT count(*) FROM mdistinct.schedule") == 0


def test_a_job_that_somebody_removed_by_hand_is_no_trouble(cron_db: Connection) -> None:
    cron_db.execute("SELECT mdistinct_schedule('ward', '0 2 * * 0')")
    cron_db.execute("SELECT cron.unschedule(jobid) FROM cron.job WHERE jobname = 'mdistinct:ward'")
    cron_db.execute("SELECT mdistinct_unschedule('ward')")


def test_a_missing_grant_is_named(cron_db: Connection) -> None:
    cron_db.execute("REVOKE USAGE ON SCHEMA cron FROM mdistinct_scheduler")
    with refused(cron_db, "42501", "mdistinct_scheduler"):
        cron_db.execute("SELECT mdistinct_schedule('ward', '0 2 * * 0')")
    cron_db.execute("GRANT USAGE ON SCHEMA cron TO mdistinct_scheduler")


def test_uninstalling_ends_the_schedules(cron_db: Connection, cron_dsn: str) -> None:
    cron_db.execute("SELECT mdistinct_schedule('ward', '0 2 * * 0')")
    uninstall(cron_dsn, on_message=lambda _: None)
    assert jobs(cron_db) == []
    install(cron_dsn, on_message=lambda _: None)
    assert one(cron_db, "SELECT count(*) FROM mdistinct.schedule") == 0


@pytest.mark.slow
def test_schedules_fire(cron_db: Connection, cron_dsn: str) -> None:
    register(cron_db, "broken", known=False)
    register(cron_db, "busy")
    # Soon, and once: a second run would come in between if this one takes its time.
    minute = (datetime.now(UTC) + timedelta(seconds=75)).minute
    for dataset in ("ward", "broken", "busy"):
        cron_db.execute("SELECT mdistinct_schedule(%s, %s)", (dataset, f"{minute} * * * *"))
    with psycopg.connect(cron_dsn) as other:
        # What a publication does first; a whole one would keep other tests from dropping roles.
        other.execute("SELECT FROM mdistinct.datasets WHERE dataset = 'busy' FOR UPDATE")
        wait_for_runs(cron_db, 3)
    rows = cron_db.execute("SELECT dataset, status, release, message FROM mdistinct.schedule")
    shown = {row[0]: row[1:] for row in rows}
    assert shown["ward"] == ("published", 1, None)
    assert shown["busy"][0] == "skipped"
    assert shown["broken"][0] == "failed"
    assert "4 values" in shown["broken"][2]
    assert "Flu" not in shown["broken"][2]
    assert one(cron_db, "SELECT array_agg(DISTINCT run_by) FROM mdistinct.runs") == [
        "mdistinct_scheduler"
    ]
    assert one(cron_db, "SELECT count(*) FROM mdistinct_published.ward") >= 12
    # Whoever watches pg_cron's own list sees the failure there, too.
    details = cron_db.execute(
        "SELECT j.jobname, d.status FROM cron.job_run_details AS d JOIN cron.job AS j USING (jobid)"
    ).fetchall()
    assert set(details) == {
        ("mdistinct:ward", "succeeded"),
        ("mdistinct:broken", "failed"),
        ("mdistinct:busy", "succeeded"),
    }


def wait_for_runs(db: Connection, count: int) -> None:
    # Schedules are to the minute, and the first run in a session loads the code.
    deadline = time.monotonic() + 180
    # pg_cron notes a bit later than we do that a run has ended.
    still_running = (
        "SELECT count(*) FROM cron.job_run_details WHERE status NOT IN ('succeeded', 'failed')"
    )
    while one(db, "SELECT count(DISTINCT dataset) FROM mdistinct.runs") < count or one(
        db, still_running
    ):
        if time.monotonic() > deadline:
            details = "SELECT command, status, return_message FROM cron.job_run_details"
            pytest.fail(f"{runs(db)}\n{db.execute(details).fetchall()}")
        time.sleep(0.5)
