"""Small random histories of every kind, from a seed or through hypothesis.

One generator serves both: it draws from a `random.Random`, and hypothesis can supply one whose
every draw it records and shrinks.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, combinations
from random import Random
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

MAX_VALUES = 8
MAX_M = 5
MAX_RECORDS = 14
MAX_RELEASES = 6

Reach = list[set[int]]


@dataclass(frozen=True)
class ModelSpec:
    """An update model over values 0..V-1.

    `publishable` promises that every history that obeys the model can be published for ever:
    some permutation of the values is possible, so any candidate set has a legal successor.
    """

    kind: str
    labels: tuple[str, ...]
    rows: tuple[tuple[float, ...], ...]
    publishable: bool = True

    @property
    def transition(self) -> npt.NDArray[np.float64]:
        """The V×V matrix of probabilities."""
        return np.array(self.rows, dtype=np.float64)

    @property
    def by_label(self) -> dict[str, dict[str, float]]:
        """The same as old label -> new label -> probability > 0."""
        return {
            old: {new: p for new, p in zip(self.labels, row, strict=True) if p > 0}
            for old, row in zip(self.labels, self.rows, strict=True)
        }

    @cached_property
    def reach(self) -> tuple[frozenset[int], ...]:
        """What each value may become by the next release."""
        return tuple(frozenset(b for b, p in enumerate(row) if p > 0) for row in self.rows)

    @cached_property
    def largest_disjoint_m(self) -> int:
        """The largest m for which every value has a first group with disjoint reach sets."""
        values = range(len(self.rows))
        for m in range(len(self.rows), 1, -1):
            covered: set[int] = set()
            for group in combinations(values, m):
                if all(not self.reach[a] & self.reach[b] for a, b in combinations(group, 2)):
                    covered.update(group)
            if covered == set(values):
                return m
        return 1


class Row(NamedTuple):
    """One record of a snapshot: quasi-identifiers, and the code of its sensitive value."""

    qi: tuple[int, ...]
    value: int


@dataclass(frozen=True)
class HistorySpec:
    """What is to be published: a model, the parameters, and the source at each release."""

    model: ModelSpec
    m: int
    variant: str
    qi_is_set: tuple[bool, ...]
    snapshots: tuple[dict[str, Row], ...]


# --- models -----------------------------------------------------------------------------------


def random_model(rng: Random, *, hostile: bool = False) -> ModelSpec:
    """A model of a random kind; `hostile` ones may leave records without a legal release."""
    size = rng.randint(2, MAX_VALUES)
    kind, make = ("hostile", _hostile) if hostile else rng.choice(_KINDS)
    reach = make(rng, size)
    weigh = rng.choice((_equal, _skewed, _sticky))
    rows = tuple(_normalised(weigh(rng, value, reach[value]), size) for value in range(size))
    return ModelSpec(kind, tuple(f"v{i}" for i in range(size)), rows, publishable=not hostile)


def _classes(rng: Random, size: int) -> list[list[int]]:
    values = list(range(size))
    rng.shuffle(values)
    count = rng.randint(1, size)
    cuts = sorted(rng.sample(range(1, size), count - 1))
    return [values[a:b] for a, b in zip([0, *cuts], [*cuts, size], strict=True)]


def _partition(rng: Random, size: int) -> Reach:
    reach: Reach = [set() for _ in range(size)]
    for members in _classes(rng, size):
        for value in members:
            reach[value] = set(members)
    return reach


def _restless_partition(rng: Random, size: int) -> Reach:
    """Classes in which every value has to change, except where it is alone."""
    reach = _partition(rng, size)
    return [members - {value} or {value} for value, members in enumerate(reach)]


def _chains(rng: Random, size: int) -> Reach:
    reach: Reach = [set() for _ in range(size)]
    for members in _classes(rng, size):
        for i, value in enumerate(members):
            reach[value] = set(members[i:])
    return reach


def _trees(rng: Random, size: int) -> Reach:
    """Descendants, or ancestors, in a random forest."""
    parent = [rng.randrange(i) if i and rng.random() < 0.8 else None for i in range(size)]
    ancestors: Reach = []
    for value in range(size):
        above = parent[value]
        ancestors.append({value} if above is None else {value} | ancestors[above])
    if rng.random() < 0.5:
        return ancestors
    return [{low for low in range(size) if value in ancestors[low]} for value in range(size)]


def _permutation(rng: Random, size: int, *, stay: bool | None) -> list[int]:
    if stay:
        return list(range(size))
    order = list(range(size))
    rng.shuffle(order)
    if stay is None:
        return order
    # A single cycle in random order: nobody stays.
    following = dict(zip(order, order[1:] + order[:1], strict=True))
    return [following[value] for value in range(size)]


def _neither(rng: Random, size: int, stay: bool | None) -> Reach:
    density = rng.choice((0.0, 0.15, 0.3, 0.6))
    reach: Reach = []
    for value, image in enumerate(_permutation(rng, size, stay=stay)):
        extra = {other for other in range(size) if rng.random() < density}
        reach.append({image} | (extra - {value} if stay is False else extra))
    return reach


def _hostile(rng: Random, size: int) -> Reach:
    density = rng.choice((0.1, 0.25, 0.5))
    reach = [{b for b in range(size) if rng.random() < density} for _ in range(size)]
    return [targets or {rng.randrange(size)} for targets in reach]


_KINDS: tuple[tuple[str, Callable[[Random, int], Reach]], ...] = (
    ("partition", _partition),
    ("partition without staying", _restless_partition),
    ("chains", _chains),
    ("trees", _trees),
    ("any, staying possible", lambda rng, size: _neither(rng, size, stay=True)),
    ("any, nobody stays", lambda rng, size: _neither(rng, size, stay=False)),
    ("any, some stay", lambda rng, size: _neither(rng, size, stay=None)),
)

MODEL_KINDS = tuple(kind for kind, _ in _KINDS)


def _equal(_rng: Random, _value: int, targets: set[int]) -> dict[int, float]:
    return dict.fromkeys(targets, 1.0)


def _skewed(rng: Random, _value: int, targets: set[int]) -> dict[int, float]:
    return {target: 10.0 ** -rng.randint(0, 4) for target in sorted(targets)}


def _sticky(_rng: Random, value: int, targets: set[int]) -> dict[int, float]:
    return {target: 4.0 * len(targets) if target == value else 1.0 for target in targets}


def _normalised(weights: dict[int, float], size: int) -> tuple[float, ...]:
    total = sum(weights.values())
    return tuple(weights.get(value, 0.0) / total for value in range(size))


# --- histories --------------------------------------------------------------------------------


def random_history(seed: int | Random, *, hostile: bool = False) -> HistorySpec:
    """A model and up to six snapshots of up to fourteen records that obey it."""
    rng = seed if isinstance(seed, Random) else Random(seed)
    model = random_model(rng, hostile=hostile)
    m, variant = _parameters(rng, model)
    columns = rng.randint(1, 3)
    qi_is_set = tuple(rng.random() < 0.3 for _ in range(columns))
    widths = tuple(rng.choice((1, 2, 5, 20, 100)) for _ in range(columns))
    releases = rng.randint(1, MAX_RELEASES)
    snapshots: tuple[dict[str, Row], ...] = tuple({} for _ in range(releases))
    frequencies = _frequencies(rng, len(model.labels))
    shared_presence = rng.choice((1.0, 0.8, 0.5))
    for number in range(rng.randint(0, MAX_RECORDS)):
        _live(rng, f"r{number}", model, widths, frequencies, shared_presence, snapshots)
    return HistorySpec(model, m, variant, qi_is_set, snapshots)


def _parameters(rng: Random, model: ModelSpec) -> tuple[int, str]:
    largest = model.largest_disjoint_m
    if largest >= 2 and rng.random() < 0.5:
        return rng.randint(2, min(MAX_M, largest)), "m-distinct*"
    return rng.randint(2, min(MAX_M, len(model.labels))), "m-distinct"


def _frequencies(rng: Random, size: int) -> list[float]:
    """How often each value is somebody's first: even, skewed, or all the same value."""
    skew = rng.choice((0.0, 1.0, 3.0, 50.0))
    weights = [1.0 / (rank + 1) ** skew for rank in range(size)]
    rng.shuffle(weights)
    return weights


