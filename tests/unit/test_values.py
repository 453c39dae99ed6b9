"""Sets of values as bits, and the two searches among them, against trying everything."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pg_mdistinct.core.values import (
    disjoint_company,
    representatives,
    rows_as_sets,
    value_set,
    values_of,
)

VALUES = 6
sets_of_values = st.sets(st.integers(0, VALUES - 1), min_size=1).map(value_set)
signatures = st.lists(sets_of_values, max_size=4)


@given(st.sets(st.integers(0, 200)))
def test_a_set_gives_back_its_values_in_order(values: set[int]) -> None:
    assert list(values_of(value_set(values))) == sorted(values)


def test_rows_of_a_matrix_are_sets() -> None:
    matrix = np.array([[True, False, True], [False, False, False]])
    assert rows_as_sets(matrix) == [0b101, 0]


def choices(sets: list[int]) -> list[tuple[int, ...]]:
    """Every choice of different values, one from each set."""
    everything = product(*(list(values_of(members)) for members in sets))
    return [chosen for chosen in everything if len(set(chosen)) == len(chosen)]


@settings(max_examples=300)
@given(signatures)
def test_representatives_exist_where_trying_everything_finds_some(sets: list[int]) -> None:
    chosen = representatives(sets)
    possible = choices(sets)
    assert (chosen is None) == (not possible)
    assert chosen is None or tuple(chosen) in possible


@settings(max_examples=300)
@given(signatures, st.integers(0, VALUES - 1))
def test_representatives_with_a_required_value(sets: list[int], required: int) -> None:
    chosen = representatives(sets, required)
    possible = [choice for choice in choices(sets) if required in choice]
    assert (chosen is None) == (not possible)
    assert chosen is None or tuple(chosen) in possible


def companies(reach: list[int], value: int, size: int, others: list[int]) -> list[set[int]]:
    """Every company of a value, found by trying all."""
    return [
        {value, *rest}
        for rest in combinations([other for other in others if other != value], size - 1)
        if all(not reach[a] & reach[b] for a, b in combinations((value, *rest), 2))
    ]


@settings(max_examples=300)
@given(
    st.lists(sets_of_values, min_size=VALUES, max_size=VALUES),
    st.integers(1, 4),
    st.permutations(range(VALUES)),
    st.integers(0, VALUES),
)
def test_disjoint_company_is_found_wherever_there_is_some(
    reach: list[int], size: int, order: list[int], known: int
) -> None:
    preferred = order[:known]
    for value in range(VALUES):
        found = disjoint_company(reach, value, size, preferred)
        possible = companies(reach, value, size, preferred)
        assert (found is None) == (not possible)
        if found is not None:
            assert found[0] == value
            assert len(found) == size
            assert set(found) in possible


def test_disjoint_company_prefers_what_comes_first() -> None:
    reach = [1 << value for value in range(5)]
    assert disjoint_company(reach, 2, 3, [4, 2, 0, 1, 3]) == [2, 4, 0]


def test_an_impossible_company_is_given_up_early() -> None:
    """A chain of sixty with reach four holds fifteen disjoint sets, and never sixteen."""
    reach = [
        sum(1 << min(v + i, 59) for i in range(4)) if v < 57 else 0b1111 << 56 for v in range(60)
    ]
    assert disjoint_company(reach, 0, 15, range(60)) is not None
    assert disjoint_company(reach, 0, 16, range(60)) is None
