"""The variant m-invariance: no update model, the same signature for life, and no changed value."""

from __future__ import annotations

import json
from pathlib import Path

import psycopg
import pytest

from pg_mdistinct.server.updates import MOST_VALUES
from tests.fix_database import acting_as
from tests.integration.cases import (
    Connection,
    allow_all,
    make_table,
    make_ward,
    one,
    publish,
    refused,
)
from tests.integration.cli_cases import invoke, succeeded
from tests.oracle.check_database import check_database

REGISTER = "SELECT mdistinct_register('ward', 'ward', 'id', '{age}', 'disease', 2, 'm-invariance')"
SIGNATURES = """
    SELECT count(*) FROM (
        SELECT m.record_id FROM mdistinct.ward_membership AS m
        JOIN (SELECT release, gid, array_agg(disease ORDER BY disease) AS signature
              FROM mdistinct_published.ward GROUP BY release, gid) AS g USING (release, gid)
        GROUP BY m.record_id HAVING count(DISTINCT g.signature) > 1
    ) AS changed
"""


@pytest.fixture
def ward(db: Connection) -> Connection:
    """Twelve patients with four diseases, published once."""
    make_table(db)
    db.execute(REGISTER)
    publish(db)
    return db


def violations(db: Connection) -> int:
    count: int = one(db, "SELECT count(*) FROM mdistinct_verify('ward')")
    return count


def test_signatures_stay_the_same_while_records_come_and_go(ward: Connection) -> None:
    ward.execute("DELETE FROM ward WHERE id IN (1, 2, 7)")
    ward.execute("INSERT INTO ward VALUES (20, 33, 'Flu'), (21, 44, 'Gastritis')")
    publish(ward)
    # A disease that was never seen, and two patients who return.
    ward.execute("INSERT INTO ward VALUES (30, 5, 'Glaucoma'), (1, 61, 'Pneumonia'), (7, 2, 'x')")
    ward.execute("UPDATE ward SET disease = 'Dyspepsia' WHERE id = 7")
    ward.execute("DELETE FROM ward WHERE id IN (4, 5)")
    with acting_as(ward, "mdistinct_publisher"):
        publish(ward)
    ward.execute("UPDATE ward SET age = age + 1")
    row = publish(ward)
    assert (row["release"], row["withheld"]) == (4, 0)
    assert row["max_risk"] == pytest.approx(0.5)
    assert one(ward, SIGNATURES) == 0
    assert violations(ward) == 0
    assert one(ward, "SELECT count(*) FROM mdistinct.updates") == 0
    risks = "SELECT count(*) FROM mdistinct_risk('ward') WHERE abs(risk - 1.0 / candidates) > 1e-9"
    assert one(ward, risks) == 0
    assert one(ward, "SELECT mdistinct_republication_risk('ward')") == pytest.approx(0.5)
    counterfeits = "SELECT sum(counterfeits) FROM mdistinct_published.releases"
    assert one(ward, counterfeits) > 0


def test_a_counterfeit_stands_for_whoever_has_left(ward: Connection) -> None:
    ward.execute("DELETE FROM ward WHERE id > 1")
    row = publish(ward)
    assert (row["records"], row["groups"]) == (1, 1)
    assert row["counterfeits"] >= 1
    assert one(ward, SIGNATURES) == 0


def test_previews_and_phases_write_nothing(db: Connection) -> None:
    make_table(db)
    db.execute(REGISTER)
    preview = one(db, "SELECT mdistinct_preview('ward')::text")
    assert preview.startswith("(ward,1,12,")
    assert one(db, "SELECT count(*) FROM mdistinct_create_buckets('ward')") > 0
    assert one(db, "SELECT count(*) FROM mdistinct_data.ward_domain") == 0
    publish(db)
    assert one(db, "SELECT count(*) FROM mdistinct_data.ward_domain") == 4