def _weighted(rng: Random, weights: Sequence[float]) -> int:
    """Draw a place with these odds, as `Random.choices` does; hypothesis' own ignores weights."""
    reached = list(accumulate(weights))
    return bisect(reached, rng.random() * reached[-1], 0, len(reached) - 1)


def _live(
    rng: Random,
    record: str,
    model: ModelSpec,
    widths: tuple[int, ...],
    frequencies: list[float],
    presence: float,
    snapshots: tuple[dict[str, Row], ...],
) -> None:
    """Writes one record's life: it may come late, be away for some releases, and leave."""
    born = rng.randrange(len(snapshots)) if rng.random() < 0.4 else 0
    dies = rng.randint(born + 1, len(snapshots)) if rng.random() < 0.3 else len(snapshots)
    value = _weighted(rng, frequencies)
    qi = tuple(rng.randrange(width) for width in widths)
    for release in range(born, dies):
        # Time passes for those who are away as well: k releases are k steps.
        if release > born:
            value = _weighted(rng, model.rows[value])
            if rng.random() < 0.3:
                qi = tuple(rng.randrange(width) for width in widths)
        if release == born or rng.random() < presence:
            snapshots[release][record] = Row(qi, value)


# --- hypothesis -------------------------------------------------------------------------------


@st.composite
def models(draw: st.DrawFn, *, hostile: bool = False) -> ModelSpec:
    """Update models of every kind."""
    return random_model(draw(st.randoms(use_true_random=False)), hostile=hostile)


@st.composite
def histories(draw: st.DrawFn, *, hostile: bool = False) -> HistorySpec:
    """Whole histories, with model and parameters."""
    return random_history(draw(st.randoms(use_true_random=False)), hostile=hostile)
