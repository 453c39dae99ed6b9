"""`risk`, `sug` and `attack --dsn` at the command line, and the same calls of the client."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import psycopg
import pytest
from click.testing import CliRunner, Result
from psycopg.conninfo import make_conninfo

from pg_mdistinct.cli import main
from pg_mdistinct.client import Client, MdistinctSqlError
from pg_mdistinct.demo import hospital

Connection = psycopg.Connection[Any]


@pytest.fixture
def client(dsn: str) -> Iterator[Client]:
    with Client(dsn) as client:
        yield client


@pytest.fixture
def published(client: Client, db: Connection) -> Client:
    """The hospital, published twice."""
    db.execute("CREATE TABLE hospital (name text PRIMARY KEY, zip int, hours int, disease text)")
    client.register("hospital", "hospital", "name", ["zip", "hours"], "disease", 2, "m-distinct*")
    client.load_updates("hospital", {old: list(new) for old, new in hospital.UPDATES.items()})
    for snapshot in hospital.SNAPSHOTS:
        with db.transaction(), db.cursor() as cursor:
            cursor.execute("TRUNCATE hospital")
            cursor.executemany("INSERT INTO hospital VALUES (%s, %s, %s, %s)", snapshot)
        client.publish("hospital")
    return client


def invoke(dsn: str, *arguments: str) -> Result:
    return CliRunner().invoke(main, [*arguments, "--dsn", dsn], env={"COLUMNS": "120"})


def test_client_risk(published: Client) -> None:
    versions = published.risk("hospital")
    assert len(versions) == 12
    assert {version.release for version in versions} == {1, 2}
    assert {version.record_id for version in versions} == {p.name for p in hospital.SNAPSHOTS[0]}
    assert all(version.candidates >= 2 and 0 < version.risk < 1 for version in versions)
    first = published.risk("hospital", 1)
    assert len(first) == 6
    highest = max(version.risk for version in [*versions, *first])
    assert published.republication_risk("hospital") == pytest.approx(highest)


def test_client_sug(published: Client) -> None:
    graph = published.sug("hospital", "Ben")
    assert (graph.dataset, graph.record) == ("hospital", "Ben")
    assert list(graph.columns) == [1, 2]
    for nodes in graph.columns.values():
        assert sum(node.posterior for node in nodes) == pytest.approx(1)
        assert sum(node.weight for node in nodes) == pytest.approx(1)
    assert sum(edge.posterior for edge in graph.edges) == pytest.approx(1)
    assert all(node.feasible and node.is_true is None for node in graph.nodes)
    assert all(edge.feasible and edge.is_true is None for edge in graph.edges)

    told = published.sug("hospital", "Ben", true_path=True)
    truth = [node.value for nodes in told.columns.values() for node in nodes if node.is_true]
    assert truth == ["Flu", "Pneumonia"]
    risk = {v.release: v.risk for v in published.risk("hospital") if v.record_id == "Ben"}
    for node in told.nodes:
        if node.is_true:
            assert node.posterior == pytest.approx(risk[node.release])


def test_client_sug_of_nobody(published: Client) -> None:
    with pytest.raises(MdistinctSqlError, match="Nobody"):
        published.sug("hospital", "Nobody")


def test_risk_command(published: Client, dsn: str) -> None:
    result = invoke(dsn, "risk", "hospital", "--top", "3")
    assert result.exit_code == 0, result.output
    assert "median" in result.output
    assert "Riskiest versions" in result.output
    early = json.loads(invoke(dsn, "risk", "hospital", "--at", "1", "--json").stdout)
    assert (early["dataset"], early["at_release"], early["disclosed"]) == ("hospital", 1, 0)
    late = json.loads(invoke(dsn, "risk", "hospital", "--json", "--top", "3").stdout)
    assert late["at_release"] == 2
    assert late["total"]["versions"] == 12
    assert list(late["releases"]) == ["1", "2"]
    assert len(late["top"]) == 3
    assert late["top"][0]["risk"] == late["total"]["max"]


def test_risk_command_explains_errors(dsn: str) -> None:
    result = invoke(dsn, "risk", "nowhere")
    assert result.exit_code == 1
    assert "HINT" in result.output


def test_sug_command(published: Client, dsn: str, tmp_path: Path) -> None:
    shown = invoke(dsn, "sug", "hospital", "Ben")
    assert shown.exit_code == 0, shown.output
    assert "What the releases tell about Ben" in shown.output
    assert "★" not in shown.output
    told = invoke(dsn, "sug", "hospital", "Ben", "--true-path")
    assert "★ Flu" in told.output

    path = tmp_path / "ben.svg"
    written = invoke(dsn, "sug", "hospital", "Ben", "--svg", str(path))
    assert written.exit_code == 0, written.output
    assert str(path) in written.stderr.replace("\n", "")
    assert ElementTree.parse(path).getroot().tag.endswith("svg")
    streamed = invoke(dsn, "sug", "hospital", "Ben", "--svg", "-")
    assert streamed.stdout == path.read_text(encoding="utf-8")


def test_sug_command_explains_errors(published: Client, dsn: str, tmp_path: Path) -> None:
    for arguments in (("nowhere", "Ben"), ("hospital", "Nobody")):
        result = invoke(dsn, "sug", *arguments)
        assert result.exit_code == 1
        assert "Traceback" not in result.output
    nowhere = invoke(dsn, "sug", "hospital", "Ben", "--svg", str(tmp_path / "no" / "ben.svg"))
    assert nowhere.exit_code == 1
    assert "cannot write" in nowhere.output


def test_only_admins_look(published: Client, dsn: str) -> None:
    reader = make_conninfo(dsn, options="-c role=mdistinct_reader")
    for arguments in (("risk", "hospital"), ("sug", "hospital", "Ben", "--true-path")):
        result = invoke(reader, *arguments)
        assert result.exit_code == 1
        assert "permission denied" in result.output


def _broken(db: Connection) -> None:
    """The paper's two 2-diverse tables in tables of a foreign tool."""
    db.execute(
        """
        CREATE SCHEMA "other tool";
        CREATE TABLE "other tool"."Tables" ("No" int, who text, "group" text, disease text);
        CREATE TABLE updates (old_value text, new_value text, probability float8)
        """
    )
    rows = [
        (n, name, f"g{gid}", {p.name: p.disease for p in hospital.SNAPSHOTS[n - 1]}[name])
        for n, groups in enumerate(hospital.TWO_DIVERSE, start=1)
        for gid, names in enumerate(groups)
        for name in names
    ]
    updates = [(old, new) for old, targets in hospital.UPDATES.items() for new in targets]
    with db.cursor() as cursor:
        cursor.executemany('INSERT INTO "other tool"."Tables" VALUES (%s, %s, %s, %s)', rows)
        cursor.executemany("INSERT INTO updates VALUES (%s, %s)", updates)


