"""`doctor` finds what is wrong with a server or a dataset, and says what to do."""

from __future__ import annotations

import json
from collections.abc import Callable

import psycopg
import pytest

from pg_mdistinct import __version__
from pg_mdistinct.cli.doctor.dataset import dataset_findings
from pg_mdistinct.cli.doctor.findings import Finding
from pg_mdistinct.cli.doctor.server import server_findings
from tests.integration.cli_cases import (
    Connection,
    as_role,
    invoke,
    make_hospital,
    refused,
    succeeded,
)

SERVER = [
    "connection",
    "PostgreSQL",
    "PL/Python",
    "plugin",
    "server's Python",
    "revision",
    "roles",
    "server code",
    "kernels",
    "pg_cron",
]
DATASET = [
    "dataset",
    "source",
    "update model",
    "next release",
    "history",
    "schedule",
    "last run",
]


def test_a_sound_server_and_dataset(dsn: str, db: Connection) -> None:
    make_hospital(dsn, db)
    found = json.loads(succeeded(dsn, "doctor", "hospital", "--json").stdout)
    assert [finding["check"] for finding in found] == SERVER + DATASET
    assert {finding["status"] for finding in found} == {"ok"}
    details = {finding["check"]: finding["detail"] for finding in found}
    assert __version__ in details["plugin"]
    assert "numba" in details["server's Python"]
    assert "2 releases" in details["dataset"]
    shown = succeeded(dsn, "doctor").output
    assert shown.endswith("no problems\n")
    assert "Fix:" not in shown


def test_what_a_reader_may_not_see_is_skipped(dsn: str, db: Connection) -> None:
    make_hospital(dsn, db, releases=1)
    reader = as_role(dsn, "mdistinct_reader")
    found = json.loads(succeeded(reader, "doctor", "hospital", "--json").stdout)
    status = {finding["check"]: finding["status"] for finding in found}
    assert (status["plugin"], status["roles"]) == ("ok", "ok")
    assert (status["server's Python"], status["dataset"]) == ("skipped", "skipped")
    assert "source" not in status


def test_an_admin_sees_the_dataset(dsn: str, db: Connection) -> None:
    make_hospital(dsn, db, releases=1)
    admin = as_role(dsn, "mdistinct_admin")
    found = json.loads(succeeded(admin, "doctor", "hospital", "--json").stdout)
    assert {f["check"] for f in found if f["status"] == "ok"} >= set(DATASET)


def test_databases_without_the_plugin(empty_dsn: str) -> None:
    said = refused(empty_dsn, "doctor")
    assert "Fix: Run: pg-mdistinct install" in said
    assert said.endswith("1 problem")
    nowhere = psycopg.conninfo.make_conninfo(empty_dsn, dbname="no such database")
    found = json.loads(invoke(nowhere, "doctor", "--json").stdout)
    assert [(f["check"], f["status"]) for f in found] == [("connection", "problem")]


def test_an_unknown_dataset(dsn: str) -> None:
    assert 'dataset "nowhere" is not registered' in refused(dsn, "doctor", "nowhere")


def wrong(findings: list[Finding]) -> dict[str, str]:
    """What was found wrong, by check; each says how it is to be fixed."""
    problems = [finding for finding in findings if finding.status == "problem"]
    assert all(finding.fix for finding in problems)
    return {finding.check: f"{finding.detail} {finding.fix}" for finding in problems}


def changed(db: Connection, old: str, new: str) -> None:
    """Changes the text of mdistinct_publish, from which the plugin's version and code are read."""
    row = db.execute(
        "SELECT pg_get_functiondef('mdistinct_publish(name, boolean)'::regprocedure)"
    ).fetchone()
    assert row is not None
    assert old in row[0]
    db.execute(row[0].replace(old, new))


def rename_code(db: Connection) -> None:
    changed(db, f"/pg_mdistinct/{__version__}'", "/nowhere'")


SERVER_FAULTS: list[tuple[str | Callable[[Connection], None], str, str]] = [
    ("UPDATE mdistinct.alembic_version SET version_num = '0001'", "revision", "upgrade"),
    (
        lambda db: changed(db, f"mdistinct {__version__} in", "mdistinct 0.0.9 in"),
        "plugin",
        "0.0.9",
    ),
    ("DROP FUNCTION mdistinct_publish", "plugin", "pg-mdistinct install"),
    ("ALTER ROLE mdistinct_reader CREATEDB", "roles", "mdistinct_reader missing"),
    ("REVOKE mdistinct_reader FROM mdistinct_admin", "roles", "members"),
    (rename_code, "kernels", "not compiled"),
]


def test_faults_of_a_server(db: Connection) -> None:
    assert wrong(list(server_findings(db))) == {}
    for fault, check, words in SERVER_FAULTS:
        # Undone in the end: roles belong to the databases of other tests, too.
        with db.transaction(force_rollback=True):
            if isinstance(fault, str):
                db.execute(fault.encode())
            else:
                fault(db)
            found = wrong(list(server_findings(db)))
        assert list(found) == ([check] if check != "kernels" else ["server code", check])
        assert words in found[check]


@pytest.mark.tampered
def test_faults_of_a_dataset(dsn: str, db: Connection) -> None:
    make_hospital(dsn, db)
    assert wrong(list(dataset_findings(db, "hospital"))) == {}
    started = "now() - interval '1 hour'"
    for fault, check, words in (
        ("DROP TABLE hospital", "source", "hospital"),
        ("ALTER TABLE hospital RENAME zip TO code", "source", "zip"),
        ("UPDATE hospital SET disease = 'Gout' WHERE name = 'Ben'", "update model", '"Gout"'),
        ("UPDATE mdistinct.datasets SET m = 50", "next release", "50"),
        ("UPDATE hospital SET hours = NULL WHERE name = 'Ben'", "next release", "hours"),
        (
            "UPDATE mdistinct_data.hospital_groups SET candidates = candidates[1:1]",
            "history",
            "m-unique",
        ),
        (
            "INSERT INTO mdistinct.runs (dataset, run_by, started_at, status)"
            f" VALUES ('hospital', 'me', {started}, 'running')",
            "last run",
            "interrupted",
        ),
        (
            "INSERT INTO mdistinct.runs"
            " (dataset, run_by, started_at, ended_at, status, sqlstate, message, hint) VALUES"
            f" ('hospital', 'me', {started}, now(), 'failed', 'MD001', 'no good', 'try harder')",
            "last run",
            "no good try harder",
        ),
    ):
        with db.transaction(force_rollback=True):
            db.execute(fault.encode())
            found = wrong(list(dataset_findings(db, "hospital")))
        assert list(found) == [check]
        assert words in found[check]


def test_a_schedule_without_pg_cron(dsn: str, db: Connection) -> None:
    make_hospital(dsn, db, releases=0)
    db.execute("INSERT INTO mdistinct.schedules VALUES ('hospital', '0 2 * * 0', 'me', now())")
    assert "pg-mdistinct unschedule" in wrong(list(server_findings(db)))["pg_cron"]


def test_an_empty_source_is_a_warning(dsn: str, db: Connection) -> None:
    make_hospital(dsn, db, releases=0)
    found = {finding.check: finding.status for finding in dataset_findings(db, "hospital")}
    assert found["source"] == "warning"
    assert found["history"] == "ok"