@pytest.mark.parametrize("outside", [1, 0], ids=["to a new one", "to another one of the signature"])
def test_a_changed_value_is_refused(ward: Connection, outside: int) -> None:
    if outside:
        ward.execute("UPDATE ward SET disease = 'Glaucoma' WHERE id = 3")
    else:
        ward.execute(
            "UPDATE ward SET disease = p.disease FROM mdistinct.ward_membership AS m"
            " JOIN mdistinct_published.ward AS p USING (release, gid)"
            " WHERE ward.id = 3 AND m.record_id = '3' AND p.disease <> ward.disease"
        )
    with refused(ward, "MD002", "1 record has another value", "3 ("):
        publish(ward)
    with (
        acting_as(ward, "mdistinct_publisher"),
        pytest.raises(psycopg.Error, match="1 record has another value") as caught,
    ):
        publish(ward)
    told = caught.value.diag
    assert told.message_detail == f"New values outside the records' signatures: {outside}."
    assert "m-distinct" in (told.message_hint or "")
    for secret in ("Glaucoma", "Flu", "Pneumonia", "Dyspepsia", "Gastritis", "3"):
        assert secret not in f"{told.message_primary}{told.message_hint}"
    ward.execute("DELETE FROM ward WHERE id = 3")
    publish(ward)


def test_a_value_that_changed_while_its_record_was_away_is_refused(ward: Connection) -> None:
    ward.execute("DELETE FROM ward WHERE id = 3")
    publish(ward)
    ward.execute("INSERT INTO ward VALUES (3, 3, 'Flu')")
    with refused(ward, "MD002", "1 record has another value"):
        publish(ward)


def test_updates_are_refused(ward: Connection) -> None:
    ward.execute("CREATE TABLE changes AS SELECT 'Flu' AS old_value, 'Flu' AS new_value")
    ward.execute("CREATE TABLE checkups AS SELECT id, 1 AS month, disease FROM ward")
    for call in (
        "mdistinct_allow_update('ward', 'Flu', '{Flu}')",
        "mdistinct_load_updates('ward', 'changes')",
        "mdistinct_learn_updates('ward', 'checkups', 'id', 'month', 'disease')",
        "mdistinct_learn_updates('ward', 'checkups', 'id', 'month', 'disease', apply => false)",
    ):
        with refused(ward, "55000", "m-invariance", "no update model"):
            ward.execute(f"SELECT {call}")


def test_too_few_values_are_refused(db: Connection) -> None:
    make_table(db)
    db.execute(REGISTER.replace("2, 'm-inv", "5, 'm-inv"))
    with refused(db, "MD003", "m = 5", "only 4 sensitive values"):
        publish(db)
    with (
        acting_as(db, "mdistinct_publisher"),
        pytest.raises(psycopg.Error, match="with its values and m = 5"),
    ):
        publish(db)
    db.execute("INSERT INTO ward VALUES (13, 40, NULL)")
    with refused(db, "23502", '"disease"', "NULL in 1 record"):
        publish(db)


def test_too_many_values_are_refused(db: Connection) -> None:
    make_table(db, 1)
    db.execute(
        "INSERT INTO ward SELECT i, i, 'illness ' || i FROM generate_series(2, %s) AS i",
        (MOST_VALUES + 1,),
    )
    db.execute(REGISTER)
    with refused(db, "54000", "more than"):
        publish(db)


def test_it_is_given_up_when_values_begin_to_change(ward: Connection) -> None:
    ward.execute("UPDATE ward SET disease = 'Pneumonia' WHERE id = 4")
    with refused(ward, "MD002"):
        publish(ward)
    ward.execute("SELECT mdistinct_alter('ward', variant => 'm-distinct')")
    with refused(ward, "MD001", "does not know"):
        publish(ward)
    lung, stomach = ["Flu", "Pneumonia"], ["Gastritis", "Dyspepsia"]
    for value in lung:
        ward.execute("SELECT mdistinct_allow_update('ward', %s, %s)", (value, lung))
    for value in stomach:
        ward.execute("SELECT mdistinct_allow_update('ward', %s, %s)", (value, stomach))
    publish(ward)
    assert violations(ward) == 0
    assert check_database(ward) == []
    with refused(ward, "55000", "has an update model"):
        ward.execute("SELECT mdistinct_alter('ward', variant => 'm-invariance')")


def test_a_model_that_past_signatures_contradict_is_refused(ward: Connection) -> None:
    """Values that have to change were published again and again under m-invariance."""
    publish(ward)
    ward.execute("SELECT mdistinct_alter('ward', variant => 'm-distinct')")
    diseases = ["Flu", "Pneumonia", "Gastritis", "Dyspepsia"]
    for value in diseases:
        others = [other for other in diseases if other != value]
        ward.execute("SELECT mdistinct_allow_update('ward', %s, %s)", (value, others))
    with refused(ward, "MD002", "past releases contain"):
        publish(ward)


