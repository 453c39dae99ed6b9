"""The paper's experiments as a user runs them: a table that changes, published twenty times.

What the independent checker has to say of each history is asked by the database's fixture.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import psycopg
import pytest
from psycopg.rows import dict_row

from pg_mdistinct.workload import QI_COLUMNS, SNAPSHOT, SnapshotArray, Workload

Connection = psycopg.Connection[Any]
Figures = dict[str, Any]

RELEASES = 20


@dataclass(frozen=True)
class Experiment:
    """A set-up of the paper, and how many counterfeits a release of it may have."""

    m: int
    allowed: Callable[[Figures], bool]
    workload: Workload = field(default_factory=Workload)


EXPERIMENTS = {
    "m2": Experiment(2, lambda figures: figures["counterfeits"] < 2 * 2),
    "m4": Experiment(4, lambda figures: figures["counterfeits"] == 0),
    "m6": Experiment(6, lambda figures: figures["counterfeits"] < 2 * 6),
    "m8": Experiment(8, lambda figures: figures["counterfeits"] < 2 * 8),
    "m6-d5": Experiment(
        6,
        lambda figures: figures["counterfeits"] < 0.2 * figures["groups"],
        Workload(d=5, deletions=3_000),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_twenty_releases_without_a_violation(db: Connection, name: str) -> None:
    experiment = EXPERIMENTS[name]
    register(db, experiment)
    releases = []
    for snapshot in experiment.workload.releases(RELEASES):
        load(db, snapshot)
        releases.append(publish(db))
        assert releases[-1]["records"] == len(snapshot)
        assert releases[-1]["withheld"] == 0
    assert [figures["release"] for figures in releases] == list(range(1, RELEASES + 1))
    assert [figures for figures in releases if not experiment.allowed(figures)] == []
    assert not_covered(db) == 0
    assert db.execute("SELECT * FROM mdistinct_verify('people')").fetchall() == []


def register(db: Connection, experiment: Experiment) -> None:
    """Make the table and the dataset "people", with the updates that the workload allows."""
    columns = ", ".join(f"{name} integer NOT NULL" for name in SNAPSHOT.names or ())
    db.execute(f"CREATE TABLE people ({columns}, PRIMARY KEY (id))")
    db.execute(
        "SELECT mdistinct_register('people', 'people', 'id', %s, 'occupation', %s)",
        (list(QI_COLUMNS), experiment.m),
    )
    labels, transition = experiment.workload.model()
    db.execute("CREATE TEMP TABLE model (old_value text, new_value text, probability float8)")
    with db.cursor().copy("COPY model FROM STDIN") as copy:
        for old, new in np.argwhere(transition > 0):
            copy.write_row((labels[old], labels[new], float(transition[old, new])))
    db.execute("SELECT mdistinct_load_updates('people', 'model')")


def load(db: Connection, snapshot: SnapshotArray) -> None:
    """Make the table what the snapshot says."""
    db.execute("TRUNCATE people")
    lines = ("\t".join(map(str, row)) for row in snapshot.tolist())
    with db.cursor().copy("COPY people FROM STDIN") as copy:
        copy.write("\n".join(lines) + "\n")


def publish(db: Connection) -> Figures:
    """Publish, and return the row by column name."""
    cursor = db.cursor(row_factory=dict_row)
    row = cursor.execute("SELECT * FROM mdistinct_publish('people')").fetchone()
    assert row is not None
    return row


def not_covered(db: Connection) -> int:
    """Count the people whom no row of their own group in the last release could be."""
    cursor = db.execute(
        """
        SELECT count(*) FROM people AS p LEFT JOIN mdistinct.people_membership AS m
            ON m.record_id = p.id::text AND m.release = %(last)s
        WHERE NOT EXISTS (
            SELECT FROM mdistinct_published.people AS g
            WHERE g.release = %(last)s AND g.gid = m.gid AND g.occupation = p.occupation
                AND p.age <@ g.age AND p.gender <@ g.gender
                AND p.marital <@ g.marital AND p.education <@ g.education
        )
        """,
        {"last": RELEASES},
    )
    row = cursor.fetchone()
    assert row is not None
    return int(row[0])
