"""The adversary through SQL: exact risks, the bound, the preview, and one record's update graph."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import psycopg
import pytest

from tests.integration.cases import Connection, one, publish, refused
from tests.oracle import adversary
from tests.oracle.history import Group, History, Release

VALUES = ("a", "b", "c", "d", "e", "f")
CHAINS = {
    "a": {"a": 0.7, "b": 0.3},
    "b": {"b": 1.0},
    "c": {"c": 0.5, "d": 0.5},
    "d": {"d": 0.9, "c": 0.1},
    "e": {"e": 0.25, "f": 0.75},
    "f": {"f": 1.0},
}
LATER = {"a": "b", "c": "d", "d": "c", "e": "f"}


def make_people(
    db: Connection, records: int = 18, m: int = 3, max_risk: float | None = None
) -> None:
    """A table whose values may become some others, with unequal probabilities."""
    db.execute("CREATE TABLE public.people (id int PRIMARY KEY, age int, state text)")
    db.execute(
        "INSERT INTO public.people SELECT i, 20 + i, (%s::text[])[1 + i %% 6]"
        " FROM generate_series(1, %s) AS i",
        (list(VALUES), records),
    )
    db.execute(
        "SELECT mdistinct_register('people', 'public.people', 'id', '{age}', 'state', %s,"
        " max_risk => %s)",
        (m, max_risk),
    )
    for old, row in CHAINS.items():
        db.execute(
            "SELECT mdistinct_allow_update('people', %s, %s, %s)",
            (old, list(row), list(row.values())),
        )


def change(db: Connection, step: int) -> None:
    """Let some people change, some leave, some come back and some come."""
    for old, new in LATER.items():
        db.execute(
            "UPDATE public.people SET state = %s WHERE state = %s AND id %% 3 = %s",
            (new, old, step % 3),
        )
    db.execute("DELETE FROM public.people WHERE id %% 7 = %s", (step % 7,))
    db.execute(
        "INSERT INTO public.people SELECT 100 * %(step)s + i, 20 + i, (%(values)s::text[])[1 + i]"
        " FROM generate_series(0, 5) AS i",
        {"step": step, "values": list(VALUES)},
    )


def history_of(db: Connection, truth: list[dict[str, str]]) -> History:
    """The releases as the oracle wants them, from what readers and admins see."""
    releases: list[Release] = []
    for number, values in enumerate(truth, start=1):
        shown: dict[int, list[str]] = {}
        for gid, value in db.execute(
            "SELECT gid, state FROM mdistinct_published.people WHERE release = %s", (number,)
        ):
            shown.setdefault(gid, []).append(value)
        members: dict[int, dict[str, str | None]] = {gid: {} for gid in shown}
        for record, gid in db.execute(
            "SELECT record_id, gid FROM mdistinct.people_membership WHERE release = %s", (number,)
        ):
            members[gid][record] = values[record]
        releases.append(
            {
                gid: Group(tuple(v), members[gid], len(v) - len(members[gid]))
                for gid, v in shown.items()
            }
        )
    return releases


def publish_changes(db: Connection, releases: int) -> tuple[History, list[dict[str, Any]]]:
    truth, rows = [], []
    for step in range(1, releases + 1):
        truth.append(dict(db.execute("SELECT id::text, state FROM public.people").fetchall()))
        rows.append(publish(db, "people"))
        change(db, step)
    return history_of(db, truth), rows


EXACT = {old: {new: Fraction(p) for new, p in row.items()} for old, row in CHAINS.items()}


class TestRisk:
    def test_equals_path_enumeration_at_every_release(self, db: Connection) -> None:
        make_people(db)
        history, _ = publish_changes(db, 4)
        for n in range(1, 5):
            exact = adversary.risks(history, EXACT, n)
            rows = db.execute("SELECT * FROM mdistinct_risk('people', %s)", (n,)).fetchall()
            assert {(record, release) for record, release, _, _ in rows} == exact.keys()
            for record, release, risk, candidates in rows:
                assert risk == pytest.approx(float(exact[record, release]), abs=1e-12)
                assert candidates >= 3

    def test_without_a_release_number_it_is_the_latest(self, db: Connection) -> None:
        make_people(db)
        publish_changes(db, 2)
        query = "SELECT * FROM mdistinct_risk('people'{}) ORDER BY record_id, release"
        assert db.execute(query.format("")).fetchall() == db.execute(query.format(", 2")).fetchall()

    def test_republication_risk_is_the_largest_ever(self, db: Connection) -> None:
        make_people(db)
        history, _ = publish_changes(db, 4)
        found = one(db, "SELECT mdistinct_republication_risk('people')")
        assert found == pytest.approx(float(adversary.republication_risk(history, EXACT)))

    def test_nothing_published_nothing_known(self, db: Connection) -> None:
        make_people(db)
        assert db.execute("SELECT * FROM mdistinct_risk('people')").fetchall() == []
        assert one(db, "SELECT mdistinct_republication_risk('people')") is None

    def test_unknown_releases_are_refused(self, db: Connection) -> None:
        make_people(db)
        publish(db, "people")
        for release in (0, 2):
            with refused(db, "22023", f"no release {release}"):
                db.execute("SELECT * FROM mdistinct_risk('people', %s)", (release,))


class TestMaxRisk:
    def test_publish_returns_the_largest_risk_of_all_versions(self, db: Connection) -> None:
        """Carried from release to release, it is the same as computed from the whole history."""
        make_people(db)
        history, rows = publish_changes(db, 5)
        for n, row in enumerate(rows, start=1):
            exact = max(adversary.risks(history, EXACT, n).values())
            assert row["max_risk"] == pytest.approx(float(exact), abs=1e-12)

    def test_a_changed_model_changes_what_is_known(self, db: Connection) -> None:
        make_people(db)
        publish_changes(db, 2)
        db.execute("SELECT mdistinct_allow_update('people', 'a', '{a,b}', '{0.01,0.99}')")
        found = publish(db, "people")["max_risk"]
        largest = one(db, "SELECT max(risk) FROM mdistinct_risk('people')")
        assert found == pytest.approx(largest, abs=1e-12)

    def test_a_model_that_contradicts_the_history_is_refused(self, db: Connection) -> None:
        """Risks under it would all be 0, and say nothing."""
        make_people(db)
        publish(db, "people")
        db.execute("UPDATE public.people SET state = 'b' WHERE id = 6")
        publish(db, "people")
        db.execute("SELECT mdistinct_allow_update('people', 'a', '{a}')")
        with refused(db, "MD002", "1 update impossible"):
            publish(db, "people")
        # The checker looks at the releases under the model that they were published under.
        db.execute("SELECT mdistinct_allow_update('people', 'a', '{a,b}', '{0.7,0.3}')")

    def test_preview_says_the_same_and_writes_nothing(self, db: Connection) -> None:
        """Groups are drawn at random, so only one record's are sure to be the same."""
        make_people(db, records=1, m=2)
        before = one(db, "SELECT count(*) FROM mdistinct.releases")
        shown = one(db, "SELECT max_risk FROM mdistinct_preview('people')")
        assert one(db, "SELECT count(*) FROM mdistinct.releases") == before
        assert publish(db, "people")["max_risk"] == shown == 0.5

    def test_an_empty_history_has_no_risk(self, db: Connection) -> None:
        make_people(db, records=0)
        assert publish(db, "people")["max_risk"] is None


