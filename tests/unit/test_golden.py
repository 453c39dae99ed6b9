"""The paper's own numbers, computed by the independent adversary."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import pytest

from tests.oracle import hospital
from tests.oracle.adversary import (
    disclosures,
    republication_risk,
    risks,
    update_graph,
)
from tests.oracle.checker import violations
from tests.oracle.history import Group, UpdateModel

TWO_DIVERSE = [hospital.FIRST, hospital.SECOND_2_DIVERSE]
COUNTERFEITED = [hospital.FIRST, hospital.SECOND_COUNTERFEITED]


class TestHospital:
    def test_julias_risk_after_the_two_diverse_tables(self) -> None:
        assert risks(TWO_DIVERSE, hospital.MODEL, 1)["Julia", 1] == Fraction(1, 2)
        after_both = risks(TWO_DIVERSE, hospital.MODEL)
        assert after_both["Julia", 1] == 1
        assert after_both["Julia", 2] == Fraction(1, 2)

    def test_two_diverse_tables_disclose_ben_ken_lily_and_half_of_julia(self) -> None:
        known = disclosures(TWO_DIVERSE, hospital.MODEL)
        assert known == {
            ("Ben", 1): "Flu",
            ("Ben", 2): "Pneumonia",
            ("Ken", 1): "Dyspepsia",
            ("Ken", 2): "Dyspepsia",
            ("Lily", 1): "Glaucoma",
            ("Lily", 2): "Glaucoma",
            ("Julia", 1): "Pneumonia",
            ("Tom", 1): "Pneumonia",
        }
        assert all(
            hospital.SNAPSHOTS[release - 1][name] == value
            for (name, release), value in known.items()
        )

    def test_two_diverse_tables_are_not_2_distinct(self) -> None:
        assert violations(TWO_DIVERSE, hospital.MODEL, 2, "m-distinct") != []

    @pytest.mark.parametrize("variant", ["m-distinct", "m-distinct*"])
    def test_with_counterfeits_nobodys_candidates_shrink(self, variant: str) -> None:
        assert (
            violations(COUNTERFEITED, hospital.MODEL, 2, variant, snapshots=hospital.SNAPSHOTS)
            == []
        )
        assert disclosures(COUNTERFEITED, hospital.MODEL) == {}
        for name in hospital.SNAPSHOTS[0]:
            assert update_graph(COUNTERFEITED, hospital.MODEL, name).pruned() == []

    def test_counterfeit_statistics(self) -> None:
        counts = {gid: group.counterfeits for gid, group in COUNTERFEITED[1].items()}
        assert counts == {1: 0, 2: 0, 3: 1, 4: 1}


# The sample graph of the paper, in its own names: three, two and three candidates, all nodes of a
# version equally likely, edges 1 or 1/2.
FIVE_PATHS_MODEL: UpdateModel = {
    "v11": {"v23": 1},
    "v12": {"v23": Fraction(1, 2), "v24": Fraction(1, 2)},
    "v13": {"v23": 1},
    "v23": {"v32": 1},
    "v24": {"v33": Fraction(1, 2), "v34": Fraction(1, 2)},
}
FIVE_PATHS = [
    {1: Group(("v11", "v12", "v13"), {"t": "v12"}, 2)},
    {1: Group(("v23", "v24"), {"t": "v24"}, 1)},
    {1: Group(("v32", "v33", "v34"), {"t": "v33"}, 2)},
]


class TestFivePaths:
    def test_path_weights(self) -> None:
        paths = update_graph(FIVE_PATHS, FIVE_PATHS_MODEL, "t").paths()
        assert [weight for _, weight in paths] == [
            Fraction(1, 18),
            Fraction(1, 36),
            Fraction(1, 72),
            Fraction(1, 72),
            Fraction(1, 18),
        ]
        assert sum(weight for _, weight in paths) == Fraction(1, 6)
        assert [path for path, _ in paths if path[0] == "v12"] == [
            ("v12", "v23", "v32"),
            ("v12", "v24", "v33"),
            ("v12", "v24", "v34"),
        ]

    def test_risks(self) -> None:
        assert update_graph(FIVE_PATHS, FIVE_PATHS_MODEL, "t").risks() == [
            Fraction(1, 3),
            Fraction(1, 6),
            Fraction(1, 12),
        ]


@pytest.mark.parametrize("m", [2, 3, 5])
def test_m_invariance_is_the_case_of_values_that_never_change(m: int) -> None:
    values = tuple(f"value {i}" for i in range(m))
    release = {1: Group(values, {"t": values[0]}, m - 1)}
    history = [release] * 4
    assert violations(history, {}, m, "m-distinct*") == []
    assert len(update_graph(history, {}, "t").paths()) == m
    assert republication_risk(history, {}) == Fraction(1, m)


def test_if_everything_can_become_everything_old_risks_never_change() -> None:
    values = ("a", "b", "c", "d")
    model = {value: dict.fromkeys(values, Fraction(1, 4)) for value in values}
    sets = [("a", "b"), ("b", "c", "d"), ("a", "c"), ("a", "b", "c", "d")]
    for second, third in product(sets, repeat=2):
        history = [
            {1: Group(chosen, {"t": chosen[0]}, len(chosen) - 1)}
            for chosen in (sets[0], second, third)
        ]
        for n in range(1, 4):
            for (_, release), risk in risks(history, model, n).items():
                assert risk == Fraction(1, len(history[release - 1][1].values))
