"""The story: what two good tables give away together, and what m-Distinct publishes instead."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import psycopg
from rich.console import Console
from rich.table import Table

from pg_mdistinct.demo import hospital
from pg_mdistinct.demo.adversary import Belief, Candidates, beliefs, disclosed, excluded
from pg_mdistinct.demo.hospital import Patient
from pg_mdistinct.demo.screen import Screen, beliefs_table, plain_table

DATASET = "hospital"

_CREATE = """\
CREATE TABLE hospital
    (name text PRIMARY KEY, zip int, hours int, disease text);"""

_REGISTER = """\
SELECT mdistinct_register('hospital', 'hospital', id_column => 'name',
       qi_columns => '{zip,hours}', sensitive_column => 'disease', m => 2,
       variant => 'm-distinct*');"""

_ALLOW = """\
SELECT mdistinct_allow_update('hospital', old, new)
FROM (VALUES {}) AS model (old, new);"""

_PUBLISH = "SELECT * FROM mdistinct_publish('hospital');"

_READ = "SELECT * FROM mdistinct_published.hospital ORDER BY release, gid;"

_COUNTERFEITS = "SELECT * FROM mdistinct_published.hospital_counterfeits;"

_KNOWN = """\
SELECT m.record_id, array_agg(p.disease ORDER BY p.disease)
FROM mdistinct.hospital_membership m JOIN mdistinct_published.hospital p USING (release, gid)
WHERE release = {} GROUP BY m.record_id"""


def play(dsn: str, console: Console) -> None:
    """Plays the demo in a database that has the plugin; begins anew each time."""
    screen = Screen(console)
    _two_diverse(screen)
    with psycopg.connect(dsn, autocommit=True) as connection:
        _clear(connection)
        _Publisher(connection, screen).play()
    _how_to_go_on(screen, dsn)


def _two_diverse(screen: Screen) -> None:
    screen.act("A hospital publishes its patients every two months")
    screen.tables(
        *(
            plain_table(f"Microdata, release {n}", Patient._fields, snapshot)
            for n, snapshot in enumerate(hospital.SNAPSHOTS, start=1)
        )
    )
    screen.say("Each release alone is 2-diverse: two diseases in every group.")
    screen.tables(*(_generalized(n) for n in (1, 2)))
    screen.act("What an adversary learns who lines the two up")
    screen.say(
        "Flu may become pneumonia, never glaucoma: cross out (✗) what cannot be, "
        "and some are known (●)."
    )
    people = beliefs([_two_diverse_candidates(n) for n in (1, 2)], hospital.UPDATES)
    screen.tables(beliefs_table("Two 2-diverse releases", people))
    for line in _verdicts(people):
        screen.say(line, style="red")


def _generalized(n: int) -> Table:
    patients = {patient.name: patient for patient in hospital.SNAPSHOTS[n - 1]}
    rows = []
    for gid, names in enumerate(hospital.TWO_DIVERSE[n - 1], start=1):
        members = [patients[name] for name in names]
        zips = _interval(patient.zip for patient in members)
        hours = _interval(patient.hours for patient in members)
        rows += [(gid, zips, hours, patient.disease) for patient in members]
    return plain_table(f"2-diverse, release {n}", ("gid", "zip", "hours", "disease"), rows)


def _interval(values: Iterable[int]) -> str:
    listed = sorted(values)
    return f"{listed[0]}–{listed[-1]}"


def _two_diverse_candidates(n: int) -> Candidates:
    diseases = {patient.name: patient.disease for patient in hospital.SNAPSHOTS[n - 1]}
    return {
        name: [diseases[member] for member in names]
        for names in hospital.TWO_DIVERSE[n - 1]
        for name in names
    }


def _verdicts(people: dict[str, list[Belief]]) -> list[str]:
    """One line for each patient of whom something is known for certain."""
    lines = []
    for name, versions in people.items():
        known = [
            f"{value} in release {release}"
            for release, belief in enumerate(versions, start=1)
            if (value := disclosed(belief)) is not None
        ]
        if known:
            lines.append(f"{name} has {' and '.join(known)}.")
    return lines


def _clear(connection: psycopg.Connection[Any]) -> None:
    registered = connection.execute(
        "SELECT 1 FROM mdistinct.datasets WHERE dataset = %s", [DATASET]
    ).fetchone()
    if registered:
        connection.execute("SELECT mdistinct_drop(%s::name)", [DATASET])
    connection.execute("DROP TABLE IF EXISTS hospital")


class _Publisher:
    """The second half: the same releases, published by the plugin."""

    def __init__(self, connection: psycopg.Connection[Any], screen: Screen) -> None:
        self._connection = connection
        self._screen = screen
        self._candidates: list[Candidates] = []

    def play(self) -> None:
        self._screen.act("The same two releases, m-Distinct")
        self._run(_CREATE)
        self._run(_REGISTER)
        self._run(_allow_updates())
        for n, snapshot in enumerate(hospital.SNAPSHOTS, start=1):
            self._fill(snapshot)
            self._screen.sql(f"-- hospital now holds the microdata of release {n}")
            self._publish(n)
        self._show_releases(1, 2)
        self._show_counterfeits()
        self._judge()
        self._somebody_leaves()

    def _fill(self, snapshot: Sequence[Patient]) -> None:
        with self._connection.transaction(), self._connection.cursor() as cursor:
            cursor.execute("TRUNCATE hospital")
            cursor.executemany("INSERT INTO hospital VALUES (%s, %s, %s, %s)", snapshot)

    def _run(self, statement: str) -> list[tuple[Any, ...]]:
        self._screen.sql(statement)
        return self._query(statement)

    def _query(self, statement: str) -> list[tuple[Any, ...]]:
        cursor = self._connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []

    def _publish(self, n: int) -> None:
        _, release, records, groups, counterfeits, *_ = self._run(_PUBLISH)[0]
        self._screen.say(
            f"  release {release}: records {records}, groups {groups}, counterfeits {counterfeits}",
            style="dim",
        )
        found = dict(self._query(_KNOWN.format(n)))
        names = [name for name, *_ in hospital.SNAPSHOTS[0] if name in found]
        self._candidates.append({name: found[name] for name in names})

    def _show_releases(self, *numbers: int) -> None:
        rows = self._run(_READ)
        self._screen.tables(
            *(
                plain_table(
                    f"Published, release {n}",
                    ("gid", "zip", "hours", "disease"),
                    [row for release, *row in rows if release == n],
                )
                for n in numbers
            )
        )

    def _show_counterfeits(self) -> None:
        rows = self._run(_COUNTERFEITS)
        if rows:
            self._screen.tables(plain_table("", ("release", "gid", "count"), rows))
        else:
            self._screen.say("No row: here the real patients suffice.")

    def _judge(self) -> None:
        people = beliefs(self._candidates, hospital.UPDATES)
        self._screen.act("What the adversary learns now, even told who is in which group")
        self._screen.tables(beliefs_table(f"{len(self._candidates)} m-Distinct releases", people))
        self._verdict(people)

    def _verdict(self, people: dict[str, list[Belief]]) -> None:
        found = [belief for versions in people.values() for belief in versions]
        struck_out = sum(len(excluded(belief)) for belief in found)
        best = max(max(belief.values()) for belief in found)
        if struck_out:
            self._screen.say(f"{struck_out} candidates can be excluded.", style="bold red")
        else:
            self._screen.say(
                f"Nothing: no candidate can be excluded, the best guess is right {best:.0%}.",
                style="bold green",
            )

    def _somebody_leaves(self) -> None:
        self._screen.act("Somebody leaves: counterfeits keep the others safe")
        self._run("DELETE FROM hospital WHERE name = 'Lily';")
        self._publish(3)
        self._show_releases(3)
        self._show_counterfeits()
        self._verdict(beliefs(self._candidates, hospital.UPDATES))


def _allow_updates() -> str:
    rows = [
        f"('{old}', '{{{','.join(new)}}}'{'' if number else '::text[]'})"
        for number, (old, new) in enumerate(hospital.UPDATES.items())
    ]
    return _ALLOW.format(",\n             ".join(rows))


def _how_to_go_on(screen: Screen, dsn: str) -> None:
    screen.act("Go on where the demo ends")
    screen.command(f"psql '{dsn}'")
    screen.sql("UPDATE hospital SET disease = 'Gastritis' WHERE name = 'Ken';\n" + _PUBLISH)
    screen.sql("SELECT * FROM mdistinct_verify('hospital');  -- no row: the guarantee holds")
