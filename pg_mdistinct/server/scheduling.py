"""Publications without a person: schedules, their runs, and all that is due."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pg_mdistinct.core.errors import MdistinctError
from pg_mdistinct.server import caller, catalog, cron_expression
from pg_mdistinct.server.audit import audited
from pg_mdistinct.server.errors import bad_parameter, entry_point, require, translated
from pg_mdistinct.server.plpython import Plpy, Row, run, sqlstate_of

PUBLISHED, SKIPPED, FAILED = "published", "skipped", "failed"
RUNNING, INTERRUPTED = "running", "interrupted"
_QUERY_CANCELED = "57014"
_INVALID_TERMINATION = "2D000"
_LACKS_PRIVILEGE = "42501"
# Of a run: mdistinct.run_sessions finds who holds it.
_LOCK = "'mdistinct.runs'::pg_catalog.regclass::pg_catalog.oid::pg_catalog.int4, $1"
# A name of pg_cron holds 63 bytes, a dataset's up to 50.
_JOB = "mdistinct:"


@entry_point
@audited("schedule", writes=True)
def schedule(plpy: Plpy, dataset: str, cron: str) -> str | None:
    """Let pg_cron publish the dataset; return when it will do so first."""
    require(dataset=dataset, cron=cron)
    moments = cron_expression.parse(cron)
    catalog.find(plpy, dataset)
    _require_pg_cron(plpy)
    row = run(
        plpy,
        "INSERT INTO mdistinct.schedules AS s (dataset, cron, scheduled_by)"
        f" VALUES ($1, $2, {caller.CALLER})"
        " ON CONFLICT (dataset) DO UPDATE SET cron = EXCLUDED.cron,"
        " scheduled_by = EXCLUDED.scheduled_by, scheduled_at = EXCLUDED.scheduled_at"
        " RETURNING s.scheduled_at",
        ["name", "text"],
        [dataset, cron],
    )[0]
    run(plpy, "SELECT mdistinct.add_job($1, $2)", ["name", "text"], [dataset, cron])
    return _written(moments.next_after(_moment(row["scheduled_at"], _zone(plpy))))


@entry_point
@audited("unschedule", writes=True)
def unschedule(plpy: Plpy, dataset: str) -> None:
    """End the dataset's schedule."""
    catalog.find(plpy, dataset)
    if not forget(plpy, dataset):
        raise MdistinctError(
            f'dataset "{dataset}" is not scheduled',
            hint="SELECT dataset, cron FROM mdistinct.schedule lists those that are.",
            sqlstate="42704",
        )


def forget(plpy: Plpy, dataset: str) -> bool:
    """Remove the dataset's schedule and its job; tell whether there was one."""
    gone = run(
        plpy, "DELETE FROM mdistinct.schedules AS s WHERE s.dataset = $1", ["name"], [dataset]
    )
    # pg_cron itself may have been dropped since, and its jobs with it.
    if gone.nrows() and _has_pg_cron(plpy):
        run(plpy, "SELECT mdistinct.remove_job($1)", ["name"], [dataset])
    return bool(gone.nrows())


@entry_point
def add_job(plpy: Plpy, dataset: str, cron: str) -> None:
    """Make the job as the role that it is to run as; one of the same name is replaced."""
    command = f"CALL mdistinct.run_job({plpy.quote_literal(dataset)})"
    try:
        with plpy.subtransaction():
            run(
                plpy,
                "SELECT cron.schedule($1, $2, $3)",
                ["text"] * 3,
                [_JOB + dataset, cron, command],
            )
    except plpy.SPIError as error:
        raise bad_parameter(
            f"pg_cron refuses to schedule '{cron}': {error}",
            "Intervals in seconds need pg_cron 1.5 or later; five fields will always do.",
        ) from None


@entry_point
def remove_job(plpy: Plpy, dataset: str) -> None:
    """Remove the job, if nobody has done so before; pg_cron shows a role its own jobs only."""
    run(
        plpy,
        "SELECT cron.unschedule(j.jobid) FROM cron.job AS j"
        " WHERE j.jobname = $1 AND j.username = current_user",
        ["text"],
        [_JOB + dataset],
    )


@entry_point
def next_run(plpy: Plpy, cron: str, after: str) -> str | None:
    """Return the first moment after the given one at which the expression comes round."""
    return _written(cron_expression.parse(cron).next_after(_moment(after, _zone(plpy))))


