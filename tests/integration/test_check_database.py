"""The independent checker sees, through SQL alone, what somebody has broken in the tables."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from tests.oracle.check_database import check_database, inspect_database


@pytest.fixture
def published(db: psycopg.Connection[Any]) -> psycopg.Connection[Any]:
    """Two releases of a dataset with an awkward name and a sensitive column of whole numbers."""
    db.execute(
        """
        CREATE TABLE people (id int PRIMARY KEY, "The Age" int, town text, state int);
        INSERT INTO people
        SELECT i, 20 + i, CASE i % 3 WHEN 0 THEN 'Ayr' ELSE 'Bath' END, i % 4
        FROM generate_series(1, 13) AS i;
        SELECT mdistinct_register('Odd "name"', 'people', 'id', '{The Age,town}', 'state', 2);
        SELECT mdistinct_allow_update('Odd "name"', old, new)
        FROM (VALUES ('0', '{00,1}'::text[]), ('1', '{0,1}'), ('2', '{2,3}'), ('3', '{2,3}'))
            AS model (old, new);
        SELECT mdistinct_publish('Odd "name"');
        UPDATE people SET state = 2 + (state + 1) % 2 WHERE id % 2 = 0 AND state >= 2;
        DELETE FROM people WHERE id = 5;
        SELECT mdistinct_publish('Odd "name"')
        """
    )
    return db


def test_a_sound_history_passes(published: psycopg.Connection[Any]) -> None:
    assert check_database(published) == []
    (report,) = inspect_database(published)
    assert report.dataset == 'Odd "name"'
    assert [figures.records for figures in report.releases] == [13, 12]
    assert all(
        figures.rows == figures.records + figures.counterfeits for figures in report.releases
    )


def test_nothing_published_passes(db: psycopg.Connection[Any]) -> None:
    assert check_database(db) == []


@pytest.mark.tampered
@pytest.mark.parametrize(
    ("damage", "complaint"),
    [
        ("UPDATE {groups} SET counterfeits = counterfeits + 1 WHERE release = 1", "counterfeits"),
        ("DELETE FROM {groups} WHERE release = 2 AND gid = 1", "members of an unpublished group"),
        ("UPDATE {placement} SET gids = gids[2:] WHERE release = 2", "members"),
        ("UPDATE {groups} SET candidates = candidates || candidates[1]", "rows"),
        ("UPDATE mdistinct.releases SET release = 5 WHERE release = 2", "numbered"),
        ("UPDATE mdistinct.releases SET m = 4", "not 4-unique"),
        ("UPDATE mdistinct.updates SET new_value = '9' || new_value", "no legal update instance"),
    ],
)
def test_damage_is_seen(published: psycopg.Connection[Any], damage: str, complaint: str) -> None:
    statement = damage.format(
        groups='mdistinct_data."Odd ""name""_groups"',
        placement='mdistinct_data."Odd ""name""_placement"',
    )
    assert published.execute(statement.encode()).rowcount > 0
    found = check_database(published)
    assert any(complaint in line for line in found), found
