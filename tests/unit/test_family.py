"""First groups from the balanced family: legal, few signatures, and hardly anybody left."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pg_mdistinct.core.arrays import FloatArray, IntArray
from pg_mdistinct.core.buckets import FIRST_TIME, Bucket, fewest_groups
from pg_mdistinct.core.family import (
    Chosen,
    Surroundings,
    _could_be_dealt,
    _deal_type,
    choose_groups,
)
from pg_mdistinct.core.model import UpdateModel
from pg_mdistinct.core.programme import Packing
from pg_mdistinct.core.signature import Signature
from pg_mdistinct.core.templates import value_types

NOTHING = Surroundings({}, {})


def classes_model(classes: int, size: int) -> UpdateModel:
    """Values become each other within classes of one size."""
    transition = np.kron(np.eye(classes), np.full((size, size), 1 / size))
    known = np.ones(classes * size, dtype=np.bool_)
    return UpdateModel(transition, known, [f"v{i}" for i in range(classes * size)])


def left_over(new: IntArray, chosen: list[Chosen]) -> IntArray:
    left: IntArray = new.sum(axis=0) - sum(
        (c.taken.sum(axis=0) for c in chosen), np.zeros_like(new[0])
    )
    return left


@settings(max_examples=150)
@given(st.integers(1, 3), st.integers(1, 4), st.integers(2, 6), st.data())
def test_groups_are_balanced_and_full_and_the_rest_is_eligible(
    classes: int, size: int, m: int, data: st.DataObject
) -> None:
    model = classes_model(classes, size)
    types = value_types(model)
    cells = data.draw(
        st.lists(st.integers(0, 9), min_size=2 * classes * size, max_size=2 * classes * size)
    )
    new = np.array(cells, dtype=np.int64).reshape(2, -1)
    chosen = choose_groups(new, NOTHING, m, types)
    for c in chosen:
        assert len(c.types) == m
        assert len(set(Counter(c.types).values())) == 1
        bucket = Bucket(types.signature(c.types), FIRST_TIME, c.taken.sum(axis=0))
        assert fewest_groups(bucket) == c.groups
        assert c.taken.sum() == m * c.groups
    left = left_over(new, chosen)
    assert (left >= 0).all()
    if new.sum(axis=0).max() <= new.sum() // m:
        assert left.max() <= left.sum() // m


@pytest.mark.parametrize("m", [2, 4, 6, 8])
def test_few_signatures_take_nearly_everybody(m: int) -> None:
    rng = np.random.default_rng(m)
    shares = np.tile(1.0 / np.arange(8, 18), 5)
    new = rng.multinomial(4_000, shares / shares.sum(), (4,)).astype(np.int64)
    chosen = choose_groups(new, NOTHING, m, value_types(classes_model(5, 10)))
    assert len(chosen) <= 15
    assert left_over(new, chosen).sum() <= 100 * m


def test_new_records_lean_on_old_ones() -> None:
    """Alone no group of four could take them: they all have one value."""
    model = classes_model(1, 8)
    types = value_types(model)
    signature: Signature = types.signature([0, 0, 0, 0])
    old = np.full((1, 8), 50, dtype=np.int64)
    new = np.zeros((1, 8), dtype=np.int64)
    new[0, 0], new[0, 1], new[0, 2] = 30, 5, 5
    (chosen,) = choose_groups(new, Surroundings({signature: old}, {signature: 100}), 4, types)
    together = Bucket(signature, FIRST_TIME, old[0] + chosen.taken[0])
    assert chosen.groups >= 8
    assert fewest_groups(together) == 100 + chosen.groups


def rows_missing(counts: IntArray, m: int) -> int:
    """How many counterfeits it takes to group these records among themselves."""
    records = int(counts.sum())
    return m * max(int(counts.max()), -(-records // m)) - records


@settings(max_examples=150)
@given(st.integers(1, 3), st.integers(2, 4), st.integers(2, 4), st.data())
def test_the_rest_lacks_no_more_than_all_did(
    classes: int, size: int, m: int, data: st.DataObject
) -> None:
    """One value prevails among the new records, and old groups may have it already, or not."""
    values = classes * size
    types = value_types(classes_model(classes, size))
    row = st.lists(st.integers(0, 40), min_size=values, max_size=values)
    new = np.array([data.draw(row), data.draw(row)], dtype=np.int64)
    new[:, 0] *= data.draw(st.integers(1, 9))
    old = np.array([data.draw(row), data.draw(row)], dtype=np.int64)
    old[:, size:] = 0
    around = NOTHING
    if m <= size and old.any():
        signature = types.signature([0] * m)
        groups = fewest_groups(Bucket(signature, FIRST_TIME, old.sum(axis=0)))
        around = Surroundings({signature: old}, {signature: groups})
    chosen = choose_groups(new, around, m, types)
    assert rows_missing(left_over(new, chosen), m) <= rows_missing(new.sum(axis=0), m)
    for c in chosen:
        signature = types.signature(c.types)
        standing = around.records.get(signature, np.zeros_like(new)) + c.taken
        groups = around.groups.get(signature, 0) + c.groups
        assert fewest_groups(Bucket(signature, FIRST_TIME, standing.sum(axis=0))) <= groups


def test_large_programmes_are_not_solved_often(monkeypatch: pytest.MonkeyPatch) -> None:
    solved: list[int] = []
    maximize = Packing.maximize

    def counted(packing: Packing, gain: FloatArray) -> FloatArray:
        solved.append(len(gain))
        return maximize(packing, gain)

    monkeypatch.setattr(Packing, "maximize", counted)
    new = np.random.default_rng(0).integers(0, 10, (2, 1_000))
    chosen = choose_groups(new, NOTHING, 4, value_types(classes_model(200, 5)))
    assert left_over(new, chosen).sum() < new.sum() / 3
    assert set(solved) == {200}
    assert len(solved) == 4


def test_what_a_region_cannot_take_goes_next_door() -> None:
    """One value prevails in the first region, where no group has room for all who have it."""
    new = np.full((4, 8), 40, dtype=np.int64)
    new[0, 0] = 150
    types = value_types(classes_model(1, 8))
    (chosen,) = choose_groups(new, NOTHING, 4, types)
    assert left_over(new, [chosen]).sum() < 40
    here, next_door, *others = chosen.taken[:, 0].tolist()
    assert here < 100
    assert next_door > 80
    assert max(others) < 50


def test_choosing_tells_how_far_it_is_and_can_be_ended() -> None:
    model = classes_model(5, 10)
    new = np.full((16, 50), 10, dtype=np.int64)
    shares: list[float] = []
    choose_groups(new, NOTHING, 4, value_types(model), shares.append)
    assert shares[0] == 0.0
    assert shares == sorted(set(shares))
    assert 0.9 < shares[-1] < 1.0

    def give_up(share: float) -> None:
        if share > 0.5:
            raise TimeoutError

    with pytest.raises(TimeoutError):
        choose_groups(new, NOTHING, 4, value_types(model), give_up)


@given(st.data())
def test_what_is_refused_at_a_glance_cannot_be_dealt(data: st.DataObject) -> None:
    signatures, values = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 4))

    def drawn(*shape: int) -> IntArray:
        numbers = data.draw(st.lists(st.integers(0, 4), min_size=12, max_size=12))
        return np.array(numbers[: int(np.prod(shape))], dtype=np.int64).reshape(shape)

    counts, slots = drawn(values), drawn(signatures)
    demand = counts, np.minimum(drawn(values), counts), drawn(signatures, values), slots
    dealt = _deal_type(*demand)
    if not _could_be_dealt(*demand):
        assert dealt is None
    if dealt is not None:
        assert (dealt.sum(axis=1) == slots).all()
        assert (dealt <= demand[2]).all()
        assert (demand[1] <= dealt.sum(axis=0)).all()
        assert (dealt.sum(axis=0) <= counts).all()