@entry_point
def begin_run(plpy: Plpy, dataset: str) -> int:
    """Write down that a run begins, for its caller to commit, so that a killed one leaves a trace.

    The session's lock tells a run that still goes on from one whose session is gone.
    """
    require(dataset=dataset)
    run(
        plpy,
        "UPDATE mdistinct.runs AS r SET status = $2 WHERE r.status = $1"
        " AND mdistinct.run_status(r.run, r.status) = $2",
        ["text"] * 2,
        [RUNNING, INTERRUPTED],
    )
    number = _next_number(plpy)
    # Anybody can hold any advisory lock; numbers that this spoils are passed over.
    while not run(
        plpy, f"SELECT pg_catalog.pg_try_advisory_lock({_LOCK}) AS held", ["int4"], [number]
    )[0]["held"]:
        number = _next_number(plpy)
    _insert_run(plpy, number, dataset)
    return number


@entry_point
def run_once(plpy: Plpy, dataset: str) -> Row:
    """Publish, and write down how it ended; what fails is undone, and its trace kept.

    Whoever publishes the dataset already will do: a second publication is not waited for, so that
    runs do not pile up behind a long one.
    """
    require(dataset=dataset)
    number = _begun_here(plpy, dataset)
    if number is None:
        number = _next_number(plpy)
        _insert_run(plpy, number, dataset)
    release: int | None = None
    told: MdistinctError | None = None
    status = PUBLISHED
    try:
        with plpy.subtransaction():
            statement = "SELECT p.release FROM public.mdistinct_publish($1) AS p"
            release = run(plpy, statement, ["name"], [dataset])[0]["release"]
    except plpy.SPIError as error:
        told = translated(error)
        status = SKIPPED if told.sqlstate == catalog.LOCK_NOT_AVAILABLE else FAILED
    return run(
        plpy,
        "UPDATE mdistinct.runs AS r SET ended_at = pg_catalog.clock_timestamp(), status = $2,"
        " release = $3, sqlstate = $4, message = $5, hint = $6 WHERE r.run = $1 RETURNING r.*",
        ["int8", "text", "int4", "text", "text", "text"],
        [
            number,
            status,
            release,
            *((told.sqlstate, told.message, told.hint or None) if told else (None, None, None)),
        ],
    )[0]


@entry_point
def run_job(plpy: Plpy, dataset: str) -> None:
    """Run once, and fail where that failed, for those who watch pg_cron's own list of runs."""
    _commit(plpy)
    row = _committed_run(plpy, dataset)
    if row["status"] == FAILED:
        raise MdistinctError(row["message"], hint=row["hint"] or "", sqlstate=row["sqlstate"])


@entry_point
def publish_all(plpy: Plpy) -> Row:
    """Publish all that is due, each dataset in its own transaction; count how they ended."""
    # Tells at once, and not after the first publication, whether there can be others.
    _commit(plpy)
    due = [
        row["dataset"]
        for row in plpy.execute("SELECT * FROM mdistinct.due_datasets() AS d (dataset)")
    ]
    ends: Counter[str] = Counter()
    for dataset in due:
        row = _committed_run(plpy, dataset)
        ends[row["status"]] += 1
        if row["status"] != PUBLISHED:
            plpy.warning(f'{row["status"]} "{dataset}": {row["message"]}', hint=row["hint"] or "")
        if row["sqlstate"] == _QUERY_CANCELED:
            raise MdistinctError(
                f'canceled while publishing "{dataset}"',
                hint="What was published before stays; the other datasets are still due.",
                sqlstate=_QUERY_CANCELED,
            )
    return {status: ends[status] for status in (PUBLISHED, SKIPPED, FAILED)}


@entry_point
def due_datasets(plpy: Plpy) -> list[str]:
    """Return datasets without a schedule, and those whose schedule has come round since they ran.

    A run that failed has been a run: its dataset is due again when its schedule says so. One that
    was interrupted has not.
    """
    zone = _zone(plpy)
    rows = plpy.execute(
        "SELECT d.dataset, s.cron, pg_catalog.now() AS now,"
        " greatest(s.scheduled_at, (SELECT pg_catalog.max(r.started_at) FROM mdistinct.runs AS r"
        " WHERE r.dataset = d.dataset"
        " AND mdistinct.run_status(r.run, r.status) <> 'interrupted')) AS since"
        " FROM mdistinct.datasets AS d LEFT JOIN mdistinct.schedules AS s USING (dataset)"
        " ORDER BY d.dataset"
    )
    return [row["dataset"] for row in rows if row["cron"] is None or _has_come_round(row, zone)]


