"""Generalization: everybody inside, nobody spelled out, and the loss that the contract defines."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pg_mdistinct.core.arrays import IntArray, Ragged
from pg_mdistinct.core.generalize import (
    Generalized,
    counterfeit_codes,
    generalize,
    scaled_positions,
)
from pg_mdistinct.core.snapshot import QiColumn, Snapshot


@dataclass(frozen=True)
class Case:
    """A snapshot that has been split: groups of records, some with counterfeits."""

    columns: list[list[int]]
    is_set: list[bool]
    group: list[int]
    counterfeit_group: list[int]
    bucket_of_group: list[int]

    @property
    def snapshot(self) -> Snapshot:
        empty = np.empty(0, dtype=np.int64)
        return Snapshot(
            value=np.zeros(len(self.group), dtype=np.int64),
            qi=tuple(
                qi_column(values, is_set)
                for values, is_set in zip(self.columns, self.is_set, strict=True)
            ),
            last_group=empty,
            gap=empty,
            last_candidates=Ragged.of([]),
            last_value=empty,
        )

    def generalized(self, seed: int) -> tuple[list[IntArray], Generalized]:
        """The counterfeits' own codes, and what the groups show."""
        snapshot = self.snapshot
        group, fakes = ints(self.group), ints(self.counterfeit_group)
        buckets = ints(self.bucket_of_group)
        rng = np.random.default_rng(seed)
        codes = counterfeit_codes(snapshot, scaled_positions(snapshot), group, buckets, fakes, rng)
        return codes, generalize(snapshot, group, len(buckets), fakes, codes)


def ints(values: list[int]) -> IntArray:
    return np.array(values, dtype=np.int64)


def qi_column(values: list[int], is_set: bool) -> QiColumn:
    distinct = sorted(set(values))
    position = list(range(len(distinct))) if is_set else distinct
    return QiColumn(
        ints([distinct.index(v) for v in values]), np.array(position, dtype=np.float64), is_set
    )


@st.composite
def cases(draw: st.DrawFn) -> Case:
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=6))
    group = [g for g, size in enumerate(sizes) for _ in range(size)]
    column = st.lists(
        st.sampled_from(draw(st.sampled_from([[7], [0, 1], [-5, 0, 3, 40, 41]]))),
        min_size=len(group),
        max_size=len(group),
    )
    columns = draw(st.lists(column, min_size=1, max_size=3))
    return Case(
        columns=columns,
        is_set=[draw(st.booleans()) for _ in columns],
        group=draw(st.permutations(group)),
        counterfeit_group=draw(st.lists(st.integers(0, len(sizes) - 1), max_size=6)),
        bucket_of_group=sorted(draw(st.integers(0, 2)) for _ in sizes),
    )


@settings(max_examples=200)
@given(cases(), st.integers(0, 9))
def test_every_row_is_inside_its_group(case: Case, seed: int) -> None:
    codes, shown = case.generalized(seed)
    for column, own, low, high, members in zip(
        case.snapshot.qi, codes, shown.low, shown.high, shown.members, strict=True
    ):
        assert (members is not None) is column.is_set
        rows = list(zip(case.group, column.code.tolist(), strict=True))
        rows += zip(case.counterfeit_group, own.tolist(), strict=True)
        for g in range(len(case.bucket_of_group)):
            inside = sorted({code for group, code in rows if group == g})
            assert (low[g], high[g]) == (inside[0], inside[-1])
            assert members is None or members.row(g).tolist() == inside


@settings(max_examples=200)
@given(cases(), st.integers(0, 9))
def test_ncp_is_what_the_contract_says(case: Case, seed: int) -> None:
    """The mean, over real records and columns, of the width that each is shown with."""
    codes, shown = case.generalized(seed)
    losses = []
    for values, is_set, own in zip(case.columns, case.is_set, codes, strict=True):
        distinct = sorted(set(values))
        fakes = [distinct[code] for code in own]
        for g in case.group:
            seen = [v for v, group in zip(values, case.group, strict=True) if group == g]
            seen += [v for v, f in zip(fakes, case.counterfeit_group, strict=True) if f == g]
            if len(distinct) == 1:
                losses.append(0.0)
            elif is_set:
                losses.append((len(set(seen)) - 1) / (len(distinct) - 1))
            else:
                losses.append((max(seen) - min(seen)) / (distinct[-1] - distinct[0]))
    assert abs(shown.ncp - sum(losses) / len(losses)) < 1e-12


@settings(max_examples=200)
@given(cases(), st.integers(0, 9))
def test_a_lone_record_among_counterfeits_is_not_spelled_out(case: Case, seed: int) -> None:
    _, shown = case.generalized(seed)
    can_widen = any(len(set(values)) > 1 for values in case.columns)
    for g in set(case.counterfeit_group):
        wide = any(low[g] < high[g] for low, high in zip(shown.low, shown.high, strict=True))
        assert wide or not can_widen


def test_counterfeits_have_the_quasi_identifiers_of_neighbours() -> None:
    """Two groups of one bucket: a counterfeit of one looks like a record of the other."""
    case = Case([[1, 2, 3, 50]], [False], [0, 0, 1, 1], [0], [0, 0])
    (own,) = case.generalized(0)[0]
    assert own.tolist()[0] in (2, 3)


def test_values_that_nobody_has_do_not_count_as_part_of_the_column() -> None:
    """A column may offer values beyond its records, for counterfeits to take."""
    case = Case([[10, 20]], [False], [0, 0], [], [0])
    wider = QiColumn(ints([1, 2]), np.array([0.0, 10.0, 20.0, 90.0]), False)
    snapshot = Snapshot(**{**vars(case.snapshot), "qi": (wider,)})
    nobody = np.empty(0, dtype=np.int64)
    assert generalize(snapshot, ints([0, 0]), 1, nobody, [nobody]).ncp == 1.0


def test_nothing_to_generalize() -> None:
    nobody = np.empty(0, dtype=np.int64)
    case = Case([[]], [True], [], [], [])
    shown = generalize(case.snapshot, nobody, 0, nobody, [nobody])
    assert shown.ncp == 0.0
    assert len(shown.low[0]) == len(shown.high[0]) == 0


def test_positions_are_scaled_to_one() -> None:
    case = Case([[10, 20, 30], [5, 5, 5]], [False, False], [0, 0, 0], [], [0])
    assert scaled_positions(case.snapshot).tolist() == [[0.0, 0.0], [0.5, 0.0], [1.0, 0.0]]


def test_without_columns_all_are_in_one_place() -> None:
    case = Case([], [], [0, 0, 0], [], [0])
    assert scaled_positions(case.snapshot).tolist() == [[0.0], [0.0], [0.0]]
