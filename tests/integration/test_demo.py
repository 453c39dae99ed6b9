"""The demo plays the hospital and says what the paper says."""

from __future__ import annotations

import io
import re
from fractions import Fraction
from typing import Any

import psycopg
import pytest
from rich.console import Console

from pg_mdistinct.demo import hospital, play
from pg_mdistinct.demo.adversary import beliefs, disclosed
from tests.oracle import hospital as paper
from tests.oracle.adversary import disclosures, risks
from tests.oracle.history import Group

MODEL = {old: dict.fromkeys(new, Fraction(1, len(new))) for old, new in hospital.UPDATES.items()}


def played(dsn: str) -> str:
    console = Console(file=io.StringIO(), width=100, color_system=None)
    play(dsn, console)
    output = console.file
    assert isinstance(output, io.StringIO)
    return output.getvalue()


@pytest.fixture
def screen(dsn: str) -> str:
    return played(dsn)


def two_diverse() -> list[dict[int, Group]]:
    history = []
    for snapshot, groups in zip(hospital.SNAPSHOTS, hospital.TWO_DIVERSE, strict=True):
        diseases = {patient.name: patient.disease for patient in snapshot}
        history.append(
            {
                gid: Group(tuple(diseases[name] for name in names), {n: diseases[n] for n in names})
                for gid, names in enumerate(groups, start=1)
            }
        )
    return history


def test_the_hospital_is_the_papers() -> None:
    assert two_diverse() == [paper.FIRST, paper.SECOND_2_DIVERSE]
    snapshots = [{p.name: p.disease for p in snapshot} for snapshot in hospital.SNAPSHOTS]
    assert snapshots == list(paper.SNAPSHOTS)
    assert all(new in MODEL[old] for old, new in zip(*(s.values() for s in snapshots), strict=True))


def test_the_demos_adversary_agrees_with_the_oracle() -> None:
    history = two_diverse()
    known = disclosures(history, MODEL)
    expected = risks(history, MODEL)
    releases = [
        {name: group.values for group in release.values() for name in group.members}
        for release in history
    ]
    for name, versions in beliefs(releases, hospital.UPDATES).items():
        for release, belief in enumerate(versions, start=1):
            assert disclosed(belief) == known.get((name, release))
            truth = paper.SNAPSHOTS[release - 1][name]
            assert belief[truth] == pytest.approx(float(expected[name, release]))
    assert {name for name, _ in known} == {"Ben", "Ken", "Lily", "Julia", "Tom"}


def test_names_what_two_diverse_tables_give_away(screen: str) -> None:
    for line in (
        "Ben has Flu in release 1 and Pneumonia in release 2.",
        "Ken has Dyspepsia in release 1 and Dyspepsia in release 2.",
        "Lily has Glaucoma in release 1 and Glaucoma in release 2.",
        "Julia has Pneumonia in release 1.",
    ):
        assert line in screen


def test_shows_the_sql_and_that_nothing_is_learnt(screen: str, dsn: str) -> None:
    assert screen.count("SELECT * FROM mdistinct_publish('hospital');") == 4
    assert "mdistinct_register('hospital'" in screen
    assert screen.count("Nothing: no candidate can be excluded, the best guess is right 50%.") == 2
    assert "can be excluded." not in re.sub(r"no candidate can be excluded", "", screen)
    assert f"psql '{dsn}'" in screen.replace("\n", "")


def test_counterfeits_stand_in_for_whoever_left(
    screen: str, dsn: str, db: psycopg.Connection[Any]
) -> None:
    figures = db.execute(
        "SELECT release, rows, counterfeits FROM mdistinct_published.releases ORDER BY 1"
    ).fetchall()
    assert [release for release, _, _ in figures] == [1, 2, 3]
    assert figures[0][1:] == (6, 0)
    assert figures[2][2] > 0


def test_can_be_played_again_and_gone_on_with(dsn: str, db: psycopg.Connection[Any]) -> None:
    played(dsn)
    played(dsn)
    db.execute("UPDATE hospital SET disease = 'Gastritis' WHERE name = 'Ken'")
    row = db.execute("SELECT release FROM mdistinct_publish('hospital')").fetchone()
    assert row == (4,)
    assert db.execute("SELECT * FROM mdistinct_verify('hospital')").fetchall() == []


def test_fits_on_two_screens(screen: str) -> None:
    assert len(screen.splitlines()) <= 105
