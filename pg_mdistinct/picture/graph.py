"""What there is to draw: candidates of every version, and the updates between them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

SWEEPS = 4


@dataclass(frozen=True)
class Node:
    """A candidate: its share of the group's rows, and what the adversary thinks of it.

    ``is_true`` is None where nobody asked, or nobody may tell.
    """

    release: int
    value: str
    weight: float
    posterior: float
    feasible: bool
    is_true: bool | None = None


@dataclass(frozen=True)
class Edge:
    """An update: how likely it is by the model, and how likely it is to have happened."""

    release: int
    value: str
    next_release: int
    next_value: str
    weight: float
    posterior: float
    feasible: bool
    is_true: bool | None = None


@dataclass(frozen=True)
class UpdateGraphPicture:
    """The update graph of one record of a dataset, ready to be drawn."""

    dataset: str
    record: str
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]

    @classmethod
    def of(cls, dataset: str, record: str, rows: Iterable[Mapping[str, Any]]) -> UpdateGraphPicture:
        """Build it from the rows of ``mdistinct_sug``."""
        nodes, edges = [], []
        for row in rows:
            cells = {name: row[name] for name in _CELLS}
            if row["kind"] == "node":
                nodes.append(Node(**cells))
            else:
                following = {name: row[name] for name in ("next_release", "next_value")}
                edges.append(Edge(**cells, **following))
        return cls(dataset, record, tuple(nodes), tuple(edges))

    @cached_property
    def columns(self) -> dict[int, list[Node]]:
        """Return the candidates of each release from top to bottom, so that few edges cross.

        Each version is sorted by the mean height of what its candidates are connected with, to
        and fro a few times. What can be excluded comes last.
        """
        columns: dict[int, list[Node]] = {}
        for node in sorted(self.nodes, key=lambda node: (node.release, node.value)):
            columns.setdefault(node.release, []).append(node)
        neighbours = self._neighbours()
        releases = list(columns)
        for sweep in range(SWEEPS):
            forward = sweep % 2 == 0
            turn = releases[1:] if forward else releases[-2::-1]
            for release in turn:
                beside = releases[releases.index(release) + (-1 if forward else 1)]
                height = {n.value: _height(columns[beside], n) for n in columns[beside]}
                _sort(columns[release], neighbours, beside, height)
        return columns

    @property
    def shows_true_path(self) -> bool:
        """Tell whether the picture gives the truth away."""
        return any(node.is_true for node in self.nodes)

    def is_known(self, node: Node) -> bool:
        """Tell whether a candidate is the only one of its version that is left."""
        return node.feasible and self.left(node.release) == 1

    def left(self, release: int) -> int:
        """Count the candidates of a version that cannot be excluded."""
        return sum(node.feasible for node in self.columns[release])

    def _neighbours(self) -> dict[tuple[int, str], list[tuple[int, str]]]:
        found: dict[tuple[int, str], list[tuple[int, str]]] = {}
        for edge in self.edges:
            before, after = (edge.release, edge.value), (edge.next_release, edge.next_value)
            found.setdefault(before, []).append(after)
            found.setdefault(after, []).append(before)
        return found


_CELLS = ("release", "value", "weight", "posterior", "feasible", "is_true")


def _height(column: list[Node], node: Node) -> float:
    """Return where a node stands in its column, from 0 to 1."""
    return (column.index(node) + 0.5) / len(column)


def _sort(
    column: list[Node],
    neighbours: Mapping[tuple[int, str], list[tuple[int, str]]],
    beside: int,
    height: Mapping[str, float],
) -> None:
    own = {node.value: _height(column, node) for node in column}

    def key(node: Node) -> tuple[bool, float, str]:
        near = [
            height[value]
            for release, value in neighbours.get((node.release, node.value), ())
            if release == beside
        ]
        return not node.feasible, sum(near) / len(near) if near else own[node.value], node.value

    column.sort(key=key)


def percent(probability: float) -> str:
    """Show a probability in two or three signs; only certainty is shown as 0% or 100%."""
    if 0 < probability < 0.005:
        return "<1%"
    if 0.995 <= probability < 1:
        return ">99%"
    return f"{probability:.0%}"
