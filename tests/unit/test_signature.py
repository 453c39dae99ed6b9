"""Signatures: what candidates may have become, in as many steps as there were releases."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pg_mdistinct.core.arrays import IntArray, Ragged
from pg_mdistinct.core.model import UpdateModel
from pg_mdistinct.core.signature import record_signatures
from pg_mdistinct.core.snapshot import Snapshot
from pg_mdistinct.core.values import value_set
from tests.strategies import ModelSpec, models


def core_model(spec: ModelSpec) -> UpdateModel:
    return UpdateModel(spec.transition, np.ones(len(spec.labels), dtype=np.bool_), spec.labels)


def snapshot_of(groups: list[tuple[int, list[int]]], last_group: list[int]) -> Snapshot:
    """Records that come from groups, given as (gap, candidates); -1: they are new."""
    gap = [groups[g][0] if g >= 0 else 0 for g in last_group]
    value = [groups[g][1][0] if g >= 0 else 0 for g in last_group]
    return Snapshot(
        value=ints(value),
        qi=(),
        last_group=ints(last_group),
        gap=ints(gap),
        last_candidates=Ragged.of([candidates for _, candidates in groups]),
        last_value=ints([v if g >= 0 else -1 for v, g in zip(value, last_group, strict=True)]),
    )


def ints(values: list[int]) -> IntArray:
    return np.array(values, dtype=np.int64)


def after(spec: ModelSpec, value: int, steps: int) -> set[int]:
    """Follow the updates step by step."""
    reached = {value}
    for _ in range(steps):
        reached = {new for old in reached for new in spec.reach[old]}
    return reached


@settings(max_examples=200)
@given(models(hostile=True), st.data())
def test_a_gap_of_k_releases_is_k_steps(spec: ModelSpec, data: st.DataObject) -> None:
    value = st.integers(0, len(spec.labels) - 1)
    candidates = st.sets(value, min_size=1, max_size=4).map(sorted)
    groups = data.draw(st.lists(st.tuples(st.integers(1, 4), candidates), max_size=5))
    rows = st.integers(-1, len(groups) - 1)
    last_group = data.draw(st.lists(rows, max_size=8))
    found = record_signatures(snapshot_of(groups, last_group), core_model(spec))
    assert len(set(found.signatures)) == len(found.signatures)
    used = {g: groups[g] for g in last_group if g >= 0}
    for g, number in zip(last_group, found.of_record.tolist(), strict=True):
        if g < 0:
            assert number == -1
            continue
        gap, values = used[g]
        expected = sorted(value_set(after(spec, v, gap)) for v in values)
        assert sorted(found.signatures[number]) == expected


def test_a_record_that_was_away_has_had_more_steps() -> None:
    chain = ModelSpec(
        "chain",
        ("a", "b", "c", "d"),
        ((0.5, 0.5, 0, 0), (0, 0.5, 0.5, 0), (0, 0, 1, 0), (0, 0, 0, 1)),
    )
    snapshot = snapshot_of([(1, [0, 3]), (2, [0, 3])], [0, 1, 0, -1])
    found = record_signatures(snapshot, core_model(chain))
    assert found.of_record.tolist() == [0, 1, 0, -1]
    assert found.signatures == [(0b0011, 0b1000), (0b0111, 0b1000)]
