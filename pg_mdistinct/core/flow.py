"""Maximum flow in a small network, by Dinic's algorithm.

Whether a bucket can hold its records, which new records fill which holes and which values
counterfeits take are all questions about integral flows.
"""

from __future__ import annotations

import numpy as np

from pg_mdistinct.core.arrays import BoolArray, IntArray
from pg_mdistinct.core.compiled import kernel, kernel_part

UNBOUNDED = np.int64(1) << 40


class Network:
    """Arcs with capacities; arc i runs forward as edge 2i and backward as edge 2i + 1."""

    def __init__(self, nodes: int) -> None:
        self.nodes = nodes
        self._tails: list[IntArray] = []
        self._heads: list[IntArray] = []
        self._capacities: list[IntArray] = []
        self._arcs = 0
        self._residual: IntArray | None = None

    def add(self, tails: IntArray, heads: IntArray, capacities: IntArray) -> IntArray:
        """Add arcs and return their numbers."""
        self._tails.append(np.asarray(tails, dtype=np.int64))
        self._heads.append(np.asarray(heads, dtype=np.int64))
        self._capacities.append(np.asarray(capacities, dtype=np.int64))
        first = self._arcs
        self._arcs += len(tails)
        return np.arange(first, self._arcs)

    def augment(self, source: int, sink: int) -> int:
        """Push as much more as goes from source to sink; return how much that was."""
        residual = self._close()
        return int(_dinic(self.nodes, self._start, self._edges, self._to, residual, source, sink))

    def widen(self, arcs: IntArray, by: IntArray) -> None:
        """Raise the capacity of some arcs; what flows already goes on flowing."""
        self._close()[2 * arcs] += by

    def flow(self, arcs: IntArray) -> IntArray:
        """Return what flows through the given arcs."""
        return self._close()[2 * arcs + 1].copy()

    def reachable(self, source: int) -> BoolArray:
        """Return the nodes that more could still be pushed to: the source's side of a cut."""
        residual = self._close()
        reached: BoolArray = _reach(
            self.nodes, self._start, self._edges, self._to, residual, source
        )
        return reached

    def _close(self) -> IntArray:
        if self._residual is None:
            tails = np.concatenate(self._tails)
            heads = np.concatenate(self._heads)
            both = np.empty(2 * self._arcs, dtype=np.int64)
            both[0::2], both[1::2] = tails, heads
            self._to = np.empty_like(both)
            self._to[0::2], self._to[1::2] = heads, tails
            self._edges = np.argsort(both, kind="stable").astype(np.int64)
            counts = np.bincount(both, minlength=self.nodes)
            self._start = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
            self._residual = np.zeros(2 * self._arcs, dtype=np.int64)
            self._residual[0::2] = np.concatenate(self._capacities)
        return self._residual


@kernel()
def _reach(nodes, start, edges, to, residual, source):  # type: ignore[no-untyped-def]
    """Tell which nodes something gets through to."""
    levels = np.empty(nodes, dtype=np.int64)
    _levels(start, edges, to, residual, source, levels, np.empty_like(levels))
    return levels >= 0


@kernel_part
def _levels(start, edges, to, residual, source, levels, queue):  # type: ignore[no-untyped-def]
    """Number the nodes by their distance from the source; -1 where nothing gets through."""
    levels[:] = -1
    levels[source] = 0
    queue[0] = source
    read, filled = 0, 1
    while read < filled:
        node = queue[read]
        read += 1
        for i in range(start[node], start[node + 1]):
            edge = edges[i]
            if residual[edge] > 0 and levels[to[edge]] < 0:
                levels[to[edge]] = levels[node] + 1
                queue[filled] = to[edge]
                filled += 1


@kernel()
def _dinic(nodes, start, edges, to, residual, source, sink):  # type: ignore[no-untyped-def]
    """Push blocking flows along shortest paths until the sink is out of reach."""
    levels = np.empty(nodes, dtype=np.int64)
    queue = np.empty(nodes, dtype=np.int64)
    path = np.empty(nodes, dtype=np.int64)
    pushed = 0
    while True:
        _levels(start, edges, to, residual, source, levels, queue)
        if levels[sink] < 0:
            return pushed
        pointer = start[:-1].copy()
        node, depth = source, 0
        while True:
            if node == sink:
                depth, amount = _push(path, depth, residual)
                pushed += amount
                node = to[path[depth] ^ 1]
            elif _advance(node, pointer, start, edges, to, residual, levels):
                path[depth] = edges[pointer[node]]
                node = to[path[depth]]
                depth += 1
            elif node == source:
                break
            else:
                depth -= 1
                node = to[path[depth] ^ 1]
                pointer[node] += 1


@kernel_part
def _push(path, depth, residual):  # type: ignore[no-untyped-def]
    """Fill a path; return where its first full edge is, and how much went through."""
    amount = residual[path[0]]
    for i in range(1, depth):
        amount = min(amount, residual[path[i]])
    first_full = depth
    for i in range(depth - 1, -1, -1):
        residual[path[i]] -= amount
        residual[path[i] ^ 1] += amount
        if residual[path[i]] == 0:
            first_full = i
    return first_full, amount


@kernel_part
def _advance(node, pointer, start, edges, to, residual, levels):  # type: ignore[no-untyped-def]
    """Move a node's pointer to its next edge that leads one level on; tell if there is one."""
    while pointer[node] < start[node + 1]:
        edge = edges[pointer[node]]
        if residual[edge] > 0 and levels[to[edge]] == levels[node] + 1:
            return True
        pointer[node] += 1
    return False
