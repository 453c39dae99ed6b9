"""The paper's hospital: two 2-diverse releases, and the second one with counterfeits."""

from __future__ import annotations

from fractions import Fraction

from tests.oracle.history import Group, Release, UpdateModel


def _one_of(*values: str) -> dict[str, Fraction]:
    return {value: Fraction(1, len(values)) for value in values}


_RESPIRATORY = ("Flu", "Pneumonia", "Lung Cancer")

MODEL: UpdateModel = {
    "Dyspepsia": _one_of("Dyspepsia", "Gastritis"),
    "Gastritis": _one_of("Dyspepsia", "Gastritis"),
    "Flu": _one_of(*_RESPIRATORY),
    "Pneumonia": _one_of(*_RESPIRATORY),
    "Lung Cancer": _one_of(*_RESPIRATORY),
    "Glaucoma": _one_of("Glaucoma", "Cataract"),
    "Cataract": _one_of("Glaucoma", "Cataract"),
}
"""Diseases of one system change among themselves, as the paper's example of CUS says."""

SNAPSHOTS = (
    {
        "Ken": "Dyspepsia",
        "Julia": "Pneumonia",
        "Tom": "Pneumonia",
        "Harry": "Gastritis",
        "Lily": "Glaucoma",
        "Ben": "Flu",
    },
    {
        "Ken": "Dyspepsia",
        "Julia": "Lung Cancer",
        "Tom": "Pneumonia",
        "Harry": "Dyspepsia",
        "Lily": "Glaucoma",
        "Ben": "Pneumonia",
    },
)


def _group(number: int, *names: str, counterfeit: str | None = None) -> Group:
    members = {name: SNAPSHOTS[number - 1][name] for name in names}
    fake = (counterfeit,) if counterfeit else ()
    return Group((*members.values(), *fake), dict(members), len(fake))


FIRST: Release = {
    1: _group(1, "Ken", "Julia"),
    2: _group(1, "Tom", "Harry"),
    3: _group(1, "Lily", "Ben"),
}

SECOND_2_DIVERSE: Release = {
    1: _group(2, "Ken", "Lily"),
    2: _group(2, "Julia", "Tom"),
    3: _group(2, "Harry", "Ben"),
}

SECOND_COUNTERFEITED: Release = {
    1: _group(2, "Ken", "Tom"),
    2: _group(2, "Julia", "Harry"),
    3: _group(2, "Lily", counterfeit="Pneumonia"),
    4: _group(2, "Ben", counterfeit="Cataract"),
}
