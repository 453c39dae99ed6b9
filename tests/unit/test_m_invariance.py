"""m-Invariance in the core: the special case in which every value stays what it is."""

from __future__ import annotations

import dataclasses
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pg_mdistinct.core import errors
from pg_mdistinct.core.errors import MdistinctError
from pg_mdistinct.core.model import M_INVARIANCE, UpdateModel
from pg_mdistinct.core.update_graph import risks
from pg_mdistinct.core.verify import find_violations
from pg_mdistinct.experiments.publisher import Publisher
from pg_mdistinct.workload import SNAPSHOT
from tests.core_history import CoreHistory
from tests.oracle.checker import violations
from tests.oracle.history import Group
from tests.strategies import HistorySpec, ModelSpec, Row, random_history


def unchanging(spec: HistorySpec) -> HistorySpec:
    """The same records, each of which keeps the value that it came with."""
    first: dict[str, int] = {}
    for snapshot in spec.snapshots:
        for record, row in snapshot.items():
            first.setdefault(record, row.value)
    size = len(spec.model.labels)
    return dataclasses.replace(
        spec,
        model=ModelSpec("unchanging", spec.model.labels, tuple(map(tuple, np.eye(size).tolist()))),
        variant=M_INVARIANCE,
        snapshots=tuple(
            {record: Row(row.qi, first[record]) for record, row in snapshot.items()}
            for snapshot in spec.snapshots
        ),
    )


@settings(max_examples=60)
@given(st.randoms(use_true_random=False), st.integers(0, 2**32 - 1))
def test_property_histories_keep_every_signature(rng: Random, seed: int) -> None:
    spec = unchanging(random_history(rng))
    assert CoreHistory.run(spec, seed).violations() == []


@pytest.mark.parametrize("m", [2, 3, 5])
def test_the_risk_of_a_record_is_one_in_the_size_of_its_groups(m: int) -> None:
    rng = np.random.default_rng(m)
    model = UpdateModel.unchanging([str(i) for i in range(9)])
    value = np.minimum(rng.exponential(3, 400), 8).astype(np.int64)
    publisher = Publisher(model, m, M_INVARIANCE, rng)
    for release in range(4):
        people = np.zeros(200, dtype=SNAPSHOT)
        people["id"] = np.sort(rng.permutation(200 + 60 * release)[:200])
        people["occupation"] = value[people["id"]]
        people["age"] = rng.integers(16, 100, size=200)
        publisher.publish(people)
    history = publisher.history()
    bounds = [m] * len(history.release)
    assert list(find_violations(history, model, bounds, M_INVARIANCE)) == []
    found = risks(history, model)
    size = history.rows.lengths[history.group]
    assert np.allclose(found.risk, 1 / size)
    assert found.risk.max() == pytest.approx(1 / m)


def test_an_adversary_who_knows_that_values_change_is_surer() -> None:
    """The bound is one for values that never change, and no other is claimed."""
    pair = np.zeros(2, dtype=SNAPSHOT)
    pair["id"], pair["occupation"] = (0, 1), (0, 1)
    publisher = Publisher(UpdateModel.unchanging(["flu", "asthma"]), 2, M_INVARIANCE)
    for _ in range(2):
        publisher.publish(pair)
    mostly_chronic = UpdateModel(np.array([[0.1, 0.9], [0.0, 1.0]]), np.ones(2, np.bool_), "ab")
    assert risks(publisher.history(), mostly_chronic).risk.max() > 0.9


def test_fewer_values_than_m_are_refused_without_a_word_of_a_model() -> None:
    with pytest.raises(MdistinctError, match="m = 3 cannot be met: only 2 ") as caught:
        UpdateModel.unchanging(["a", "b"]).check(3, M_INVARIANCE)
    assert caught.value.sqlstate == errors.DOMAIN_TOO_SMALL
    assert "allow_update" not in caught.value.hint


GOOD = {1: Group(("a", "b"), {"Ann": "a", "Bob": "b"}, 0)}
OTHER = {1: Group(("a", "c"), {"Ann": "a"}, 1), 2: Group(("b", "c"), {"Bob": "b"}, 1)}
SWAPPED = {1: Group(("a", "b"), {"Ann": "b", "Bob": "a"}, 0)}


@pytest.mark.parametrize(
    ("second", "complaint"),
    [
        (OTHER, "the signature was ['a', 'b'], and is ['a', 'c']"),
        (SWAPPED, "the value was a at first"),
    ],
)
def test_the_oracle_objects_whatever_a_model_says(second: dict[int, Group], complaint: str) -> None:
    model = {value: {"a": 0.5, "b": 0.25, "c": 0.25} for value in "abc"}
    assert violations([GOOD, GOOD], model, 2, M_INVARIANCE) == []
    assert any(complaint in line for line in violations([GOOD, second], model, 2, M_INVARIANCE))
