"""Estimates an update model from how often each value was seen to follow each."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pg_mdistinct.core.errors import MdistinctError

OBSERVED, SYMMETRIC, ALL = "observed", "symmetric", "all"
POSSIBLE = (OBSERVED, SYMMETRIC, ALL)
SMOOTHING = 0.5

_NAMED_AT_MOST = 10

Pair = tuple[str, str]


@dataclass(frozen=True)
class Counts:
    """How often each value was followed by each, and all values that the model is to have."""

    seen: Mapping[Pair, int]
    values: Sequence[str]

    def observations(self, value: str) -> int:
        """Return how often something is known to have followed a value."""
        return sum(count for (old, _), count in self.seen.items() if old == value)

    def may_become(self, value: str, possible: str) -> list[str]:
        """Return what a value may become: itself in any case."""
        if possible == ALL:
            return list(self.values)
        return [
            other
            for other in self.values
            if other == value
            or (value, other) in self.seen
            or (possible == SYMMETRIC and (other, value) in self.seen)
        ]


def learned(
    counts: Counts, possible: str = OBSERVED, smoothing: float = SMOOTHING
) -> dict[str, dict[str, float]]:
    """Return what every value may become, with probabilities."""
    return {
        old: _smoothed(old, counts, counts.may_become(old, possible), smoothing)
        for old in counts.values
    }


def _smoothed(
    old: str, counts: Counts, targets: Sequence[str], smoothing: float
) -> dict[str, float]:
    """Return the probabilities of what a value may become, by counts with something added."""
    weights = {new: counts.seen.get((old, new), 0) + smoothing for new in targets}
    never = [new for new, weight in weights.items() if not weight]
    if len(weights) > 1 and never:
        raise MdistinctError(
            f'without smoothing "{old}" could not become '
            + ", ".join(f'"{new}"' for new in never[:_NAMED_AT_MOST])
            + ", which was never seen but is to be possible",
            hint="Give a smoothing above 0. A value may always stay what it is.",
            sqlstate="22023",
        )
    total = math.fsum(weights.values())
    # A value of which nothing is known, and which may become nothing else, stays what it is.
    return {new: weight / total for new, weight in weights.items()} if total else {old: 1.0}
