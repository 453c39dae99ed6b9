"""Models in which values have to move: safe candidate sets, and records dealt out to them."""

from __future__ import annotations

from itertools import permutations, product
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pg_mdistinct.core import errors
from pg_mdistinct.core.careful import RecordClass, assign_carefully
from pg_mdistinct.core.errors import MdistinctError
from pg_mdistinct.core.model import M_DISTINCT, M_DISTINCT_STAR, UpdateModel
from pg_mdistinct.core.safety import Safety, images
from pg_mdistinct.core.values import value_set, values_of
from tests.core_history import CoreHistory
from tests.strategies import HistorySpec, ModelSpec, Row, models


def core_model(spec: ModelSpec) -> UpdateModel:
    return UpdateModel(spec.transition, np.ones(len(spec.labels), dtype=np.bool_), spec.labels)


def cycle(size: int, *shifts: int) -> ModelSpec:
    """Everybody moves on by one of these numbers, round and round."""
    rows = np.zeros((size, size))
    for shift in shifts:
        rows[np.arange(size), (np.arange(size) + shift) % size] = 1 / len(shifts)
    return ModelSpec("cycle", tuple(f"v{i}" for i in range(size)), tuple(map(tuple, rows.tolist())))


@given(st.lists(st.sets(st.integers(0, 5), min_size=1), max_size=4))
def test_images_are_all_choices_of_different_values(entries: list[set[int]]) -> None:
    expected = {
        value_set(chosen) for chosen in product(*entries) if len(set(chosen)) == len(chosen)
    }
    assert images([value_set(entry) for entry in entries]) == expected


@pytest.mark.parametrize("exact", [True, False])
def test_safe_states_can_be_kept_up(exact: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two values that swap and two that stay: those that swap cannot be together with a stop."""
    if not exact:
        monkeypatch.setattr("pg_mdistinct.core.safety.EXACT_LIMIT", 0)
    reach = [0b0010, 0b0001, 0b0100, 0b0100]
    safety = Safety(reach, range(4), 2)
    assert safety.is_exact is exact
    assert safety.is_safe(0b0011, 0)
    assert safety.is_safe(0b0101, 0)
    assert not safety.is_safe(0b1100, 2)
    assert not safety.is_safe(0b0011, 2), "a state has the record's own value in it"


def test_larger_domains_look_one_release_ahead() -> None:
    spec = cycle(16, 1, 2)
    reach = [value_set(targets) for targets in spec.reach]
    safety = Safety(reach, range(16), 5)
    assert not safety.is_exact
    for value in range(16):
        companies = safety.companies(value, disjoint=False)
        assert companies
        for candidates in companies:
            assert candidates >> value & 1
            assert candidates.bit_count() == 5
            entries = [reach[v] for v in values_of(candidates)]
            for new in values_of(reach[value]):
                assert all(
                    after >> new & 1 and after.bit_count() == 5
                    for after in safety.successors(entries, new)
                )


@settings(max_examples=150)
@given(models(), st.randoms(use_true_random=False), st.sampled_from([M_DISTINCT, M_DISTINCT_STAR]))
def test_every_record_is_dealt_to_candidates_that_hold_it(
    spec: ModelSpec, rng: Random, variant: str
) -> None:
    model = core_model(spec)
    m = min(3, len(spec.labels))
    try:
        model.check(m, variant)
    except MdistinctError:
        return
    classes = [
        RecordClass(None, value, rng.randint(1, 5))
        for value in range(len(spec.labels))
        if rng.random() < 0.7
    ]
    buckets, dealt = assign_carefully(classes, model, m, variant)
    given_out = np.zeros(len(classes), dtype=np.int64)
    held = [np.zeros(len(spec.labels), dtype=np.int64) for _ in buckets]
    for number, where, records in dealt:
        given_out[number] += records
        held[where][classes[number].value] += records
    assert given_out.tolist() == [c.records for c in classes]
    for bucket, counts in zip(buckets, held, strict=True):
        assert bucket.counts.tolist() == counts.tolist()
        assert len(bucket.entries) == m
        candidates = [value for entry in bucket.entries for value in values_of(entry)]
        assert len(set(candidates)) == m
        assert set(np.flatnonzero(counts).tolist()) <= set(candidates)


def test_old_records_follow_their_signature() -> None:
    spec = cycle(4, 1)
    signature = (0b0010, 0b0100)
    buckets, dealt = assign_carefully(
        [RecordClass(signature, 1, 3), RecordClass(signature, 2, 1), RecordClass(None, 2, 2)],
        core_model(spec),
        2,
        M_DISTINCT,
    )
    assert [bucket.entries for bucket in buckets] == [(0b0010, 0b0100)]
    assert buckets[0].counts.tolist() == [0, 3, 3, 0]
    assert sum(records for *_, records in dealt) == 6


def test_a_record_without_a_way_out_is_named() -> None:
    spec = ModelSpec("stuck", ("a", "b", "c"), ((0, 0, 1), (0, 0, 1), (0, 0, 1)))
    with pytest.raises(MdistinctError) as caught:
        assign_carefully([RecordClass(None, 1, 4)], core_model(spec), 2, M_DISTINCT)
    assert caught.value.sqlstate == errors.NO_LEGAL_RELEASE
    assert 'a record with "b"' in caught.value.message


@pytest.mark.parametrize(("size", "m", "shifts"), [(16, 5, (1, 2)), (20, 4, (3, 7, 9))])
def test_large_domains_without_staying_are_published(
    size: int, m: int, shifts: tuple[int, ...]
) -> None:
    """More candidate sets than can be listed: the search looks one release ahead."""
    spec = cycle(size, *shifts)
    core_model(spec).check(m, M_DISTINCT)
    rng = Random(size)
    value = {f"r{i}": rng.randrange(size) for i in range(30)}
    snapshots = []
    for _ in range(5):
        snapshots.append({r: Row((rng.randrange(50),), v) for r, v in value.items()})
        value = {r: (v + rng.choice(shifts)) % size for r, v in value.items()}
    history = CoreHistory.run(HistorySpec(spec, m, M_DISTINCT, (False,), tuple(snapshots)))
    assert history.violations() == []


def test_permutations_keep_every_candidate_set() -> None:
    """Where updates are one permutation, whole candidate sets move on together."""
    for order in permutations(range(4)):
        reach = [1 << target for target in order]
        safety = Safety(reach, range(4), 2)
        assert all(len(safety.companies(value, disjoint=False)) == 3 for value in range(4))


def test_large_domains_prefer_values_that_may_stay() -> None:
    """Sixty values are too many to solve; the first representatives would be a dead end."""
    reach = [1 << 2, 1 << 2] + [1 << v | 0b11 for v in range(2, 60)]
    safety = Safety(reach, range(60), 2)
    assert not safety.is_exact
    found = safety.successors((reach[10], reach[20]), 0)
    assert found
    assert all(candidates & 1 for candidates in found)
    assert 0b11 not in found


def test_values_that_the_model_has_dropped_may_stay_among_old_candidates() -> None:
    reach = [1 << 1] + [1 << v for v in range(1, 6)]
    dropped = 1 << 5
    safety = Safety(reach, range(5), 3, dropped)
    assert safety.successors((reach[2], reach[3], reach[5]), 3) == [1 << 2 | 1 << 3 | dropped]
    assert not any(candidates & dropped for candidates in safety.companies(3, disjoint=False))