class TestBound:
    def test_a_release_within_the_bound_is_published(self, db: Connection) -> None:
        make_people(db, m=3, max_risk=1 / 3)
        assert publish(db, "people")["max_risk"] == pytest.approx(1 / 3)

    def test_a_release_above_the_bound_is_refused_and_nothing_is_written(
        self, db: Connection
    ) -> None:
        make_people(db, m=3, max_risk=1 / 3)
        publish(db, "people")
        change(db, 1)
        with refused(db, "MD007", "versions would have a risk above max_risk", "from release 1"):
            publish(db, "people")
        assert one(db, "SELECT last_release FROM mdistinct.datasets") == 1

    def test_the_refusal_counts_versions_by_release(self, db: Connection) -> None:
        make_people(db, m=3, max_risk=1 / 3)
        publish(db, "people")
        change(db, 1)
        with pytest.raises(psycopg.Error) as caught:
            publish(db, "people")
        detail = caught.value.diag.message_detail or ""
        assert "release 1: " in detail
        assert "up to 0." in detail

    def test_preview_risk_tells_before_anyone_has_seen_it(self, db: Connection) -> None:
        make_people(db, m=3, max_risk=1 / 3)
        publish(db, "people")
        change(db, 1)
        rows = db.execute("SELECT * FROM mdistinct_preview_risk('people')").fetchall()
        (first, second) = rows
        release, versions, before, after, raised, above = first
        assert (release, versions) == (1, 18)
        assert before == pytest.approx(1 / 3)
        assert after > before
        assert 0 < raised <= versions
        assert 0 < above <= versions
        assert second[0] == 2
        assert second[2] is None
        assert second[4] == 0
        assert one(db, "SELECT last_release FROM mdistinct.datasets") == 1

    def test_preview_risk_of_an_empty_release_raises_nothing(self, db: Connection) -> None:
        make_people(db)
        publish_changes(db, 2)
        db.execute("DELETE FROM public.people")
        rows = db.execute("SELECT * FROM mdistinct_preview_risk('people')").fetchall()
        assert [row[0] for row in rows] == [1, 2]
        for _, _, before, after, raised, _ in rows:
            assert before == pytest.approx(after)
            assert raised == 0


