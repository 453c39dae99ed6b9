"""The oracle itself: does it see what is wrong, and is it silent when nothing is?"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations, pairwise, permutations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.oracle import hospital
from tests.oracle.adversary import UpdateGraph, update_graph
from tests.oracle.checker import (
    HistoryRules,
    has_one_to_one_update,
    is_legal_update_instance,
    is_m_unique,
    violations,
)
from tests.oracle.history import Group, Reach, Version, steps
from tests.strategies import MODEL_KINDS, ModelSpec, models, random_history

CHAIN = {
    "a": {"a": Fraction(1, 2), "b": Fraction(1, 2)},
    "b": {"b": Fraction(1, 2), "c": Fraction(1, 2)},
}


def imported_modules(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


def test_oracle_shares_no_code_with_the_plugin() -> None:
    folder = Path(__file__).parents[1] / "oracle"
    imported = {module for path in folder.glob("*.py") for module in imported_modules(path)}
    assert not [module for module in imported if module.startswith("pg_mdistinct")]


def test_reach_takes_as_many_steps_as_releases_were_skipped() -> None:
    reach = Reach(CHAIN)
    assert reach("a") == {"a", "b"}
    assert reach("a", 2) == {"a", "b", "c"}
    assert reach("c", 5) == {"c"}, "a value without a row stays"
    assert steps(CHAIN, "a", 2) == {
        "a": Fraction(1, 4),
        "b": Fraction(1, 2),
        "c": Fraction(1, 4),
    }


def test_probability_zero_is_no_update() -> None:
    assert Reach({"a": {"a": 1, "b": 0}})("a") == {"a"}


@pytest.mark.parametrize(
    ("values", "m", "expected"),
    [(("a", "b"), 2, True), (("a", "a"), 2, False), (("a", "b"), 3, False)],
)
def test_m_unique(values: tuple[str, ...], m: int, expected: bool) -> None:
    assert is_m_unique(values, m) is expected


def signature(*reaches: str) -> tuple[frozenset[str], ...]:
    return tuple(frozenset(reach) for reach in reaches)


@pytest.mark.parametrize(
    ("candidates", "reaches", "legal", "one_to_one"),
    [
        ("ac", ("ab", "cd"), True, True),
        ("ab", ("ab", "cd"), False, False),
        ("acd", ("ab", "cd"), False, False),
        ("ae", ("ab", "cd"), False, False),
        # Both coverings hold, yet b and c compete for the second set.
        ("abc", ("a", "bc", "a"), True, False),
        ("abc", ("ab", "b", "bc"), True, True),
    ],
)
def test_legal_update_instances(
    candidates: str, reaches: tuple[str, ...], legal: bool, one_to_one: bool
) -> None:
    assert is_legal_update_instance(candidates, signature(*reaches)) is legal
    assert has_one_to_one_update(candidates, signature(*reaches)) is one_to_one


GOOD = {1: Group(("a", "c"), {"x": "a", "y": "c"})}


@pytest.mark.parametrize(
    ("release", "complaint"),
    [
        ({1: Group(("a", "a"), {"x": "a", "y": "a"})}, "not 2-unique"),
        ({1: Group(("a",), {"x": "a"})}, "not 2-unique"),
        ({1: Group(("a", "c"), {"x": "a"})}, "0 counterfeits"),
        ({1: Group(("a", "c"), {"x": "b"}, 1)}, "with value b"),
        (
            {1: Group(("a", "c"), {"x": "a"}, 1), 2: Group(("a", "c"), {"x": "a"}, 1)},
            "is in 2 groups",
        ),
    ],
)
def test_a_bad_release_is_seen(release: dict[int, Group], complaint: str) -> None:
    assert violations([GOOD], CHAIN, 2, "m-distinct") == []
    assert any(complaint in line for line in violations([release], CHAIN, 2, "m-distinct"))


@pytest.mark.parametrize("explore_graphs", [True, False])
def test_a_candidate_that_can_be_excluded_is_seen(explore_graphs: bool) -> None:
    second = {7: Group(("b", "d"), {"x": "b"}, 1)}
    found = violations([GOOD, second], CHAIN, 2, "m-distinct", explore_graphs=explore_graphs)
    assert any("no legal update instance" in line for line in found)
    assert any("no one-to-one update" in line for line in found)
    assert any("candidate c can be excluded" in line for line in found)
    assert any("candidate d can be excluded" in line for line in found)


def test_a_gap_gives_more_steps() -> None:
    model = {"a": {"a": 0.5, "b": 0.5}, "b": {"b": 0.5, "c": 0.5}, "d": {"d": 1.0}}
    first = {1: Group(("a", "d"), {"x": "a"}, 1)}
    later = {1: Group(("c", "d"), {"x": "c"}, 1)}
    assert violations([first, {}, later], model, 2, "m-distinct") == []
    assert violations([first, later], model, 2, "m-distinct") != []


def test_an_impossible_update_is_seen() -> None:
    second = {1: Group(("c", "a"), {"x": "c"}, 1)}
    first = {1: Group(("c", "a"), {"x": "a"}, 1)}
    assert any(
        "impossible update a -> c" in line
        for line in violations([first, second], CHAIN, 2, "m-distinct")
    )


def test_the_stricter_variant_wants_disjoint_reach_sets_in_the_first_group_only() -> None:
    overlapping = {1: Group(("a", "b"), {"x": "a", "y": "b"})}
    assert violations([overlapping], CHAIN, 2, "m-distinct") == []
    assert any("overlap" in line for line in violations([overlapping], CHAIN, 2, "m-distinct*"))
    assert violations([GOOD, GOOD], CHAIN, 2, "m-distinct*") == []


def test_missing_and_invented_records_are_seen() -> None:
    found = violations([GOOD], CHAIN, 2, "m-distinct", snapshots=[{"x": "a", "z": "c"}])
    assert any("record z is missing" in line for line in found)
    assert any("record y is not in the snapshot" in line for line in found)


def test_an_unknown_variant_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown variant"):
        violations([], CHAIN, 2, "l-diversity")


def test_deletion_repeats_until_nothing_is_left_to_delete() -> None:
    """Excluding a value in the last version takes its ancestors with it, one by one."""
    model = {"a": {"b": 1}, "b": {"c": 1}, "x": {"y": 1}, "y": {"z": 1}}
    groups = [Group(("a", "x")), Group(("b", "y")), Group(("c", "w"))]
    graph = UpdateGraph.of(
        [Version(i + 1, 1, group, None) for i, group in enumerate(groups)], model
    )
    assert [value for _, value in graph.pruned()] == ["x", "y", "w"]
    assert [value for _, value in graph.disclosed()] == ["a", "b", "c"]


def test_risk_needs_true_values() -> None:
    history = [{1: Group(("a", "c"), {"x": None}, 1)}]
    with pytest.raises(ValueError, match="true value"):
        update_graph(history, CHAIN, "x").risks()


def test_the_hospital_fixture_obeys_its_own_model() -> None:
    reach = Reach(hospital.MODEL)
    first, second = hospital.SNAPSHOTS
    assert all(second[name] in reach(first[name]) for name in first)


def test_generated_histories_obey_their_model() -> None:
    for seed in range(300):
        spec = random_history(seed)
        reach = Reach(spec.model.by_label)
        last: dict[str, tuple[int, int]] = {}
        for release, rows in enumerate(spec.snapshots):
            for record, row in rows.items():
                if record in last:
                    before, value = last[record]
                    possible = reach(spec.model.labels[value], release - before)
                    assert spec.model.labels[row.value] in possible
                last[record] = (release, row.value)


def test_every_kind_of_history_is_generated() -> None:
    specs = [random_history(seed) for seed in range(500)]
    assert {spec.model.kind for spec in specs} == set(MODEL_KINDS)
    assert {spec.variant for spec in specs} == {"m-distinct", "m-distinct*"}
    assert {spec.m for spec in specs} == {2, 3, 4, 5}
    assert {len(spec.model.labels) for spec in specs} == set(range(2, 9))
    assert {len(spec.snapshots) for spec in specs} == set(range(1, 7))
    assert any(not any(spec.snapshots) for spec in specs), "an empty source"
    assert any(sum(map(len, spec.snapshots)) == 1 for spec in specs), "one record"


@given(models(), st.lists(st.sets(st.integers(0, 7), min_size=1), min_size=1, max_size=4))
def test_nothing_is_pruned_exactly_where_neighbouring_versions_cover_each_other(
    model: ModelSpec, chain: list[set[int]]
) -> None:
    """Why the checker may judge long histories pair by pair."""
    labels = model.labels
    groups = [Group(tuple(sorted({labels[i % len(labels)] for i in codes}))) for codes in chain]
    versions = [Version(i + 1, 1, group, None) for i, group in enumerate(groups)]
    reach = Reach(model.by_label)
    covered = all(
        all(any(b in reach(a) for a in old.values) for b in new.values)
        and all(any(b in reach(a) for b in new.values) for a in old.values)
        for old, new in pairwise(groups)
    )
    assert (UpdateGraph.of(versions, model.by_label).pruned() == []) is covered
    judged = HistoryRules(model.by_label, "m-distinct").judge("x", versions)
    assert judged.dead_end is not covered


@given(st.lists(st.sets(st.sampled_from("abcde"), min_size=1), min_size=1, max_size=5))
def test_matching_against_brute_force(reaches: list[set[str]]) -> None:
    signature = tuple(map(frozenset, reaches))
    for candidates in combinations("abcde", len(signature)):
        brute = any(
            all(value in reach for value, reach in zip(order, signature, strict=True))
            for order in permutations(candidates)
        )
        assert has_one_to_one_update(candidates, signature) is brute
