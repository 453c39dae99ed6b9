"""The paper's workload: census-like microdata that grow, shrink and change from release to release.

All attributes are whole numbers, as in the paper's range queries. Occupations are the sensitive
values; similar ones form classes of ``d``, and each may become any other of its class.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
SnapshotArray = npt.NDArray[np.void]

OCCUPATIONS = 50
EDUCATIONS = 17
OLDEST = 100
MARITAL = ("never-married", "married", "spouse-absent", "separated", "divorced", "widowed")
QI_COLUMNS = ("age", "gender", "marital", "education")

SNAPSHOT = np.dtype(
    [
        ("id", np.int64),
        ("age", np.int64),
        ("gender", np.int64),
        ("marital", np.int64),
        ("education", np.int64),
        ("occupation", np.int64),
    ]
)
"""One record of a snapshot; ``marital`` is an index of `MARITAL`, education 0 (none) to 16."""

# What a marital status is by the next release; nobody is never-married again.
_MARITAL_STEP = np.array(
    [
        [0.940, 0.056, 0.004, 0.000, 0.000, 0.000],
        [0.000, 0.955, 0.008, 0.010, 0.017, 0.010],
        [0.000, 0.300, 0.550, 0.060, 0.080, 0.010],
        [0.000, 0.100, 0.000, 0.600, 0.290, 0.010],
        [0.000, 0.080, 0.002, 0.000, 0.918, 0.000],
        [0.000, 0.030, 0.000, 0.000, 0.000, 0.970],
    ]
)


class Population(Protocol):
    """Where new people come from."""

    def people(self, count: int) -> SnapshotArray:
        """`count` people who were never there before."""


@dataclass(frozen=True)
class Workload:
    """The experiments' set-up; the same seed gives the same releases every time.

    If ``nested``, an occupation becomes only later ones of its class, so that what it may become
    is part of what those before it may become.
    """

    d: int = 10
    deletions: int = 2_000
    seed: int = 2008
    initial: int = 20_000
    insertions: int = 5_000
    updates: int = 5_000
    nested: bool = False

    def __post_init__(self) -> None:
        if not 1 <= self.d <= OCCUPATIONS:
            raise ValueError(f"d must be between 1 and {OCCUPATIONS}, not {self.d}")

    def model(self) -> tuple[tuple[str, ...], FloatArray]:
        """Labels and transition matrix: within a class, all updates are equally likely."""
        classes = np.arange(OCCUPATIONS) // self.d
        same = (classes[:, None] == classes[None, :]).astype(np.float64)
        if self.nested:
            same = np.triu(same)
        return tuple(map(str, range(OCCUPATIONS))), same / same.sum(axis=1, keepdims=True)

    def releases(self, n: int) -> Iterator[SnapshotArray]:
        """The snapshots of n publications, arrays of type `SNAPSHOT`."""
        rng = np.random.default_rng(self.seed)
        population = self.population(rng)
        snapshot = population.people(self.initial)
        for release in range(n):
            if release:
                snapshot = self._next(snapshot, population, rng)
            yield snapshot.copy()

    def population(self, rng: np.random.Generator) -> Population:
        """Whom releases get their new people from."""
        return _Population(rng)

    def _next(
        self, snapshot: SnapshotArray, population: Population, rng: np.random.Generator
    ) -> SnapshotArray:
        leaving = rng.choice(len(snapshot), min(self.deletions, len(snapshot)), replace=False)
        staying = np.delete(snapshot, leaving)
        _grow_older(staying, rng)
        self._change_occupations(staying, rng)
        return np.concatenate([staying, population.people(self.insertions)])

    def _change_occupations(self, people: SnapshotArray, rng: np.random.Generator) -> None:
        """Moves `updates` records to another occupation of their class, each equally likely."""
        chosen = rng.choice(len(people), min(self.updates, len(people)), replace=False)
        old = people["occupation"][chosen]
        first = old // self.d * self.d
        size = np.minimum(self.d, OCCUPATIONS - first)
        if self.nested:
            first, size = old, size - (old - first)
        shift = 1 + np.floor(rng.random(len(chosen)) * (size - 1)).astype(np.int64)
        people["occupation"][chosen] = first + (old - first + np.minimum(shift, size - 1)) % size


class _Population:
    """Draws new people, with the skew and the correlations of real microdata."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self._next_id = 1
        # The largest occupation has about 8 % of the people: eligible for every m up to 12.
        shares = 1.0 / np.arange(5, 5 + OCCUPATIONS)
        self._shares = rng.permutation(shares / shares.sum())
        # As in time-use surveys, the occupation explains a third of the schooling, a fifth of the
        # gender and little of the age. Classes of occupations differ in their schooling.
        self._schooling = np.linspace(5.0, 13.0, OCCUPATIONS) + rng.normal(0, 0.8, OCCUPATIONS)
        self._women = rng.beta(2.0, 2.0, OCCUPATIONS)
        self._seniority = rng.normal(0, 3.0, OCCUPATIONS)

    def people(self, count: int) -> SnapshotArray:
        """`count` people who were never there before."""
        rng = self._rng
        people = np.empty(count, dtype=SNAPSHOT)
        people["id"] = self._next_id + np.arange(count)
        self._next_id += count
        occupation = rng.choice(OCCUPATIONS, size=count, p=self._shares)
        people["occupation"] = occupation
        age = 16 + 75 * rng.beta(1.7, 3.0, count) + self._seniority[occupation]
        people["age"] = np.floor(np.clip(age, 16, OLDEST))
        people["gender"] = rng.random(count) < self._women[occupation]
        people["education"] = self._education(occupation, people["age"])
        people["marital"] = self._marital(people["age"])
        return people

    def _education(self, occupation: IntArray, age: IntArray) -> IntArray:
        level = np.rint(self._schooling[occupation] + self._rng.normal(0, 2.2, len(age)))
        # Many leave with the ordinary school certificate, whatever they do later.
        level = np.where(self._rng.random(len(age)) < 0.25, 8, level)
        return np.clip(level, 0, np.minimum(EDUCATIONS - 1, age - 9)).astype(np.int64)

    def _marital(self, age: IntArray) -> IntArray:
        single = np.maximum(0.08, 1 / (1 + np.exp((age - 27) / 5)))
        widowed = (1 - single) * 0.6 / (1 + np.exp((78 - age) / 6))
        rest = 1 - single - widowed
        shares = np.stack(
            [single, rest * 0.74, rest * 0.04, rest * 0.04, rest * 0.18, widowed], axis=1
        )
        return _draw(shares, self._rng)


def _grow_older(people: SnapshotArray, rng: np.random.Generator) -> None:
    """What a release's time does to everybody's quasi-identifiers; education never falls."""
    people["age"] = np.minimum(people["age"] + 1, OLDEST)
    people["marital"] = _draw(_MARITAL_STEP[people["marital"]], rng)
    studies = rng.random(len(people)) < np.where(people["age"] < 30, 0.08, 0.005)
    steps = studies * rng.geometric(0.6, len(people))
    people["education"] = np.minimum(people["education"] + steps, EDUCATIONS - 1)


def _draw(shares: FloatArray, rng: np.random.Generator) -> IntArray:
    """One column for each row, with the row's probabilities."""
    steps = np.cumsum(shares, axis=1)
    beyond = rng.random((len(shares), 1)) * steps[:, -1:] >= steps
    drawn: IntArray = beyond.sum(axis=1, dtype=np.int64)
    return drawn