class TestUpdateGraph:
    def test_nodes_and_edges_equal_the_enumerated_graph(self, db: Connection) -> None:
        make_people(db)
        history, _ = publish_changes(db, 4)
        record = one(
            db,
            "SELECT record_id FROM mdistinct.people_membership GROUP BY 1"
            " ORDER BY count(*) DESC, 1 LIMIT 1",
        )
        graph = adversary.update_graph(history, EXACT, record)
        rows = db.execute("SELECT * FROM mdistinct_sug('people', %s)", (record,)).fetchall()
        nodes = {(r[1], r[2]): r for r in rows if r[0] == "node"}
        at = [version.release for version in graph.versions]
        assert nodes.keys() == {(at[i], value) for i, value in graph.nodes}
        for (i, value), weight in graph.nodes.items():
            row = nodes[at[i], value]
            assert row[5] == pytest.approx(float(weight))
            assert row[6] == pytest.approx(float(graph.shares(i).get(value, 0)), abs=1e-12)
            assert row[7] is ((i, value) in graph.feasible)
            assert row[8] is None
        edges = {(r[1], r[2], r[3], r[4]): r[5] for r in rows if r[0] == "edge"}
        assert edges == pytest.approx(
            {
                (at[i], old, at[j], new): float(weight)
                for ((i, old), (j, new)), weight in graph.edges.items()
            }
        )

    def test_the_true_path_only_when_asked(self, db: Connection) -> None:
        make_people(db)
        publish_changes(db, 2)
        rows = db.execute(
            "SELECT release, value FROM mdistinct_sug('people', '3', true_path => true)"
            " WHERE kind = 'node' AND is_true ORDER BY release"
        ).fetchall()
        assert rows == [(1, "d"), (2, "d")]

    def test_a_record_that_was_never_published_is_named(self, db: Connection) -> None:
        make_people(db)
        publish(db, "people")
        with refused(db, "02000", '"nobody"'):
            db.execute("SELECT * FROM mdistinct_sug('people', 'nobody')")


class TestVerify:
    def test_a_published_history_has_no_violation(self, db: Connection) -> None:
        make_people(db)
        publish_changes(db, 3)
        assert db.execute("SELECT * FROM mdistinct_verify('people')").fetchall() == []

    @pytest.mark.tampered
    @pytest.mark.parametrize(
        ("breach", "rule"),
        [
            ("UPDATE mdistinct_data.people_groups SET candidates = candidates[1:2]", "m-unique"),
            (
                "UPDATE mdistinct_data.people_groups SET candidates ="
                " pg_catalog.array_replace(candidates, candidates[1], candidates[2])",
                "m-unique",
            ),
            (
                "UPDATE mdistinct_data.people_groups SET counterfeits = counterfeits + 1",
                "counterfeit count",
            ),
            (
                "UPDATE mdistinct_data.people_groups SET q1 = pg_catalog.int4range(1, 2)",
                "generalized value",
            ),
            (
                "UPDATE mdistinct_data.people_groups AS g SET candidates ="
                " (SELECT pg_catalog.array_agg((c + 2) % 6) FROM unnest(g.candidates) AS c)"
                " WHERE g.release = 2",
                "own value",
            ),
            (
                # Into a group with the first value, which no other can become.
                "UPDATE mdistinct_data.people_placement AS p SET gids = array_fill("
                "(SELECT max(gid) FROM mdistinct_data.people_groups AS g"
                " WHERE g.release = 2 AND 0 = ANY (g.candidates)),"
                " ARRAY[cardinality(p.gids)]) WHERE p.release = 2",
                "legal update instance",
            ),
        ],
    )
    def test_a_broken_history_is_found_out(self, db: Connection, breach: str, rule: str) -> None:
        make_people(db)
        publish_changes(db, 2)
        db.execute(breach)
        rules = {r for (r,) in db.execute("SELECT rule FROM mdistinct_verify('people')")}
        assert rule in rules