def test_it_can_be_chosen_until_the_first_release(db: Connection) -> None:
    make_table(db)
    db.execute("SELECT mdistinct_register('ward', 'ward', 'id', '{age}', 'disease', 2)")
    db.execute("SELECT mdistinct_alter('ward', variant => 'm-invariance')")
    publish(db)
    assert one(db, "SELECT variant FROM mdistinct_published.releases") == "m-invariance"


def test_it_cannot_be_chosen_for_a_history_with_updates(db: Connection) -> None:
    make_ward(db)
    with refused(db, "55000", "has an update model"):
        db.execute("SELECT mdistinct_alter('ward', variant => 'm-invariance')")


@pytest.mark.tampered
@pytest.mark.parametrize(
    ("damage", "complaint"),
    [
        (
            "UPDATE mdistinct_data.ward_groups SET candidates = '{0,1}' WHERE release = 2",
            "signatur",
        ),
        (
            "INSERT INTO mdistinct.updates VALUES ('ward', 'Flu', 'Gastritis', 1)",
            "knows no updates",
        ),
        ("UPDATE mdistinct.releases SET variant = 'm-distinct' WHERE release = 1", "variant"),
    ],
)
def test_the_checker_sees_damage(ward: Connection, damage: str, complaint: str) -> None:
    publish(ward)
    assert check_database(ward) == []
    ward.execute(damage.encode())
    assert any(complaint in line for line in check_database(ward))


@pytest.mark.tampered
def test_the_checker_remembers_what_was_m_invariant(ward: Connection) -> None:
    """Under the model that is declared later, any candidates would do."""
    publish(ward)
    ward.execute("SELECT mdistinct_alter('ward', variant => 'm-distinct')")
    allow_all(ward, "ward")
    publish(ward)
    assert check_database(ward) == []
    ward.execute(
        "UPDATE mdistinct_data.ward_groups SET candidates ="
        " CASE candidates WHEN '{0,1}' THEN '{2,3}'::int[] ELSE '{0,1}' END WHERE release = 2"
    )
    found = check_database(ward)
    assert found
    assert all("the signature was" in line for line in found)


def test_from_the_command_line(dsn: str, db: Connection, tmp_path: Path) -> None:
    make_table(db)
    columns = ("--id", "id", "--qi", "age", "--sensitive", "disease", "-m", "2")
    variant = ("--variant", "m-invariance")
    refused_updates = invoke(dsn, "register", "ward", "ward", *columns, *variant, "--updates", "t")
    assert refused_updates.exit_code == 2
    succeeded(dsn, "register", "ward", "ward", *columns, *variant)
    for _ in range(2):
        succeeded(dsn, "publish", "ward")
    assert json.loads(succeeded(dsn, "verify", "ward", "--json").stdout) == []
    findings = json.loads(succeeded(dsn, "doctor", "ward", "--json").stdout)
    assert {finding["status"] for finding in findings} == {"ok"}
    assert "values never change" in json.dumps(findings)
    succeeded(dsn, "risk", "ward")
    graph = succeeded(dsn, "sug", "ward", "3").stdout
    assert "50" in graph
    page = tmp_path / "report.html"
    succeeded(dsn, "report", "ward", "-o", str(page))
    text = page.read_text(encoding="utf-8")
    assert "The principle is m-Invariance with m = 2" in text
    assert "promise for values that never change" in text
    assert "update model that was declared" not in text
    model = tmp_path / "model.csv"
    model.write_text(
        "old_value,new_value,probability\n"
        + "".join(f"{v},{v},1\n" for v in ("Flu", "Pneumonia", "Gastritis", "Dyspepsia"))
    )
    query = (
        "SELECT m.release, m.record_id, m.gid, w.disease AS value FROM mdistinct.ward_membership"
        " AS m JOIN ward AS w ON w.id::text = m.record_id"
    )
    attacked = succeeded(dsn, "attack", "--query", query, "--model", str(model), "--json").stdout
    assert json.loads(attacked)["impossible_updates"] == 0
