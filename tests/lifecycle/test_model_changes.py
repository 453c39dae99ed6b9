"""The update model changes between releases: what stays safe is accepted, the rest refused."""

from __future__ import annotations

import pytest

from tests.fix_database import acting_as
from tests.integration.cases import Connection, one, publish, refused
from tests.integration.test_histories import (
    candidates,
    make_patients,
    publish_patients,
    violations,
)
from tests.oracle.check_database import check_database

ALLOW = "SELECT mdistinct_allow_update('patients', %s, %s)"
ALLOW_WITH = "SELECT mdistinct_allow_update('patients', %s, %s, %s)"
PAIRS = {"a": "ab", "b": "ab", "c": "cd", "d": "cd"}
EVERYBODY = {"w": "a", "x": "b", "y": "c", "z": "d"}


@pytest.fixture
def patients(db: Connection) -> Connection:
    """Two releases in which nobody's value has changed, but everybody's could have."""
    make_patients(db, PAIRS, 2)
    publish_patients(db, **EVERYBODY)
    publish_patients(db, **EVERYBODY)
    return db


def test_a_new_value_reaches_old_records_and_new_ones(patients: Connection) -> None:
    patients.execute(ALLOW, ("a", list("abe")))
    patients.execute(ALLOW, ("e", list("e")))
    publish_patients(patients, **{**EVERYBODY, "w": "e", "new": "e"})
    publish_patients(patients, **{**EVERYBODY, "w": "e", "new": "e"})
    assert violations(patients) == []
    # The new value is one of two that old candidates have become, not a give-away.
    assert "e" in candidates(patients, "w")[3]
    assert len(candidates(patients, "w")[3]) == 2


def test_a_new_update_makes_nothing_in_the_past_impossible(patients: Connection) -> None:
    patients.execute(ALLOW, ("a", list("abcd")))
    assert violations(patients) == []
    publish_patients(patients, **{**EVERYBODY, "w": "c"})
    assert violations(patients) == []


def test_other_probabilities_are_judged_for_the_whole_history(patients: Connection) -> None:
    before = one(patients, "SELECT max_risk FROM mdistinct.releases WHERE release = 2")
    patients.execute(ALLOW_WITH, ("a", list("ab"), [0.999, 0.001]))
    after = publish(patients, "patients")["max_risk"]
    assert after > before
    assert after == pytest.approx(one(patients, "SELECT max(risk) FROM mdistinct_risk('patients')"))


def history_that_used_every_update(db: Connection) -> None:
    """Publish until some record's candidates have moved in a way that takes a -> b."""
    make_patients(db, {"a": "ab", "b": "b", "c": "c"}, 2)
    publish_patients(db, x="a", y="c")
    # y keeps its value, but the other candidate of its group cannot but go along with x.
    publish_patients(db, x="b", y="c")
    assert candidates(db, "y") == {1: {"a", "c"}, 2: {"b", "c"}}


def test_an_update_that_happened_cannot_be_undone(db: Connection) -> None:
    history_that_used_every_update(db)
    db.execute(ALLOW, ("a", ["a"]))
    with refused(db, "MD002", "1 update impossible"):
        publish(db, "patients")
    db.execute(ALLOW, ("a", list("ab")))


def test_an_update_that_only_protects_somebody_cannot_be_undone(db: Connection) -> None:
    """Nobody's own update is undone, yet candidates of y could be ruled out: no harm may come."""
    make_patients(db, {"a": "ab", "b": "b", "c": "c"}, 2)
    publish_patients(db, y="c")
    assert len(candidates(db, "y")[1]) == 2
    fake = next(iter(candidates(db, "y")[1] - {"c"}))
    publish_patients(db, y="c")
    # Whatever the counterfeit stood for in both releases, forbid just that step.
    then = next(iter(candidates(db, "y")[2] - {"c"}))
    others = [value for value in "abc" if value != then]
    db.execute(ALLOW, (fake, others))
    assert violations(db) != []
    assert check_database(db) != []
    with refused(db, "MD009", "rules out values"):
        publish(db, "patients")
    with refused(db, "MD009"), acting_as(db, "mdistinct_publisher"):
        publish(db, "patients")
    db.execute(ALLOW_WITH, (fake, [then, *others], [1e-6, *[(1 - 1e-6) / 2] * 2]))
    assert publish(db, "patients")["release"] == 3
    assert violations(db) == []


def test_an_update_that_nothing_relied_on_can_be_taken_away(db: Connection) -> None:
    make_patients(db, {"a": "a", "b": "b", "c": "cd", "d": "d"}, 2)
    publish_patients(db, x="a", y="b", z="c")
    if candidates(db, "z")[1] == {"c", "d"}:
        publish_patients(db, x="a", y="b", z="c")
    db.execute(ALLOW, ("c", ["c"]))
    publish_patients(db, x="a", y="b", z="c")
    assert violations(db) == []
    with refused(db, "MD002", "z (c -> d)"):
        publish_patients(db, x="a", y="b", z="d")


def test_a_model_that_leaves_old_records_no_legal_release_is_refused(db: Connection) -> None:
    make_patients(db, {"a": "ac", "b": "bc", "c": "c"}, 2)
    publish_patients(db, x="a", y="b")
    db.execute(ALLOW, ("a", ["c"]))
    db.execute(ALLOW, ("b", ["c"]))
    db.execute("UPDATE patients SET disease = 'c'")
    with refused(db, "MD006"):
        publish(db, "patients")
    db.execute(ALLOW, ("a", list("ac")))
    publish(db, "patients")
    assert violations(db) == []


def test_first_groups_of_m_distinct_star_stay_disjoint(db: Connection) -> None:
    make_patients(db, {**PAIRS, "f": "f"}, 2, "m-distinct*")
    publish_patients(db, **EVERYBODY)
    # A new value that one side alone may become changes nothing for the other.
    db.execute(ALLOW, ("a", list("abe")))
    publish_patients(db, **{**EVERYBODY, "w": "e"})
    db.execute(ALLOW, ("a", list("abce")))
    with refused(db, "MD009", "overlap"):
        publish(db, "patients")
    db.execute(ALLOW, ("a", list("abe")))
    publish_patients(db, **{**EVERYBODY, "w": "e"})
    assert violations(db) == []


def test_a_model_that_is_put_back_was_never_away(patients: Connection) -> None:
    patients.execute(ALLOW, ("a", ["b"]))
    patients.execute(ALLOW, ("a", list("ab")))
    assert publish(patients, "patients")["release"] == 3
