"""Rows of unequal length."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pg_mdistinct.core.arrays import (
    MOST_COUNTED,
    Ragged,
    bits,
    different,
    places_of,
    ranked,
    stable_order,
)

rows_of_numbers = st.lists(st.lists(st.integers(-9, 9), max_size=4), max_size=6)


@given(rows_of_numbers, st.data())
def test_rows_are_what_they_were(rows: list[list[int]], data: st.DataObject) -> None:
    ragged = Ragged.of(rows)
    assert len(ragged) == len(rows)
    assert [ragged.row(i).tolist() for i in range(len(rows))] == rows
    assert ragged.lengths.tolist() == list(map(len, rows))
    assert ragged.row_of_item.tolist() == [i for i, row in enumerate(rows) for _ in row]
    chosen = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=8)) if rows else []
    taken = ragged.take(np.array(chosen, dtype=np.int64))
    assert [taken.row(i).tolist() for i in range(len(taken))] == [rows[i] for i in chosen]


@given(st.lists(st.floats(0, 1, width=32) | st.sampled_from([0.0, 0.25, 1.0]), max_size=40))
def test_the_order_of_numbers_keeps_equal_ones_as_they_come(numbers: list[float]) -> None:
    column = np.array(numbers, dtype=np.float32) + np.float32(0)
    assert stable_order(bits(column)).tolist() == np.argsort(column, kind="stable").tolist()


@given(st.lists(st.integers(0, 3) | st.integers(0, 2**60) | st.sampled_from([1 << 16, 1 << 32])))
def test_the_order_of_large_numbers(numbers: list[int]) -> None:
    array = np.array(numbers, dtype=np.int64)
    assert stable_order(array).tolist() == np.argsort(array, kind="stable").tolist()


@given(st.lists(st.integers(0, 9)))
def test_places_are_told_in_order(numbers: list[int]) -> None:
    places = places_of(np.array(numbers, dtype=np.int64), 10)
    expected = [[i for i, number in enumerate(numbers) if number == n] for n in range(10)]
    assert [places.row(n).tolist() for n in range(10)] == expected


@given(st.lists(st.integers(-9, 9) | st.integers(MOST_COUNTED - 12, MOST_COUNTED + 12)))
def test_numbers_are_ranked_by_counting_and_by_comparing(numbers: list[int]) -> None:
    array = np.array(numbers, dtype=np.int64)
    found, rank = ranked(array)
    assert found.tolist() == sorted(set(numbers))
    assert found[rank].tolist() == numbers
    assert different(abs(array)).tolist() == sorted(set(map(abs, numbers)))


@pytest.mark.parametrize("number", [-1, 2])
def test_there_is_no_place_for_other_numbers(number: int) -> None:
    with pytest.raises(AssertionError, match="no such number"):
        places_of(np.array([0, number, 1]), 2)
