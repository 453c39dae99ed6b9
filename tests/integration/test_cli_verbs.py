"""The verbs of the command line: what they do, print, and end with."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from pg_mdistinct.cli.progress import progress_bar
from pg_mdistinct.client import Client, Progress
from tests.integration.cases import one
from tests.integration.cli_cases import (
    Connection,
    as_role,
    invoke,
    make_hospital,
    refused,
    succeeded,
)
from tests.integration.client_cases import make_patients


def told(dsn: str, *arguments: str) -> Any:
    return json.loads(succeeded(dsn, *arguments, "--json").stdout)


def learn(*options: str) -> list[str]:
    columns = ("--id", "who", "--order", "month", "--value", "disease")
    return ["learn", "ward", "checkups", *columns, *options]


def test_a_dataset_from_beginning_to_end(dsn: str, db: Connection) -> None:
    source = make_patients(db)
    db.execute(
        "CREATE TABLE checkups AS SELECT i AS who, month,"
        " (ARRAY['Dyspepsia', 'Gastritis', 'Flu', 'Pneumonia'])[1 + (i + month) % 4] AS disease"
        " FROM generate_series(1, 12) AS i, generate_series(1, 3) AS month"
    )
    columns = ("--id", "id", "--qi", "age", "--qi", "Town", "--sensitive", "disease", "-m", "2")
    succeeded(dsn, "register", "ward", source, *columns)

    assert told(dsn, "alter", "ward", "-m", "3", "--max-risk", "0.9")["m"] == 3
    assert told(dsn, "alter", "ward", "-m", "2")["max_risk"] == 0.9
    shown = succeeded(dsn, "alter", "ward").stdout
    assert "age, Town" in shown
    assert "0.9000" in shown

    tried = invoke(dsn, *learn("--dry-run", "--possible", "all"))
    assert "16 updates are possible, 0 are not; nothing was changed" in tried.stdout
    assert "WARNING" in tried.stderr
    assert one(db, "SELECT count(*) FROM mdistinct.updates") == 0
    learned = told(dsn, *learn("--thin", "0"))
    assert learned["warnings"] == []
    assert {"impossible", "unseen"} & {t["note"] for t in learned["transitions"]}
    assert one(db, "SELECT count(*) FROM mdistinct.updates") == 8

    assert told(dsn, "preview", "ward")["release"] == 1
    assert one(db, "SELECT count(*) FROM mdistinct.releases") == 0
    figures = told(dsn, "publish", "ward")
    assert (figures["dataset"], figures["release"], figures["records"]) == ("ward", 1, 12)
    assert "counterfeits" in succeeded(dsn, "publish", "ward", "--preview").stdout
    (release,) = told(dsn, "releases", "ward")
    assert (release["rows"], release["m"]) == (12 + figures["counterfeits"], 2)
    assert release["published_at"].startswith("20")
    assert told(dsn, "verify", "ward") == []

    assert "forgotten" in succeeded(dsn, "drop", "ward", given="y\n").output
    assert one(db, "SELECT count(*) FROM mdistinct.datasets") == 0


def test_a_model_is_declared_value_by_value_or_at_once(
    dsn: str, db: Connection, tmp_path: Path
) -> None:
    columns = ("--id", "name", "--qi", "zip", "--sensitive", "disease", "-m", "2")
    db.execute("CREATE TABLE hospital (name text PRIMARY KEY, zip int, disease text)")
    said = succeeded(dsn, "register", "hospital", "hospital", *columns).stdout
    assert "say what its values may become" in said
    succeeded(dsn, "allow-update", "hospital", "Flu", "Flu", "Cold")
    given = ("--probability", "0.9", "--probability", "0.1")
    succeeded(dsn, "allow-update", "hospital", "Cold", "Cold", "Flu", *given)
    model = "SELECT old_value, new_value, probability FROM mdistinct.updates ORDER BY 1, 2"
    assert db.execute(model).fetchall() == [
        *[("Cold", "Cold", 0.9), ("Cold", "Flu", 0.1)],
        *[("Flu", "Cold", 0.5), ("Flu", "Flu", 0.5)],
    ]
    result = invoke(dsn, "allow-update", "hospital", "Flu", "Flu", "Cold", *given[:2])
    assert (result.exit_code, "1 probabilities" in result.output) == (2, True)

    path = tmp_path / "model.csv"
    path.write_text("old_value;new_value;probability\nGout;Gout;0.7\nGout;Flu;0.3\nFlu;Flu;\n")
    said = succeeded(dsn, "load-updates", "hospital", "--csv", str(path)).stdout
    assert "possible updates: 3" in said
    assert ("Gout", "Flu", 0.3) in db.execute(model).fetchall()
    path.write_text("old_value,new_value,probability\nGout,Gout,most\n")
    assert "not all numbers" in refused(dsn, "load-updates", "hospital", "--csv", str(path))
    path.write_text("old,new\n")
    assert "no column" in refused(dsn, "load-updates", "hospital", "--csv", str(path))
    db.execute("CREATE VIEW model AS SELECT 'Flu' AS old_value, 'Flu' AS new_value")
    assert "updates: 1" in succeeded(dsn, "load-updates", "hospital", "model").stdout
    assert invoke(dsn, "load-updates", "hospital").exit_code == 2


def test_nothing_is_dropped_without_a_yes(dsn: str, db: Connection) -> None:
    make_hospital(dsn, db, releases=0)
    assert invoke(dsn, "drop", "hospital", given="n\n").exit_code == 1
    assert invoke(dsn, "drop", "hospital", given="").exit_code == 1
    assert one(db, "SELECT count(*) FROM mdistinct.datasets") == 1
    succeeded(dsn, "drop", "hospital", "--yes")
    assert one(db, "SELECT count(*) FROM mdistinct.datasets") == 0


def test_readers_estimate(dsn: str, db: Connection) -> None:
    make_hospital(dsn, db)
    reader = as_role(dsn, "mdistinct_reader")
    with Client(dsn) as client:
        wanted = client.dataset("hospital").estimate({"disease": "Flu"}, measure="zip", release=1)
    arguments = ("estimate", "hospital", '{"disease": "Flu"}', "--measure", "zip", "--release", "1")
    found = told(reader, *arguments)
    assert (found["count"], found["avg"]) == (wanted.count, wanted.avg)
    plain = succeeded(reader, "estimate", "hospital").stdout
    assert "count_error" in plain
    assert "sum" not in plain
    for predicate, words in (("{", "not JSON"), ("[1]", "not a JSON object")):
        result = invoke(reader, "estimate", "hospital", predicate)
        assert result.exit_code == 2
        assert words in result.output
    assert "HINT" in refused(reader, "estimate", "hospital", '{"shoe size": 40}')


@pytest.mark.tampered
def test_violations_as_json_end_with_1(dsn: str, db: Connection) -> None:
    make_hospital(dsn, db, releases=1)
    db.execute("UPDATE mdistinct_data.hospital_groups SET candidates = candidates[1:1]")
    result = invoke(dsn, "verify", "hospital", "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)[0]["release"] == 1
    assert "m-unique" in refused(dsn, "verify", "hospital")


def test_schedules_without_pg_cron_say_what_to_do(dsn: str, db: Connection) -> None:
    make_hospital(dsn, db, releases=0)
    assert "CREATE EXTENSION pg_cron" in refused(dsn, "schedule", "hospital", "0 2 * * 0")
    assert "is not scheduled" in refused(dsn, "unschedule", "hospital")
    db.execute("INSERT INTO mdistinct.schedules VALUES ('hospital', '0 2 * * 0', 'me', now())")
    succeeded(dsn, "unschedule", "hospital")
    assert one(db, "SELECT count(*) FROM mdistinct.schedules") == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ("allow-update", "nowhere", "Flu", "Flu"),
        ("alter", "nowhere"),
        ("alter", "nowhere", "-m", "3"),
        ("drop", "nowhere", "--yes"),
        ("preview", "nowhere"),
        ("publish", "nowhere"),
        ("verify", "nowhere"),
        ("estimate", "nowhere"),
        ("learn", "nowhere", "pg_class", "--id", "oid", "--order", "oid", "--value", "relname"),
        ("schedule", "nowhere", "0 2 * * 0"),
        ("unschedule", "nowhere"),
    ],
)
def test_unknown_datasets_end_with_1(dsn: str, arguments: tuple[str, ...]) -> None:
    assert "HINT" in refused(dsn, *arguments)


def test_a_bar_shows_the_phase() -> None:
    seen = io.StringIO()
    terminal = Console(file=seen, force_terminal=True, width=100)
    with progress_bar("Publishing [ward]", terminal) as on_progress:
        on_progress(Progress("assign", 0.25))
        on_progress(Progress("split", 0.5))
        on_progress(Progress("split", 0.75))
    shown = seen.getvalue()
    assert "Publishing [ward]: split" in shown
    assert "75%" in shown


def test_a_file_gets_no_bar() -> None:
    seen = io.StringIO()
    with progress_bar("Publishing", Console(file=seen)) as on_progress:
        on_progress(Progress("split", 0.5))
    assert seen.getvalue() == ""


# The server tells of its progress after two seconds; a publication as short as a test's is over by
# then, so this one calls a function of the same name that takes its time.
SLOW = """
CREATE OR REPLACE FUNCTION public.mdistinct_publish(dataset name, wait boolean DEFAULT false)
RETURNS mdistinct.publication LANGUAGE plpgsql AS $$
BEGIN
    RAISE NOTICE 'split: 40%%';
    PERFORM pg_sleep(0.3);
    RETURN ROW(dataset, 1, 2, 1, 0, 0, 0.5, NULL, 0.3)::mdistinct.publication;
END
$$
"""


def test_publish_draws_the_bar_on_standard_error(dsn: str, db: Connection) -> None:
    db.execute(SLOW.encode())
    done = subprocess.run(
        [sys.executable, "-m", "pg_mdistinct.cli", "publish", "ward", "--dsn", dsn],
        env={**os.environ, "FORCE_COLOR": "1", "TERM": "xterm", "COLUMNS": "100"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "Publishing ward: split" in done.stderr
    assert "40%" in done.stderr
    assert "not measured" in done.stdout


def test_shells_complete_verbs() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from pg_mdistinct.cli import main; main(prog_name='pg-mdistinct')"],
        env={
            **os.environ,
            "_PG_MDISTINCT_COMPLETE": "bash_complete",
            "COMP_WORDS": "pg-mdistinct un",
            "COMP_CWORD": "1",
        },
        capture_output=True,
        text=True,
    )
    assert done.stdout.split() == ["plain,uninstall", "plain,unschedule"]
