"""Packing programmes: feasible always, and as good as the best corner."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pg_mdistinct.core.arrays import FloatArray
from pg_mdistinct.core.programme import Packing


def best_corner(columns: FloatArray, limits: FloatArray, gain: FloatArray) -> float:
    """The largest gain of all corners, found by trying them."""
    rows, unknowns = columns.shape
    whole = np.concatenate([columns, np.eye(rows)], axis=1)
    gains = np.concatenate([gain, np.zeros(rows)])
    best = 0.0
    for chosen in map(list, combinations(range(unknowns + rows), rows)):
        if abs(np.linalg.det(whole[:, chosen])) > 1e-9:
            amounts = np.linalg.solve(whole[:, chosen], limits)
            if (amounts >= -1e-9).all():
                best = max(best, float(gains[chosen] @ amounts))
    return best


@st.composite
def programmes(draw: st.DrawFn) -> tuple[FloatArray, FloatArray]:
    rows, unknowns = draw(st.integers(1, 3)), draw(st.integers(1, 4))
    cells = draw(st.lists(st.integers(0, 4), min_size=rows * unknowns, max_size=rows * unknowns))
    columns = np.array(cells, dtype=np.float64).reshape(rows, unknowns)
    columns[0, columns.sum(axis=0) == 0] = 1.0
    limits = draw(st.lists(st.integers(0, 30), min_size=rows, max_size=rows))
    return columns, np.array(limits, dtype=np.float64)


@settings(max_examples=200)
@given(programmes(), st.integers(0, 99))
def test_as_good_as_the_best_corner_one_gain_after_another(
    programme: tuple[FloatArray, FloatArray], seed: int
) -> None:
    columns, limits = programme
    packing = Packing(columns, limits)
    rng = np.random.default_rng(seed)
    for _ in range(3):
        gain: FloatArray = rng.random((columns.shape[1],))
        amounts = packing.maximize(gain)
        assert (amounts >= 0).all()
        assert (columns @ amounts <= limits + 1e-4).all()
        assert abs(float(gain @ amounts) - best_corner(columns, limits, gain)) < 1e-4


def test_nothing_to_share_gives_nothing() -> None:
    assert Packing(np.ones((2, 3)), np.zeros(2)).maximize(np.ones(3)).max() < 1e-5
