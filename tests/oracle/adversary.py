"""The paper's adversary: update graphs, pruned by repeated deletion, and paths counted one by one.

Everything is enumerated and added up in fractions, so use it on small histories only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise

from tests.oracle.history import (
    History,
    RecordId,
    Steps,
    UpdateModel,
    Version,
    versions_by_record,
)

Node = tuple[int, str]
"""(position of the version in the record's history, candidate value)"""


@dataclass(frozen=True)
class UpdateGraph:
    """One record's candidates in all of its versions, and the feasible updates between them."""

    versions: tuple[Version, ...]
    nodes: dict[Node, Fraction]
    edges: dict[tuple[Node, Node], Fraction]

    @classmethod
    def of(cls, versions: Sequence[Version], model: UpdateModel | Steps) -> UpdateGraph:
        """Node weight: share of the group's rows; edge weight: probability over the gap."""
        after = model if isinstance(model, Steps) else Steps(model)
        nodes: dict[Node, Fraction] = {}
        for position, version in enumerate(versions):
            values = version.group.values
            for value in values:
                nodes[position, value] = Fraction(values.count(value), len(values))
        edges: dict[tuple[Node, Node], Fraction] = {}
        for position, (old, new) in enumerate(pairwise(versions)):
            for value in set(old.group.values):
                becomes = after(value, new.release - old.release)
                for target in set(new.group.values) & becomes.keys():
                    edges[(position, value), (position + 1, target)] = becomes[target]
        return cls(tuple(versions), nodes, edges)

    @cached_property
    def feasible(self) -> set[Node]:
        """Nodes of the feasible sub-graph: delete dead ends until there are none left."""
        alive = set(self.nodes)
        last = len(self.versions) - 1
        while True:
            has_successor = {a for a, b in self.edges if a in alive and b in alive}
            has_predecessor = {b for a, b in self.edges if a in alive and b in alive}
            dead = {
                node
                for node in alive
                if (node[0] < last and node not in has_successor)
                or (node[0] > 0 and node not in has_predecessor)
            }
            if not dead:
                return alive
            alive -= dead

    def candidates(self, position: int) -> set[str]:
        """What the adversary still thinks possible of one version."""
        return {value for at, value in self.feasible if at == position}

    def pruned(self) -> list[tuple[Version, str]]:
        """Candidates that the adversary can exclude."""
        return [
            (self.versions[position], value)
            for position, value in sorted(self.nodes.keys() - self.feasible)
        ]

    def disclosed(self) -> list[tuple[Version, str]]:
        """Versions of which one candidate is left: the adversary knows the value."""
        return [
            (version, next(iter(left)))
            for position, version in enumerate(self.versions)
            if len(left := self.candidates(position)) == 1
        ]

    def paths(self) -> list[tuple[tuple[str, ...], Fraction]]:
        """Every feasible path with its weight, in the order of the groups' values."""
        starts = [
            (0, value)
            for value in dict.fromkeys(self.versions[0].group.values)
            if (0, value) in self.feasible
        ]
        return [path for start in starts for path in self._extend((start[1],), self.nodes[start])]

    def _extend(
        self, path: tuple[str, ...], weight: Fraction
    ) -> Iterator[tuple[tuple[str, ...], Fraction]]:
        position = len(path) - 1
        if position == len(self.versions) - 1:
            yield path, weight
            return
        for value in dict.fromkeys(self.versions[position + 1].group.values):
            node = (position + 1, value)
            edge = self.edges.get(((position, path[-1]), node))
            if edge is not None and node in self.feasible:
                yield from self._extend((*path, value), weight * edge * self.nodes[node])

    def shares(self, position: int) -> dict[str, Fraction]:
        """Probability of each candidate of one version: the share of the paths through it."""
        paths = self.paths()
        total = sum((weight for _, weight in paths), Fraction(0))
        shares: dict[str, Fraction] = {}
        for path, weight in paths:
            shares[path[position]] = shares.get(path[position], Fraction(0)) + weight / total
        return shares

    def risks(self) -> list[Fraction]:
        """r_n(t_i) of each version; needs its true value."""
        risks = []
        for position, version in enumerate(self.versions):
            if version.true_value is None:
                raise ValueError("risk needs the true value of every version")
            risks.append(self.shares(position).get(version.true_value, Fraction(0)))
        return risks


def update_graph(
    history: History, model: UpdateModel, record: RecordId, n: int | None = None
) -> UpdateGraph:
    """What is known of one record after release n (default: after the last one)."""
    return UpdateGraph.of(versions_by_record(history[:n])[record], model)


def risks(
    history: History, model: UpdateModel, n: int | None = None
) -> dict[tuple[RecordId, int], Fraction]:
    """r_n(t_i) by (record, release i), for every version published up to release n."""
    after = Steps(model)
    return {
        (record, version.release): risk
        for record, versions in versions_by_record(history[:n]).items()
        for version, risk in zip(versions, UpdateGraph.of(versions, after).risks(), strict=True)
    }


def republication_risk(history: History, model: UpdateModel) -> Fraction:
    """The largest r_n(t_i) over all n, i and t."""
    return max(
        (risk for n in range(1, len(history) + 1) for risk in risks(history, model, n).values()),
        default=Fraction(0),
    )


def disclosures(history: History, model: UpdateModel) -> dict[tuple[RecordId, int], str]:
    """What the adversary knows for certain: (record, release) -> value."""
    after = Steps(model)
    return {
        (record, version.release): value
        for record, versions in versions_by_record(history).items()
        for version, value in UpdateGraph.of(versions, after).disclosed()
    }
