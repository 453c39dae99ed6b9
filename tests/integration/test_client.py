"""`pg_mdistinct.Client` and the commands built on it, against a database with the plugin."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from click.testing import CliRunner, Result
from psycopg.types.range import Range
from sqlalchemy import create_engine

import pg_mdistinct
from pg_mdistinct.cli import main
from pg_mdistinct.client import Client, MdistinctSqlError, Release
from tests.integration.client_cases import MODEL, make_patients


@pytest.fixture
def source(db: psycopg.Connection[Any]) -> str:
    return make_patients(db)


@pytest.fixture
def client(dsn: str) -> Iterator[Client]:
    with Client(dsn) as client:
        yield client


@pytest.fixture
def ward(client: Client, source: str) -> Client:
    client.register("ward", source, "id", ["age", "Town"], "disease", 2)
    client.load_updates("ward", MODEL)
    return client


def test_the_client_is_exported_lazily() -> None:
    assert pg_mdistinct.Client is Client


def test_register_returns_the_dataset(client: Client, source: str) -> None:
    found = client.register(
        "ward", source, "id", ["age", "Town"], "disease", 2, variant="m-distinct*", max_risk=0.9
    )
    assert found.dataset == "ward"
    assert found.qi_columns == ["age", "Town"]
    assert found.sensitive_column == "disease"
    assert (found.m, found.variant, found.max_risk) == (2, "m-distinct*", 0.9)


def test_a_model_from_a_dictionary(ward: Client, db: psycopg.Connection[Any]) -> None:
    rows = db.execute(
        "SELECT old_value, new_value, probability FROM mdistinct.updates WHERE dataset = 'ward'"
    ).fetchall()
    assert ("Gastritis", "Gastritis", 0.75) in rows
    assert ("Flu", "Pneumonia", 0.5) in rows
    assert len(rows) == 8


def test_a_model_from_a_table(client: Client, source: str, db: psycopg.Connection[Any]) -> None:
    client.register("ward", source, "id", ["age"], "disease", 2)
    db.execute(
        """
        CREATE TABLE changes (old_value text, new_value text);
        INSERT INTO changes SELECT a, b
        FROM unnest(ARRAY['Dyspepsia', 'Gastritis', 'Flu', 'Pneumonia']) AS a,
             unnest(ARRAY['Dyspepsia', 'Gastritis', 'Flu', 'Pneumonia']) AS b
        """
    )
    client.load_updates("ward", "changes")
    assert client.publish("ward").release == 1


def test_one_row_of_the_model(ward: Client, db: psycopg.Connection[Any]) -> None:
    ward.allow_update("ward", "Flu", {"Flu": 0.9, "Pneumonia": 0.1})
    rows = db.execute(
        "SELECT new_value, probability FROM mdistinct.updates"
        " WHERE dataset = 'ward' AND old_value = 'Flu' ORDER BY 1"
    ).fetchall()
    assert rows == [("Flu", 0.9), ("Pneumonia", 0.1)]


def test_publish_and_read(ward: Client, db: psycopg.Connection[Any]) -> None:
    assert ward.releases("ward") == []
    preview = ward.preview("ward")
    assert ward.releases("ward") == []
    first = ward.publish("ward")
    assert (first.release, first.records) == (preview.release, preview.records) == (1, 12)
    db.execute("UPDATE ward.\"Patients\" SET disease = 'Flu' WHERE disease = 'Pneumonia'")
    assert ward.publish("ward", wait=True).release == 2
    assert [info.release for info in ward.releases()] == [1, 2]
    assert ward.verify("ward") == []

    latest = ward.release("ward")
    assert latest.release == 2
    assert latest.sensitive_column == "disease"
    _looks_right(latest, ward.releases("ward")[1].rows)
    _looks_right(ward.release("ward", 1), ward.releases("ward")[0].rows)


def _looks_right(release: Release, rows: int) -> None:
    assert len(release.rows) == rows
    assert sum(release.counterfeits.values()) == rows - 12
    for row in release.rows:
        assert row.qi.keys() == {"age", "Town"}
        assert isinstance(row.qi["age"], Range)
        assert set(row.qi["Town"]) <= {"Ayr", "Bath"}
        assert row.sensitive in MODEL


def test_drop(ward: Client, db: psycopg.Connection[Any]) -> None:
    ward.publish("ward")
    ward.drop("ward")
    assert ward.releases() == []
    assert db.execute('SELECT count(*) FROM ward."Patients"').fetchone() == (12,)


def test_an_engine_that_was_given_is_left_open(dsn: str) -> None:
    engine = create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(dsn))
    with Client(engine) as client:
        assert client.releases() == []
    assert Client(engine).releases() == []
    engine.dispose()


def test_an_engine_of_another_driver_is_refused() -> None:
    engine = create_engine("sqlite://")
    with pytest.raises(ValueError, match="psycopg"):
        Client(engine)


def test_sql_errors_are_taken_apart(client: Client) -> None:
    with pytest.raises(MdistinctSqlError) as caught:
        client.publish("nowhere")
    error = caught.value
    assert error.sqlstate == "42704"
    assert "nowhere" in error.message
    assert error.hint
    assert str(error).startswith(error.message)
    assert f"HINT: {error.hint}" in str(error)


def test_a_failed_call_leaves_the_client_usable(client: Client, source: str) -> None:
    with pytest.raises(MdistinctSqlError):
        client.register("ward", source, "no such column", ["age"], "disease", 2)
    assert client.register("ward", source, "id", ["age"], "disease", 2).m == 2


def test_no_connection_is_an_error_too() -> None:
    with pytest.raises(MdistinctSqlError, match="connection"):
        Client("host=/nonexistent dbname=nowhere").releases()


def invoke(dsn: str, *arguments: str) -> Result:
    return CliRunner().invoke(main, [*arguments, "--dsn", dsn], env={"COLUMNS": "200"})


def test_command_line(dsn: str, source: str, db: psycopg.Connection[Any]) -> None:
    db.execute(
        """
        CREATE TABLE changes (old_value text, new_value text, probability float8);
        INSERT INTO changes VALUES
            ('Dyspepsia', 'Dyspepsia'), ('Dyspepsia', 'Gastritis'), ('Gastritis', 'Gastritis'),
            ('Flu', 'Flu'), ('Flu', 'Pneumonia'), ('Pneumonia', 'Pneumonia')
        """
    )
    columns = ("--id", "id", "--qi", "age", "--qi", "Town", "--sensitive", "disease")
    registered = invoke(
        dsn, "register", "ward", source, *columns, "-m", "2", "--updates", "changes"
    )
    assert registered.exit_code == 0, registered.output
    previewed = invoke(dsn, "publish", "ward", "--preview")
    assert previewed.exit_code == 0, previewed.output
    assert "ward" not in invoke(dsn, "releases").output
    for _ in range(2):
        published = invoke(dsn, "publish", "ward")
        assert published.exit_code == 0, published.output
        assert "ward" in published.output
    assert invoke(dsn, "releases", "ward").output.count("ward") == 2
    verified = invoke(dsn, "verify", "ward")
    assert (verified.exit_code, verified.output.strip()) == (0, "ward: no violation")


def test_command_line_shows_errors_with_their_hint(dsn: str) -> None:
    result = invoke(dsn, "publish", "nowhere")
    assert result.exit_code == 1
    assert "nowhere" in result.output
    assert "HINT" in result.output
    assert "Traceback" not in result.output


@pytest.mark.tampered
def test_command_line_verify_fails_for_a_broken_history(
    ward: Client, dsn: str, db: psycopg.Connection[Any]
) -> None:
    ward.publish("ward")
    db.execute("UPDATE mdistinct_data.ward_groups SET candidates = candidates[1:1]")
    result = invoke(dsn, "verify", "ward")
    assert result.exit_code == 1
    assert ward.verify("ward")