COLUMNS = (
    *("--release-column", "No", "--record-column", "who"),
    *("--group-column", "group", "--value-column", "disease"),
)


def test_attack_on_tables_of_another_tool(dsn: str, db: Connection) -> None:
    _broken(db)
    source = ("--table", '"other tool"."Tables"', "--model-table", "updates")
    result = invoke(dsn, "attack", *source, *COLUMNS, "--json", "--joint")
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    julia = next(found for found in report["first_disclosed"] if found["record"] == "Julia")
    assert (julia["release"], julia["value"], julia["candidates"]) == ("1", "Pneumonia", 2)
    query = 'SELECT "No" AS release, who AS record_id, "group" AS gid, disease AS value FROM '
    query += '"other tool"."Tables" WHERE disease LIKE \'%\';'
    again = invoke(dsn, "attack", "--query", query, "--model-table", "updates", "--json", "--joint")
    assert json.loads(again.stdout) == report


def test_attack_on_the_projects_own_releases(published: Client, dsn: str) -> None:
    """Counterfeits are what is left when everybody has been given a row."""
    query = """
        WITH published AS (
            SELECT release, gid, disease FROM mdistinct_published.hospital
        ), members AS (
            SELECT m.release, m.gid, m.record_id, u.disease
            FROM mdistinct.hospital_membership AS m
            JOIN mdistinct_data.hospital_versions AS v USING (release)
            JOIN unnest(v.record_id, v.label) AS u (who, disease) ON u.who = m.record_id
        )
        SELECT release, record_id, gid, disease AS value
        FROM published LEFT JOIN members USING (release, gid, disease)"""
    model = "SELECT old_value, new_value, probability FROM mdistinct.updates"
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(f"CREATE VIEW model AS {model}".encode())
    result = invoke(dsn, "attack", "--query", query, "--model-table", "model", "--json")
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert (report["total"]["versions"], report["total"]["pruned"]) == (12, 0)
    highest = max(version.risk for version in published.risk("hospital"))
    assert report["total"]["risk"]["max"] == pytest.approx(highest)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--table", "nowhere"), 'relation "nowhere" does not exist'),
        (("--table", "updates"), 'table updates has no column "release"'),
        (("--query", "SELECT FROM WHERE"), "syntax error"),
        (("--query", "SELECT 1 AS release, 'a' AS record_id, '' AS gid, 'Flu' AS value"), '"gid"'),
        (("--query", "DELETE FROM updates RETURNING *"), "syntax error"),
    ],
)
def test_attack_explains_bad_sources(
    dsn: str, db: Connection, arguments: tuple[str, str], message: str
) -> None:
    _broken(db)
    result = invoke(dsn, "attack", *arguments, "--model-table", "updates")
    assert result.exit_code == 1, result.output
    assert message in result.output
    assert "Traceback" not in result.output
