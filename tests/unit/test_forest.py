"""Placements without cycles: the same sums, fewer cells, rooted trees."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pg_mdistinct.core.buckets import Placement
from pg_mdistinct.core.forest import Forest, as_forest

ENTRY_TYPES = 4
Cell = tuple[int, int]

placements = st.dictionaries(
    st.tuples(st.integers(0, 6), st.integers(0, ENTRY_TYPES - 1)), st.integers(1, 9), max_size=24
)


def forest_of(cells: dict[Cell, int]) -> Forest:
    value, entry_type = np.array(list(cells), dtype=np.int64).reshape(-1, 2).T
    rows = np.array(list(cells.values()), dtype=np.int64)
    return as_forest(Placement(value, entry_type, rows), ENTRY_TYPES)


def cells_of(forest: Forest) -> dict[Cell, int]:
    values = forest.values[forest.cell_value].tolist()
    cells = zip(values, forest.cell_type.tolist(), strict=True)
    return dict(zip(cells, forest.cell_rows.tolist(), strict=True))


def sums(cells: dict[Cell, int], axis: int) -> Counter[int]:
    total: Counter[int] = Counter()
    for cell, rows in cells.items():
        total[cell[axis]] += rows
    return total


@settings(max_examples=300)
@given(placements)
def test_every_value_and_every_entry_keeps_its_rows(cells: dict[Cell, int]) -> None:
    found = cells_of(forest_of(cells))
    assert all(rows > 0 for rows in found.values())
    assert found.keys() <= cells.keys()
    for axis in (0, 1):
        assert sums(found, axis) == sums(cells, axis)


@settings(max_examples=300)
@given(placements)
def test_there_are_no_cycles(cells: dict[Cell, int]) -> None:
    trees: dict[str, frozenset[str]] = {}
    for value, entry_type in cells_of(forest_of(cells)):
        ends = (f"value {value}", f"entry {entry_type}")
        first, second = (trees.get(end, frozenset([end])) for end in ends)
        assert not first & second
        trees.update(dict.fromkeys(first | second, first | second))


@settings(max_examples=300)
@given(placements)
def test_the_walk_goes_from_the_roots_down(cells: dict[Cell, int]) -> None:
    forest = forest_of(cells)
    values = len(forest.values)
    ends = [
        {int(v), values + int(e)} for v, e in zip(forest.cell_value, forest.cell_type, strict=True)
    ]
    seen: set[int] = set()
    below: list[int] = []
    for node in forest.walk.tolist():
        above = int(forest.parent_cell[node])
        if above >= 0:
            (parent,) = ends[above] - {node}
            assert parent in seen
        seen.add(node)
        children = forest.child_cell[forest.child_start[node] : forest.child_start[node + 1]]
        for cell in children.tolist():
            (child,) = ends[cell] - {node}
            assert forest.parent_cell[child] == cell
            below.append(cell)
    assert seen == set(range(values + ENTRY_TYPES))
    assert len(forest.walk) == len(seen)
    assert sorted(below) == list(range(len(ends)))
