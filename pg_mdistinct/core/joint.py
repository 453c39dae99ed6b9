"""The joint adversary: all members of all groups at once, on small histories.

An update graph looks at one record. But a group's values are dealt to its members one to one: if a
value is Ben's it is not Ken's. A world deals the values of every group of every release to its
members (what is left over belongs to counterfeits) and weighs as much as the product of everybody's
updates. Records that never share a group are independent, so worlds are counted for each connected
part of the history on its own, release by release, as in a hidden Markov model whose states are
the values of all records of the part.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations, product

import numpy as np

from pg_mdistinct.core.arrays import FloatArray, IntArray
from pg_mdistinct.core.errors import MdistinctError
from pg_mdistinct.core.history import History
from pg_mdistinct.core.model import UpdateModel

STEP_LIMIT = 5_000_000

State = tuple[int, ...]
Deal = dict[int, int]


@dataclass(frozen=True)
class JointRisks:
    """Per version: the risk under the joint attack, and the number of values left."""

    risk: FloatArray
    candidates: IntArray


def joint_risks(history: History, model: UpdateModel, limit: int = STEP_LIMIT) -> JointRisks:
    """Count all worlds; refuse a history that needs more than ``limit`` steps for it."""
    risk = np.zeros(len(history.record))
    left = np.zeros(len(history.record), dtype=np.int64)
    budget = limit
    for records in _connected_records(history):
        part = _Part(history, model, records, budget)
        for version, beliefs in part.beliefs().items():
            risk[version] = beliefs.get(int(history.value[version]), 0.0)
            left[version] = sum(1 for weight in beliefs.values() if weight > 0)
        budget = part.budget
    return JointRisks(risk, left)


def _connected_records(history: History) -> list[list[int]]:
    """Return the records in parts such that no group has members of two parts."""
    parent: dict[int, int] = {int(record): int(record) for record in history.record}

    def root(record: int) -> int:
        while parent[record] != record:
            record = parent[record]
        return record

    first_of_group: dict[int, int] = {}
    for record, group in zip(history.record, history.group, strict=True):
        other = first_of_group.setdefault(int(group), int(record))
        parent[root(int(record))] = root(other)
    parts: dict[int, list[int]] = defaultdict(list)
    for record in sorted(parent):
        parts[root(record)].append(record)
    return list(parts.values())


class _Part:
    """Worlds of records that share groups: one list of states for every release.

    A state gives every record of the part that was published so far its latest value.
    """

    def __init__(
        self, history: History, model: UpdateModel, records: list[int], budget: int
    ) -> None:
        self.history = history
        self.model = model
        self.budget = budget
        self.place = {record: i for i, record in enumerate(records)}
        self.versions: dict[int, list[int]] = defaultdict(list)
        for version in np.flatnonzero(np.isin(history.record, records)):
            self.versions[int(history.version_release[version])].append(int(version))

    def beliefs(self) -> dict[int, dict[int, float]]:
        """Return, for every version, the probability of each value over all worlds."""
        releases = sorted(self.versions)
        forward: list[dict[State, float]] = []
        edges: list[list[tuple[State, State, float]]] = []
        states: dict[State, float] = {(-1,) * len(self.place): 1.0}
        for release in releases:
            step = list(self._worlds(states, release))
            states = defaultdict(float)
            for before, after, weight in step:
                states[after] += weight * (forward[-1][before] if forward else 1.0)
            states = _scaled(states)
            forward.append(states)
            edges.append(step)
        onward: dict[State, float] = dict.fromkeys(states, 1.0)
        found: dict[int, dict[int, float]] = {}
        for i in reversed(range(len(releases))):
            self._collect(releases[i], forward[i], onward, found)
            previous: dict[State, float] = defaultdict(float)
            for before, after, weight in edges[i]:
                previous[before] += weight * onward.get(after, 0.0)
            onward = _scaled(previous)
        return found

    def _worlds(
        self, states: dict[State, float], release: int
    ) -> Iterator[tuple[State, State, float]]:
        """Go from every state through every way to deal the groups of one release."""
        versions = self.versions[release]
        by_group: dict[int, list[int]] = defaultdict(list)
        for version in versions:
            by_group[int(self.history.group[version])].append(version)
        deals = [list(self._deals(group, members)) for group, members in by_group.items()]
        for state in states:
            for choice in product(*(self._possible(state, each) for each in deals)):
                self._spend(len(choice))
                after, weight = list(state), 1.0
                for deal, share in choice:
                    weight *= share
                    for version, value in deal.items():
                        after[self.place[int(self.history.record[version])]] = value
                yield state, tuple(after), weight

    def _possible(self, state: State, deals: list[Deal]) -> list[tuple[Deal, float]]:
        """Keep the deals of one group that a state can lead to, with their probability."""
        possible = []
        for deal in deals:
            self._spend(1)
            weight = 1.0
            for version, value in deal.items():
                before = state[self.place[int(self.history.record[version])]]
                weight *= self._update(version, before, value)
            if weight > 0:
                possible.append((deal, weight))
        return possible

    def _deals(self, group: int, members: list[int]) -> Iterator[Deal]:
        values = self.history.rows.row(group).tolist()
        for dealt in permutations(values, len(members)):
            self._spend(1)
            yield dict(zip(members, dealt, strict=True))

    def _update(self, version: int, before: int, after: int) -> float:
        if before < 0:
            return 1.0
        gap = int(self.history.version_release[version] - self.history.version_release[version - 1])
        return float(self.model.power(gap)[before, after])

    def _collect(
        self,
        release: int,
        forward: dict[State, float],
        onward: dict[State, float],
        found: dict[int, dict[int, float]],
    ) -> None:
        weights = {state: weight * onward.get(state, 0.0) for state, weight in forward.items()}
        total = sum(weights.values())
        for version in self.versions[release]:
            where = self.place[int(self.history.record[version])]
            beliefs: dict[int, float] = defaultdict(float)
            for state, weight in weights.items():
                beliefs[state[where]] += weight / total if total else 0.0
            found[version] = beliefs

    def _spend(self, steps: int) -> None:
        self.budget -= steps
        if self.budget < 0:
            raise MdistinctError(
                "this history has too many worlds for the joint attack: "
                f"{len(self.place)} records are connected through their groups",
                hint="The joint attack is exact and exponential: use it on a few records and "
                "releases, or raise its limit.",
                sqlstate="54000",
            )


def _scaled(weights: dict[State, float]) -> dict[State, float]:
    total = sum(weights.values())
    return {state: weight / total for state, weight in weights.items()} if total else {}
