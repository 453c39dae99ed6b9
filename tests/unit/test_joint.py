"""The joint adversary against a plain enumeration of all worlds, and what it adds."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise, permutations, product

import numpy as np
import pytest

from pg_mdistinct.core.errors import MdistinctError
from pg_mdistinct.core.joint import joint_risks
from pg_mdistinct.core.update_graph import risks
from tests.core_history import CoreHistory
from tests.oracle.history import Group, Release, UpdateModel, one_step, steps, versions_by_record
from tests.strategies import random_history
from tests.unit.test_update_graph import as_arrays, as_model

World = dict[tuple[str, int], str]


def deals_of(release: int, group: Group) -> list[World]:
    members = sorted(group.members)
    dealt = permutations(group.values, len(members))
    return [{(name, release): value for name, value in zip(members, d, strict=True)} for d in dealt]


def worlds_of(releases: list[Release]) -> Iterator[World]:
    deals = [deals_of(n, g) for n, release in enumerate(releases, 1) for g in release.values()]
    for choice in product(*deals):
        yield {key: value for deal in choice for key, value in deal.items()}


def enumerated(releases: list[Release], model: UpdateModel) -> dict[tuple[str, int], float]:
    """Joint risk of every version, from every world there is."""
    versions = versions_by_record(releases)
    total = 0.0
    hit: dict[tuple[str, int], float] = {}
    for world in worlds_of(releases):
        weight = 1.0
        for name, line in versions.items():
            for old, new in pairwise(line):
                becomes = steps(model, world[name, old.release], new.release - old.release)
                weight *= float(becomes.get(world[name, new.release], 0))
        total += weight
        for name, line in versions.items():
            for version in line:
                if world[name, version.release] == version.true_value:
                    key = (name, version.release)
                    hit[key] = hit.get(key, 0.0) + weight
    return {key: weight / total for key, weight in hit.items()}


def world_count(releases: list[Release]) -> int:
    count = 1
    for n, release in enumerate(releases, 1):
        for group in release.values():
            count *= len(deals_of(n, group))
    return count


@pytest.mark.parametrize("batch", range(4))
def test_equals_enumeration_of_all_worlds(batch: int) -> None:
    compared = 0
    for seed in range(batch, 400, 4):
        spec = random_history(seed)
        releases: list[Release] = list(CoreHistory.run(spec, seed).releases)
        if world_count(releases) > 3000 or not versions_by_record(releases):
            continue
        codes = {label: i for i, label in enumerate(spec.model.labels)}
        exact_model = {v: one_step(spec.model.by_label, v) for v in spec.model.labels}
        history, names = as_arrays(releases, codes)
        found = joint_risks(history, as_model(exact_model))
        exact = enumerated(releases, exact_model)
        for record, release, risk in zip(
            history.record, history.version_release, found.risk, strict=True
        ):
            assert risk == pytest.approx(exact.get((names[record], int(release)), 0.0), abs=1e-9)
        compared += 1
    assert compared > 10


def test_it_learns_what_no_single_update_graph_shows() -> None:
    """Two members, two values, and the other member's are settled: hers follow."""
    model = {"a": {"a": 1}, "b": {"b": 1}, "c": {"c": 1}}
    releases: list[Release] = [
        {1: Group(("a", "b"), {"Ann": "a", "Bob": "b"})},
        {1: Group(("a", "b"), {"Ann": "a"}, 1), 2: Group(("b", "c"), {"Bob": "b"}, 1)},
    ]
    exact_model = {v: one_step(model, v) for v in "abc"}
    history, names = as_arrays(releases, {"a": 0, "b": 1, "c": 2})
    alone = risks(history, as_model(exact_model))
    joint = joint_risks(history, as_model(exact_model))
    ann = history.record == names.index("Ann")
    np.testing.assert_allclose(alone.risk[ann], 0.5)
    np.testing.assert_allclose(joint.risk[ann], 1.0)
    assert (joint.candidates[ann] == 1).all()


def test_a_history_with_too_many_worlds_is_refused() -> None:
    group = Group(tuple("abcdefgh"), {name: name for name in "abcdefgh"})
    model = {v: {v: 1} for v in "abcdefgh"}
    history, _ = as_arrays([{1: group}], {v: i for i, v in enumerate("abcdefgh")})
    exact_model = {v: one_step(model, v) for v in model}
    with pytest.raises(MdistinctError, match="too many worlds"):
        joint_risks(history, as_model(exact_model), limit=1000)
