"""First groups: nobody lost, no more counterfeits than skew demands, balanced signatures."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pg_mdistinct.core.buckets import Bucket, fewest_groups
from pg_mdistinct.core.family import Surroundings
from pg_mdistinct.core.first_time import partition_first_time
from pg_mdistinct.core.model import M_DISTINCT, M_DISTINCT_STAR, UpdateModel
from pg_mdistinct.core.signature import Signature
from tests.strategies import ModelSpec, models
from tests.unit.core_buckets import full_groups, members


def classes_model(classes: int, size: int) -> UpdateModel:
    """Values become each other within classes of one size."""
    transition = np.kron(np.eye(classes), np.full((size, size), 1 / size))
    values = classes * size
    return UpdateModel(
        transition, np.ones(values, dtype=np.bool_), [f"v{i}" for i in range(values)]
    )


def partition(
    counts: list[int], model: UpdateModel, m: int, variant: str = M_DISTINCT, seed: int = 0
) -> list[Bucket]:
    """Partition records of three regions, and put pieces of one signature together."""
    rng = np.random.default_rng(seed)
    by_region = rng.multinomial(counts, [0.2, 0.3, 0.5]).T
    around = Surroundings({}, {})
    pieces, preferred = partition_first_time(by_region, around, model, m, variant, rng)
    wanted = sum(preferred.values(), np.zeros_like(by_region))
    assert (wanted.sum(axis=0) <= counts).all()
    together: dict[Signature, Bucket] = {}
    for piece in pieces:
        bucket = together.setdefault(
            piece.entries, Bucket(piece.entries, piece.kind, np.zeros_like(piece.counts))
        )
        bucket.counts = bucket.counts + piece.counts
    for bucket in together.values():
        bucket.groups = fewest_groups(bucket)
    placed = sum((bucket.counts for bucket in together.values()), np.zeros(len(counts), np.int64))
    assert placed.tolist() == counts
    return list(together.values())


def counterfeits(buckets: list[Bucket]) -> int:
    return sum(bucket.holes for bucket in buckets)


def fewest_counterfeits(counts: list[int], m: int) -> int:
    """What no way of grouping can do without.

    The most frequent value needs as many groups as it has records; where there are no more than m
    values, groups cannot be larger than m either.
    """
    records, most = sum(counts), max(counts, default=0)
    if len(counts) > m:
        return max(0, m * most - records)
    return m * max(most, -(-records // m)) - records


@settings(max_examples=150)
@given(st.integers(1, 3), st.integers(1, 3), st.integers(2, 5), st.data())
def test_counterfeits_are_as_few_as_can_be(
    classes: int, size: int, m: int, data: st.DataObject
) -> None:
    values = max(classes * size, m)
    model = classes_model(classes, size) if values == classes * size else classes_model(values, 1)
    counts = data.draw(st.lists(st.integers(0, 8), min_size=values, max_size=values))
    seed = data.draw(st.integers(0, 9))
    buckets = partition(counts, model, m, seed=seed)
    assert all(len(bucket.entries) >= m for bucket in buckets)
    assert counterfeits(buckets) == fewest_counterfeits(counts, m)


@settings(max_examples=100)
@given(models(), st.randoms(use_true_random=False), st.data())
def test_every_model_gets_groups_of_m_that_hold_everybody(
    spec: ModelSpec, rng: Random, data: st.DataObject
) -> None:
    values = len(spec.labels)
    model = UpdateModel(spec.transition, np.ones(values, dtype=np.bool_), spec.labels)
    m = data.draw(st.integers(2, values))
    counts = [rng.choice((0, 1, 2, 9)) for _ in range(values)]
    for bucket in partition(counts, model, m):
        assert len(bucket.entries) >= m
        entries = tuple(map(members, bucket.entries))
        assert full_groups(entries, values)


def share_in_balance(buckets: list[Bucket]) -> float:
    """The share of groups with every reach set as often as any other.

    There, no candidate has more paths than its company.
    """
    balanced = [b.groups for b in buckets if len({count for _, count in b.types}) == 1]
    return sum(balanced) / sum(b.groups for b in buckets)


@pytest.mark.parametrize("m", [2, 3, 4, 6])
@pytest.mark.parametrize("shape", [(2, 6), (3, 4), (4, 3)])
def test_even_numbers_make_balanced_signatures(shape: tuple[int, int], m: int) -> None:
    buckets = partition([10 * m] * 12, classes_model(*shape), m)
    assert {len(bucket.entries) for bucket in buckets} == {m}
    assert share_in_balance(buckets) >= 0.9


def test_uneven_numbers_make_balanced_signatures_and_few_of_them() -> None:
    """Without a preference there would be seventy of them."""
    counts = np.random.default_rng(8).integers(40, 80, 50).tolist()
    buckets = partition(counts, classes_model(5, 10), 4)
    assert share_in_balance(buckets) >= 0.98
    assert len(buckets) <= 25


def test_records_beyond_a_multiple_of_m_enlarge_groups() -> None:
    buckets = partition([1, 1, 1, 1, 1], classes_model(5, 1), 4)
    assert [(len(b.entries), b.groups, b.holes) for b in buckets] == [(5, 1, 0)]
    buckets = partition([3, 3, 3, 3, 2], classes_model(5, 1), 4)
    sizes = Counter({len(b.entries): b.groups for b in buckets})
    assert counterfeits(buckets) == 0
    assert sum(sizes.values()) == 3
    assert max(sizes) == 5


def test_one_record_stands_among_counterfeits() -> None:
    (bucket,) = partition([0, 1, 0, 0], classes_model(2, 2), 3)
    assert (len(bucket.entries), bucket.groups, bucket.holes) == (3, 1, 2)


def test_nobody() -> None:
    assert partition([0, 0, 0], classes_model(3, 1), 2) == []


@settings(max_examples=200)
@given(models(), st.data())
def test_stricter_groups_have_disjoint_reach(spec: ModelSpec, data: st.DataObject) -> None:
    values = len(spec.labels)
    if spec.largest_disjoint_m < 2:
        return
    m = data.draw(st.integers(2, spec.largest_disjoint_m))
    model = UpdateModel(spec.transition, np.ones(values, dtype=np.bool_), spec.labels)
    counts = data.draw(st.lists(st.integers(0, 6), min_size=values, max_size=values))
    for bucket in partition(counts, model, m, M_DISTINCT_STAR):
        assert len(bucket.entries) == m
        entries = tuple(map(members, bucket.entries))
        for group in full_groups(entries, values):
            for a, b in combinations(group, 2):
                assert not spec.reach[a] & spec.reach[b]


def test_stricter_groups_need_no_counterfeits_where_numbers_are_even() -> None:
    buckets = partition([12] * 12, classes_model(4, 3), 4, M_DISTINCT_STAR)
    assert counterfeits(buckets) == 0