def _has_come_round(row: Row, zone: tzinfo) -> bool:
    moment = cron_expression.parse(row["cron"]).next_after(_moment(row["since"], zone))
    return moment is not None and moment <= _moment(row["now"], zone)


def _committed_run(plpy: Plpy, dataset: str) -> Row:
    number = run(plpy, "SELECT mdistinct.begin_run($1) AS run", ["pg_catalog.name"], [dataset])[0][
        "run"
    ]
    try:
        _commit(plpy)
        row = run(plpy, "SELECT * FROM mdistinct.run($1)", ["pg_catalog.name"], [dataset])[0]
        _commit(plpy)
    finally:
        run(plpy, f"SELECT pg_catalog.pg_advisory_unlock({_LOCK})", ["pg_catalog.int4"], [number])
    return row


def _next_number(plpy: Plpy) -> int:
    row = plpy.execute(
        "SELECT pg_catalog.nextval(pg_catalog.pg_get_serial_sequence('mdistinct.runs', 'run'))"
    )[0]
    return int(row["nextval"])


def _insert_run(plpy: Plpy, number: int, dataset: str) -> None:
    run(
        plpy,
        "INSERT INTO mdistinct.runs (run, dataset, run_by, started_at, status)"
        f" OVERRIDING SYSTEM VALUE VALUES ($1, $2, {caller.CALLER},"
        " pg_catalog.clock_timestamp(), $3)",
        ["int8", "name", "text"],
        [number, dataset, RUNNING],
    )


def _begun_here(plpy: Plpy, dataset: str) -> int | None:
    """Return the run of the dataset that this session has begun and not ended, if there is one."""
    rows = run(
        plpy,
        "SELECT pg_catalog.max(r.run) AS run FROM mdistinct.runs AS r"
        " WHERE r.dataset = $1 AND r.status = $2"
        " AND pg_catalog.pg_backend_pid() = ANY (mdistinct.run_sessions(r.run))",
        ["name", "text"],
        [dataset, RUNNING],
    )
    number: int | None = rows[0]["run"]
    return number


def _commit(plpy: Plpy) -> None:
    try:
        plpy.commit()
    except plpy.SPIError as error:
        if sqlstate_of(error) != _INVALID_TERMINATION:
            raise
        raise MdistinctError(
            "each dataset is published in a transaction of its own, which is not possible here",
            hint="CALL it outside of any transaction block or function.",
            sqlstate=_INVALID_TERMINATION,
        ) from None


def _has_pg_cron(plpy: Plpy) -> bool:
    rows = plpy.execute("SELECT FROM pg_catalog.pg_extension AS e WHERE e.extname = 'pg_cron'")
    return bool(rows.nrows())


def _require_pg_cron(plpy: Plpy) -> None:
    """Refuse to schedule where pg_cron is not, or does not let us; say how to change that."""
    database = plpy.execute("SELECT pg_catalog.current_database() AS name")[0]["name"]
    grant = "GRANT USAGE ON SCHEMA cron TO mdistinct_scheduler"
    if not _has_pg_cron(plpy):
        raise MdistinctError(
            f'there is no pg_cron in the database "{database}"',
            hint="Set shared_preload_libraries = 'pg_cron' and cron.database_name = "
            f"{plpy.quote_literal(database)}, restart the server, then as a superuser:"
            f" CREATE EXTENSION pg_cron; {grant}; without pg_cron, let cron or a systemd timer"
            " call: pg-mdistinct publish",
            sqlstate="55000",
        )
    allowed = "pg_catalog.has_schema_privilege('mdistinct_scheduler', 'cron', 'USAGE')"
    if not plpy.execute(f"SELECT {allowed} AS allowed")[0]["allowed"]:
        raise MdistinctError(
            "the role mdistinct_scheduler may not use pg_cron",
            hint=f"Let a superuser run: {grant}",
            sqlstate=_LACKS_PRIVILEGE,
        )


def _zone(plpy: Plpy) -> tzinfo:
    """Return the zone in which pg_cron reads expressions: GMT, unless cron.timezone says otherwise.

    Versions before 1.5 know GMT alone, and PostgreSQL knows zones that Python does not.
    """
    # Not current_setting: what somebody sets where pg_cron does not know it means nothing.
    rows = plpy.execute(
        "SELECT s.setting FROM pg_catalog.pg_settings AS s WHERE s.name = 'cron.timezone'"
    )
    try:
        return ZoneInfo(rows[0]["setting"]) if rows.nrows() else UTC
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return UTC


def _moment(text: str, zone: tzinfo) -> datetime:
    return datetime.fromisoformat(text).astimezone(zone)


def _written(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()
