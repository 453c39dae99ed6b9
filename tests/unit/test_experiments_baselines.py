"""The baselines are what they are called, and what is measured of releases is right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest

from pg_mdistinct.core.arrays import IntArray
from pg_mdistinct.core.errors import MdistinctError
from pg_mdistinct.experiments.baselines import BASELINES, publish_groups
from pg_mdistinct.experiments.boxes import Boxes, boxes_of_groups, boxes_of_release, ncp
from pg_mdistinct.experiments.mondrian import DISTINCT, FREQUENCY, mondrian_groups
from pg_mdistinct.experiments.publisher import Publisher
from pg_mdistinct.experiments.queries import DOMAINS, counts, estimates, median_error
from pg_mdistinct.experiments.records import workload_model
from pg_mdistinct.workload import QI_COLUMNS, SnapshotArray, Workload

SMALL = Workload(initial=600, insertions=100, deletions=60, updates=150)


@pytest.fixture(scope="module")
def people() -> SnapshotArray:
    return next(iter(SMALL.releases(1)))


def distinct(values: list[int], size: int) -> bool:
    return len(set(values)) >= size


def no_frequent_value(values: list[int], size: int) -> bool:
    return all(count * size <= len(values) for count in Counter(values).values())


DIVERSE: dict[str, Callable[[list[int], int], bool]] = {
    "exact": no_frequent_value,
    "mondrian, distinct": distinct,
    "mondrian, frequency": no_frequent_value,
}


@pytest.mark.parametrize("size", [2, 4, 8])
@pytest.mark.parametrize("name", BASELINES)
def test_every_group_of_every_release_is_diverse(name: str, size: int) -> None:
    snapshots = list(SMALL.releases(3))
    history = BASELINES[name](snapshots, size, np.random.default_rng(1))
    assert len(history.rows) > 3
    for number in range(len(history.rows)):
        assert DIVERSE[name](history.rows.row(number).tolist(), size)
    for release, snapshot in enumerate(snapshots, start=1):
        there = history.version_release == release
        assert len(snapshot) - size < there.sum() <= len(snapshot)
        own = dict(zip(snapshot["id"].tolist(), snapshot["occupation"].tolist(), strict=True))
        assert history.value[there].tolist() == [own[i] for i in history.record[there].tolist()]


@pytest.mark.parametrize(
    ("diversity", "is_diverse"), [(DISTINCT, distinct), (FREQUENCY, no_frequent_value)]
)
def test_mondrian_cuts_as_long_as_it_can(
    people: SnapshotArray, diversity: int, is_diverse: Callable[[list[int], int], bool]
) -> None:
    """No group can be cut in two at the median of any column, and ranges do not overlap."""
    codes = np.stack([people[name] for name in QI_COLUMNS])
    group = mondrian_groups(codes, people["occupation"], 3, diversity)
    assert set(group.tolist()) == set(range(group.max() + 1))
    for number in range(int(group.max()) + 1):
        members = people[group == number]
        for name in QI_COLUMNS:
            left = members[name] <= best_cut(members[name])
            parts = [members["occupation"][side].tolist() for side in (left, ~left)]
            assert not all(parts) or not all(is_diverse(part, 3) for part in parts)
    assert_disjoint(boxes_of_groups(people, group))


def best_cut(column: IntArray) -> int:
    """The value up to which nearest to half of the rows lie."""
    cuts: list[int] = np.unique(column)[:-1].tolist() or [int(column[0])]
    return min(cuts, key=lambda cut: abs(2 * int((column <= cut).sum()) - len(column)))


def assert_disjoint(boxes: Boxes) -> None:
    low, high = np.stack(boxes.low), np.stack(boxes.high)
    overlap = (low[:, :, None] <= high[:, None, :]) & (high[:, :, None] >= low[:, None, :])
    both = overlap.all(axis=0)
    assert both.sum() == len(boxes.rows), "each box overlaps with itself alone"


def test_mondrian_refuses_what_is_not_diverse() -> None:
    codes = np.arange(4, dtype=np.int64)[None, :]
    with pytest.raises(MdistinctError, match="not 3-diverse"):
        mondrian_groups(codes, np.array([0, 0, 1, 1], dtype=np.int64), 3, DISTINCT)
    with pytest.raises(MdistinctError, match="not 2-diverse"):
        mondrian_groups(codes, np.array([0, 0, 0, 1], dtype=np.int64), 2, FREQUENCY)


def test_groups_become_a_history(people: SnapshotArray) -> None:
    history = publish_groups([people, people], lambda some: some["gender"].astype(np.int64))
    assert len(history.rows) == 4
    assert sorted(history.rows.row(1).tolist()) == sorted(
        people["occupation"][people["gender"] == 1].tolist()
    )


def test_loss_of_boxes_is_that_of_the_release(people: SnapshotArray) -> None:
    release = Publisher(workload_model(SMALL), 4, rng=np.random.default_rng(0)).publish(people)
    boxes = boxes_of_release(people, release)
    assert ncp(people, boxes) == pytest.approx(release.ncp)
    assert ncp(people, boxes_of_groups(people, release.group)) == pytest.approx(release.ncp)
    assert boxes.records.sum() == len(people)


@pytest.mark.parametrize("theta", [0.1, 0.5, 1.0])
def test_answers_are_those_of_counting_one_by_one(people: SnapshotArray, theta: float) -> None:
    release = Publisher(workload_model(SMALL), 4, rng=np.random.default_rng(0)).publish(people)
    boxes = boxes_of_release(people, release)
    found, truth = estimates(boxes, theta), counts(people, theta)
    rng = np.random.default_rng(5)
    for _ in range(20):
        starts = tuple(int(rng.integers(size)) for size in truth.shape)
        ranges = {
            name: (low + start, low + start + max(round(theta * (high - low + 1)), 1) - 1)
            for (name, (low, high)), start in zip(DOMAINS.items(), starts, strict=True)
        }
        matching = [
            all(first <= row[name] <= last for name, (first, last) in ranges.items())
            for row in people
        ]
        assert truth[starts] == sum(matching)
        assert found[starts] == pytest.approx(slow_estimate(boxes, ranges))


def slow_estimate(boxes: Boxes, ranges: dict[str, tuple[int, int]]) -> float:
    total = 0.0
    for group in range(len(boxes.rows)):
        rows = boxes.rows.row(group).tolist()
        first, last = ranges["occupation"]
        expected = float(boxes.records[group]) * sum(first <= v <= last for v in rows) / len(rows)
        for name, low, high in zip(QI_COLUMNS, boxes.low, boxes.high, strict=True):
            shown = range(int(low[group]), int(high[group]) + 1)
            first, last = ranges[name]
            expected *= sum(first <= value <= last for value in shown) / len(shown)
        total += expected
    return total


def test_no_error_where_groups_hide_nothing(people: SnapshotArray) -> None:
    alone = boxes_of_groups(people, np.arange(len(people), dtype=np.int64))
    everybody = boxes_of_groups(people, np.zeros(len(people), dtype=np.int64))
    rng = np.random.default_rng
    assert median_error(people, alone, rng(1)) == 0
    assert median_error(people, everybody, rng(1)) > 0.1
    assert median_error(people, everybody, rng(1), theta=1.0) == 0


def test_queries_with_larger_ranges_are_more_accurate(people: SnapshotArray) -> None:
    release = Publisher(workload_model(SMALL), 4, rng=np.random.default_rng(0)).publish(people)
    boxes = boxes_of_release(people, release)
    errors = [
        median_error(people, boxes, np.random.default_rng(1), theta) for theta in (0.3, 0.5, 0.8)
    ]
    assert errors == sorted(errors, reverse=True)
    assert errors[0] > 2 * errors[-1]
