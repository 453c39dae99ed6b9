"""What somebody who lines up the releases can work out about each patient."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from pg_mdistinct.core import update_graph
from pg_mdistinct.core.arrays import IntArray, Ragged
from pg_mdistinct.core.history import History
from pg_mdistinct.core.model import UpdateModel

Belief = dict[str, float]
"""Candidate -> probability; 0 for one that can be excluded."""

Candidates = Mapping[str, Sequence[str]]
"""Who is in a release -> the diseases that he may have, as far as that release tells."""


def beliefs(
    releases: Sequence[Candidates], updates: Mapping[str, Sequence[str]]
) -> dict[str, list[Belief]]:
    """What the adversary thinks of everybody, in each release that they are in."""
    labels = list(updates)
    people = list(dict.fromkeys(name for release in releases for name in release))
    versions = [
        (person, number, [labels.index(value) for value in release[name]])
        for person, name in enumerate(people)
        for number, release in enumerate(releases, start=1)
        if name in release
    ]
    found = update_graph.beliefs(_history(versions), _model(updates, labels))
    thoughts: dict[str, list[Belief]] = {name: [] for name in people}
    for row, (person, _, _) in enumerate(versions):
        nodes = slice(found.nodes.offsets[row], found.nodes.offsets[row + 1])
        values = [labels[code] for code in found.nodes.items[nodes]]
        thoughts[people[person]].append(
            dict(zip(values, found.posterior[nodes].tolist(), strict=True))
        )
    return thoughts


def excluded(belief: Belief) -> list[str]:
    """Candidates that cannot be the truth."""
    return [value for value, probability in belief.items() if probability == 0]


def disclosed(belief: Belief) -> str | None:
    """The only value that is left, if there is only one."""
    left = [value for value, probability in belief.items() if probability > 0]
    return left[0] if len(left) == 1 else None


def _history(versions: Sequence[tuple[int, int, list[int]]]) -> History:
    """Versions of (person, release, candidates); each stands for a group of its own."""
    count = len(versions)
    return History(
        release=_ints([release for _, release, _ in versions]),
        gid=np.arange(1, count + 1),
        rows=Ragged.of([candidates for _, _, candidates in versions]),
        counterfeits=np.zeros(count, dtype=np.int64),
        record=_ints([person for person, _, _ in versions]),
        group=np.arange(count),
        value=np.full(count, -1),
    )


def _model(updates: Mapping[str, Sequence[str]], labels: Sequence[str]) -> UpdateModel:
    transition = np.zeros((len(labels), len(labels)))
    for old, news in updates.items():
        for new in news:
            transition[labels.index(old), labels.index(new)] = 1 / len(news)
    return UpdateModel(transition, np.ones(len(labels), dtype=np.bool_), labels)


def _ints(values: Sequence[int]) -> IntArray:
    return np.array(values, dtype=np.int64)
