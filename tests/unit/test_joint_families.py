"""The experiment about signature families: it groups by their rules, and counts worlds exactly."""

from __future__ import annotations

import numpy as np
import pytest
from click.testing import CliRunner

from pg_mdistinct.core.attack import attack
from pg_mdistinct.core.errors import MdistinctError
from pg_mdistinct.core.joint import joint_risks
from pg_mdistinct.core.model import M_DISTINCT
from pg_mdistinct.core.verify import find_violations
from pg_mdistinct.experiments import joint_families
from pg_mdistinct.experiments.joint_families import (
    CORE,
    FAMILIES,
    SMALL,
    Scale,
    count_worlds,
    findings,
    random_history,
)

TINY = Scale((3, 5), (2, 3))
MOST_STEPS = 20_000


@pytest.mark.parametrize("m", [2, 4])
@pytest.mark.parametrize("name", [*FAMILIES, CORE])
def test_histories_obey_the_principle(m: int, name: str) -> None:
    """S keeps to the letter of the definition only: its groups need no one-to-one matching."""
    model = joint_families.model()
    allowed = {"one-to-one matching"} if name == "S" else set()
    fakes = 0
    for seed in range(20):
        history = random_history(seed, SMALL, m, name)
        broken = find_violations(history, model, [m] * len(history.rows), M_DISTINCT)
        assert {violation.rule for violation in broken} <= allowed
        assert attack(history, model).pruned == 0
        fakes += int(history.counterfeits.sum())
    assert fakes > 0


def test_families_publish_the_same_microdata() -> None:
    histories = [random_history(7, SMALL, 4, name) for name in (*FAMILIES, CORE)]
    for other in histories[1:]:
        np.testing.assert_array_equal(histories[0].record, other.record)
        np.testing.assert_array_equal(histories[0].value, other.value)


@pytest.mark.parametrize("m", [2, 4])
@pytest.mark.parametrize("name", [*FAMILIES, CORE])
def test_counting_by_class_equals_going_through_all_worlds(m: int, name: str) -> None:
    compared = 0
    for seed in range(20):
        history = random_history(seed, TINY, m, name)
        try:
            exact = joint_risks(history, joint_families.model(), MOST_STEPS)
        except MdistinctError:
            continue
        found = count_worlds(history)
        np.testing.assert_allclose(found.risk, exact.risk, rtol=0, atol=1e-12)
        np.testing.assert_array_equal(found.candidates, exact.candidates)
        compared += 1
    assert compared > 3


def test_equal_multiplicities_give_the_joint_adversary_nothing() -> None:
    exact, coverage, equal, _ = findings(SMALL, 4, 40, first_seed=1)
    np.testing.assert_allclose(equal.joint, 1 / 4)
    assert equal.ruled_out == 0
    assert exact.raised > 0
    assert coverage.ruled_out > exact.ruled_out
    assert coverage.disclosed > 0
    assert (exact.pruned, coverage.pruned, equal.pruned) == (0, 0, 0)


@pytest.mark.parametrize("m", [2, 4])
def test_what_the_core_groups_by_equal_multiplicities_is_safe_from_it(m: int) -> None:
    for seed in range(20):
        history = random_history(seed, SMALL, m, CORE)
        in_first = (history.rows.items < joint_families.CLASS_SIZE).astype(np.int64)
        first = np.add.reduceat(in_first, history.rows.offsets[:-1])
        size = history.rows.lengths
        balanced = (size == m) & ((first == 0) | (first == m) | (2 * first == m))
        found = count_worlds(history).risk[balanced[history.group]]
        np.testing.assert_allclose(found, 1 / m)


def test_command() -> None:
    result = CliRunner().invoke(joint_families.main, ["--histories", "2"])
    assert result.exit_code == 0, result.output
    assert sum(line.startswith(("| 2 |", "| 4 |")) for line in result.output.splitlines()) == 16
