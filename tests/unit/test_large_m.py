"""m from 2 to 16: histories of a few dozen records over twenty values."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from pg_mdistinct.core.model import M_DISTINCT, M_DISTINCT_STAR, UpdateModel
from tests.core_history import CoreHistory
from tests.strategies import HistorySpec, ModelSpec, Row

VALUES = 20
RELEASES = 5


def classes_of(size: int) -> list[set[int]]:
    """Classes of one size, the last one perhaps smaller."""
    return [
        set(range(v // size * size, min(v // size * size + size, VALUES))) for v in range(VALUES)
    ]


def nested() -> list[set[int]]:
    """Every value may become itself or one further down its chain."""
    return [{v} | {w for w in range(v, VALUES) if w % 4 == v % 4} for v in range(VALUES)]


def neither(rng: Random) -> list[set[int]]:
    return [{v} | set(rng.sample(range(VALUES), rng.randint(0, 4))) for v in range(VALUES)]


def spec_of(kind: str, reach: list[set[int]]) -> ModelSpec:
    rows = tuple(
        tuple(1 / len(targets) if v in targets else 0.0 for v in range(VALUES)) for targets in reach
    )
    return ModelSpec(kind, tuple(f"v{i}" for i in range(VALUES)), rows)


def random_model(rng: Random) -> ModelSpec:
    kind = rng.choice(("classes", "nested", "neither"))
    if kind == "classes":
        return spec_of(kind, classes_of(rng.choice((1, 2, 5, 10, 20))))
    return spec_of(kind, nested() if kind == "nested" else neither(rng))


def random_snapshots(rng: Random, model: ModelSpec) -> tuple[dict[str, Row], ...]:
    """A few dozen records, evenly spread or not; some come late, some are away for a while."""
    skew = rng.choice((0.0, 0.5, 2.0))
    weights = [1 / (rank + 1) ** skew for rank in range(VALUES)]
    snapshots: tuple[dict[str, Row], ...] = tuple({} for _ in range(RELEASES))
    for number in range(rng.randint(20, 60)):
        value = rng.choices(range(VALUES), weights)[0]
        for release in range(rng.choice((0, 0, 0, 1, 2)), RELEASES):
            value = rng.choice(sorted(model.reach[value]))
            if rng.random() < 0.85:
                row = Row((rng.randrange(80), rng.randrange(3)), value)
                snapshots[release][f"r{number}"] = row
    return snapshots


@pytest.mark.parametrize("m", range(2, 17))
def test_every_m_is_published_without_violation(m: int) -> None:
    for seed in range(2):
        rng = Random(100 * m + seed)
        model = random_model(rng)
        spec = HistorySpec(model, m, M_DISTINCT, (False, True), random_snapshots(rng, model))
        known = np.ones(VALUES, dtype=np.bool_)
        UpdateModel(model.transition, known, model.labels).check(m, M_DISTINCT)
        assert CoreHistory.run(spec, seed).violations() == []


@pytest.mark.parametrize(("m", "size"), [(2, 10), (4, 5), (10, 2), (16, 1), (20, 1)])
def test_the_stricter_variant_up_to_one_value_of_each_class(m: int, size: int) -> None:
    rng = Random(m)
    model = spec_of("classes", classes_of(size))
    snapshots = random_snapshots(rng, model)
    spec = HistorySpec(model, m, M_DISTINCT_STAR, (False, True), snapshots)
    assert CoreHistory.run(spec).violations() == []
