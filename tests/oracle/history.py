"""What an adversary and a checker look at: releases made of groups, and the update model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NamedTuple

RecordId = str
Probability = Fraction | float | int
UpdateModel = Mapping[str, Mapping[str, Probability]]
"""old value -> new value -> probability by the next release; no row: the value stays."""


@dataclass(frozen=True)
class Group:
    """Rows that share one generalized QI; `values` are all of them, counterfeits included."""

    values: tuple[str, ...]
    members: Mapping[RecordId, str | None] = field(default_factory=dict)
    counterfeits: int = 0


Release = Mapping[int, Group]
History = Sequence[Release]
"""The i-th element (from 0) is release i + 1."""


class Version(NamedTuple):
    """A record as it stood in one release: where it was, and what it could have been."""

    release: int
    gid: int
    group: Group
    true_value: str | None


def versions_by_record(history: History) -> dict[RecordId, list[Version]]:
    """Every record's versions in the order of the releases."""
    versions: dict[RecordId, list[Version]] = {}
    for number, release in enumerate(history, start=1):
        for gid, group in release.items():
            for record, value in group.members.items():
                versions.setdefault(record, []).append(Version(number, gid, group, value))
    return versions


def one_step(model: UpdateModel, value: str) -> dict[str, Fraction]:
    """The values that `value` may become by the next release, with their probabilities."""
    row = {new: Fraction(p) for new, p in model.get(value, {value: 1}).items()}
    return {new: p for new, p in row.items() if p > 0}


def steps(model: UpdateModel, value: str, count: int) -> dict[str, Fraction]:
    """The same after `count` releases: every chain of updates, added up."""
    distribution = {value: Fraction(1)}
    for _ in range(count):
        following: dict[str, Fraction] = {}
        for old, weight in distribution.items():
            for new, p in one_step(model, old).items():
                following[new] = following.get(new, Fraction(0)) + weight * p
        distribution = following
    return distribution


class Steps:
    """`steps` of one model; remembers what it has worked out."""

    def __init__(self, model: UpdateModel) -> None:
        self._model = model
        self._known: dict[tuple[str, int], dict[str, Fraction]] = {}

    def __call__(self, value: str, count: int) -> dict[str, Fraction]:
        """The values that `value` may be `count` releases later, with their probabilities."""
        found = self._known.get((value, count))
        if found is None:
            found = self._known[value, count] = steps(self._model, value, count)
        return found


class Reach:
    """Values that a value may be `count` releases later; remembers what it has worked out."""

    def __init__(self, model: UpdateModel) -> None:
        self._model = model
        self._known: dict[tuple[str, int], frozenset[str]] = {}

    def __call__(self, value: str, count: int = 1) -> frozenset[str]:
        """reach(value) for count = 1, and its `count`-step version for a record that was away."""
        found = self._known.get((value, count))
        if found is None:
            found = frozenset([value])
            for _ in range(count):
                found = frozenset(new for old in found for new in one_step(self._model, old))
            self._known[value, count] = found
        return found
