"""What the tests of the command line share: a call, and a dataset with counterfeits."""

from __future__ import annotations

from typing import Any

import psycopg
from click.testing import CliRunner, Result
from psycopg.conninfo import make_conninfo

from pg_mdistinct.cli import main
from pg_mdistinct.client import Client
from pg_mdistinct.demo import hospital

Connection = psycopg.Connection[Any]


def invoke(dsn: str, *arguments: str, given: str | None = None) -> Result:
    """Calls `pg-mdistinct` on a terminal of 120 columns."""
    return CliRunner().invoke(main, [*arguments, "--dsn", dsn], env={"COLUMNS": "120"}, input=given)


def succeeded(dsn: str, *arguments: str, given: str | None = None) -> Result:
    """Calls `pg-mdistinct`, which must end with 0."""
    result = invoke(dsn, *arguments, given=given)
    assert result.exit_code == 0, result.output
    return result


def refused(dsn: str, *arguments: str) -> str:
    """Calls `pg-mdistinct`, which must end with 1; what it says, without a traceback."""
    result = invoke(dsn, *arguments)
    assert result.exit_code == 1, result.output
    assert isinstance(result.exception, SystemExit)
    return " ".join(result.output.split())


def as_role(dsn: str, role: str) -> str:
    """The same database for a session of another role."""
    return make_conninfo(dsn, options=f"-c role={role}")


def make_hospital(dsn: str, db: Connection, releases: int = 2) -> None:
    """The paper's hospital, whose second release has counterfeits."""
    db.execute("CREATE TABLE hospital (name text PRIMARY KEY, zip int, hours int, disease text)")
    with Client(dsn) as client:
        columns = ("name", ["zip", "hours"], "disease", 2, "m-distinct*")
        client.register("hospital", "hospital", *columns)
        client.load_updates("hospital", {old: list(new) for old, new in hospital.UPDATES.items()})
        for snapshot in hospital.SNAPSHOTS[:releases]:
            with db.transaction(), db.cursor() as cursor:
                cursor.execute("TRUNCATE hospital")
                cursor.executemany("INSERT INTO hospital VALUES (%s, %s, %s, %s)", snapshot)
            client.publish("hospital")
