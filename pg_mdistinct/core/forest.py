"""Turn a placement into one without cycles, so that halving it is a walk along trees."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from pg_mdistinct.core.arrays import IntArray
from pg_mdistinct.core.buckets import Placement


@dataclass(frozen=True)
class Forest:
    """Values and entry types as nodes, cells as edges, no cycles.

    Node numbers: values first, then entry types. ``walk`` lists the nodes from the roots down;
    ``parent_cell`` is -1 at a root; the cells below node i are
    ``child_cell[child_start[i]:child_start[i + 1]]``.
    """

    values: IntArray
    cell_value: IntArray
    cell_type: IntArray
    cell_rows: IntArray
    walk: IntArray
    parent_cell: IntArray
    child_start: IntArray
    child_cell: IntArray


def as_forest(placement: Placement, entry_types: int) -> Forest:
    """Reroute rows around cycles until none is left, and root the trees.

    A row of one value may change places with one of another value as long as both fit both
    entries; that is what a cycle of cells is, and pushing rows around it empties a cell.
    """
    values = np.unique(placement.value)
    local = np.searchsorted(values, placement.value)
    rows: dict[tuple[int, int], int] = {}
    neighbours: dict[int, set[int]] = {}
    for value, entry, count in zip(local, placement.entry_type, placement.rows, strict=True):
        _insert(int(value), len(values) + int(entry), int(count), rows, neighbours)
    return _rooted(values, entry_types, rows, neighbours)


def _insert(
    value: int,
    entry: int,
    count: int,
    rows: dict[tuple[int, int], int],
    neighbours: dict[int, set[int]],
) -> None:
    """Add a cell; where it closes a cycle, push rows around until a cell of it is empty."""
    path = _path(value, entry, neighbours)
    rows[value, entry] = count
    neighbours.setdefault(value, set()).add(entry)
    neighbours.setdefault(entry, set()).add(value)
    if path is None:
        return
    edges = [(value, entry)] + [(min(a, b), max(a, b)) for a, b in pairwise(path)]
    amount = min(rows[edge] for edge in edges[0::2])
    for i, edge in enumerate(edges):
        rows[edge] += amount if i % 2 else -amount
    for edge in edges[0::2]:
        if rows[edge] == 0:
            del rows[edge]
            neighbours[edge[0]].discard(edge[1])
            neighbours[edge[1]].discard(edge[0])


def _path(start: int, goal: int, neighbours: dict[int, set[int]]) -> list[int] | None:
    """Return the nodes from goal back to start, if the two are connected."""
    came_from = {start: start}
    frontier = [start]
    while frontier:
        node = frontier.pop()
        if node == goal:
            path = [node]
            while path[-1] != start:
                path.append(came_from[path[-1]])
            return path
        for other in neighbours.get(node, ()):
            if other not in came_from:
                came_from[other] = node
                frontier.append(other)
    return None


def _rooted(
    values: IntArray,
    entry_types: int,
    rows: dict[tuple[int, int], int],
    neighbours: dict[int, set[int]],
) -> Forest:
    edges = sorted(rows)
    number = {edge: i for i, edge in enumerate(edges)}
    nodes = len(values) + entry_types
    parent_cell = np.full(nodes, -1, dtype=np.int64)
    children: list[list[int]] = [[] for _ in range(nodes)]
    walk: list[int] = []
    seen: set[int] = set()
    for root in reversed(range(nodes)):
        if root in seen:
            continue
        seen.add(root)
        queue = [root]
        for node in queue:
            for other in sorted(neighbours.get(node, ())):
                if other not in seen:
                    seen.add(other)
                    cell = number[min(node, other), max(node, other)]
                    parent_cell[other] = cell
                    children[node].append(cell)
                    queue.append(other)
        walk += queue
    return Forest(
        values=values,
        cell_value=np.array([v for v, _ in edges], dtype=np.int64),
        cell_type=np.array([e - len(values) for _, e in edges], dtype=np.int64),
        cell_rows=np.array([rows[edge] for edge in edges], dtype=np.int64),
        walk=np.array(walk, dtype=np.int64),
        parent_cell=parent_cell,
        child_start=np.cumsum([0, *map(len, children)]).astype(np.int64),
        child_cell=np.array([c for below in children for c in below], dtype=np.int64),
    )
