"""The adversary: update graphs of all records, by forward and backward sums.

A record's update graph has the candidates of each version as nodes, weighted by their frequency in
the group, and the feasible updates as edges, weighted by their probability. The paper enumerates
paths; the weight of all paths through a node is the product of what arrives there and what leads on
from there, so two passes along the versions give every risk in linear time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from pg_mdistinct.core.arrays import BoolArray, FloatArray, IntArray, Ragged, different
from pg_mdistinct.core.compiled import kernel, kernel_part
from pg_mdistinct.core.history import History
from pg_mdistinct.core.model import UpdateModel
from pg_mdistinct.core.side_by_side import Breathe, side_by_side

CHUNK = 200_000

Progress = Callable[[str, float], None]
"""Is told a phase and the share of it that is done; may raise to stop the work."""


@dataclass(frozen=True)
class Candidates:
    """The distinct values of each group, with their share of the group's rows."""

    values: Ragged
    weight: FloatArray


@dataclass(frozen=True)
class Beliefs:
    """What the adversary thinks of some versions: a row of nodes for each.

    ``posterior`` is the weight share of the feasible paths through each node; ``alive`` tells
    which nodes are in the feasible sub-graph at all; ``weight`` is a node's own weight, and
    ``onward`` that of the paths that lead on from it, scaled version by version.
    """

    nodes: Ragged
    weight: FloatArray
    posterior: FloatArray
    onward: FloatArray
    alive: BoolArray


@dataclass(frozen=True)
class Risks:
    """Per version: the risk r_n(t_i), and the number of candidates that are left."""

    risk: FloatArray
    candidates: IntArray


def candidates(rows: Ragged) -> Candidates:
    """Count how often each value occurs in each group."""
    width = int(rows.items.max(initial=0)) + 1
    keys, counts = np.unique(rows.row_of_item * width + rows.items, return_counts=True)
    group = keys // width
    offsets = np.searchsorted(group, np.arange(len(rows) + 1)).astype(np.int64)
    return Candidates(Ragged(offsets, keys % width), counts / rows.lengths[group])


def beliefs(history: History, model: UpdateModel) -> Beliefs:
    """Compute what the adversary believes after the last release of a history."""
    groups = candidates(history.rows)
    return _beliefs(history, groups, model)


@dataclass(frozen=True)
class Edges:
    """The updates between two neighbouring versions of one record, as nodes' indices.

    ``probability`` is the model's, ``posterior`` the adversary's that just this one happened.
    """

    before: IntArray
    after: IntArray
    probability: FloatArray
    posterior: FloatArray


def edges(history: History, model: UpdateModel, known: Beliefs, version: int) -> Edges:
    """Return the possible updates that lead to a version from the one before it."""
    offsets = known.nodes.offsets
    old = np.arange(offsets[version - 1], offsets[version])
    new = np.arange(offsets[version], offsets[version + 1])
    gap = int(history.gap[version])
    pairs = (known.nodes.items[old][:, None], known.nodes.items[new][None, :])
    probability = model.power(gap)[pairs]
    paths = probability * (known.weight[new] * known.onward[new])[None, :]
    leaving = paths.sum(axis=1, keepdims=True)
    share = np.divide(paths, leaving, out=np.zeros_like(paths), where=leaving > 0)
    i, j = np.nonzero(model.reach(gap)[pairs])
    return Edges(old[i], new[j], probability[i, j], (known.posterior[old][:, None] * share)[i, j])


def beliefs_in_parts(
    history: History, model: UpdateModel, progress: Progress = lambda phase, share: None
) -> Iterator[tuple[slice, Beliefs]]:
    """Compute the same for some versions at a time, so that memory does not grow with all."""
    groups = candidates(history.rows)
    for chunk in _chunks(history):
        progress("attack", chunk.start / len(history.record))
        yield chunk, _beliefs(_part(history, chunk), groups, model)


def risks(
    history: History, model: UpdateModel, progress: Progress = lambda phase, share: None
) -> Risks:
    """Compute r_n(t_i) for every version, n being the last release."""
    risk = np.empty(len(history.record))
    left = np.empty(len(history.record), dtype=np.int64)
    groups = candidates(history.rows)

    def look(chunk: slice, _: Breathe) -> None:
        found = _beliefs(_part(history, chunk), groups, model)
        own = found.nodes.items == history.value[chunk][found.nodes.row_of_item]
        risk[chunk] = _sum_by_row(np.where(own, found.posterior, 0.0), found.nodes)
        left[chunk] = _sum_by_row(found.alive.astype(np.float64), found.nodes).astype(np.int64)

    chunks = list(_chunks(history))
    sizes = [chunk.stop - chunk.start for chunk in chunks]
    side_by_side(look, chunks, sizes, lambda share: progress("attack", share))
    return Risks(risk, left)


def _sum_by_row(weights: FloatArray, rows: Ragged) -> FloatArray:
    """Add up; every version has at least one candidate."""
    return np.add.reduceat(weights, rows.offsets[:-1]) if len(rows) else weights


def _chunks(history: History) -> Iterator[slice]:
    """Cut the versions into pieces of bounded size, never within a record."""
    starts = np.flatnonzero(history.is_first)
    begin = 0
    while begin < len(history.record):
        beyond = np.searchsorted(starts, begin + CHUNK)
        end = int(starts[beyond]) if beyond < len(starts) else len(history.record)
        yield slice(begin, end)
        begin = end


def _part(history: History, chunk: slice) -> History:
    return History(
        history.release,
        history.gid,
        history.rows,
        history.counterfeits,
        history.record[chunk],
        history.group[chunk],
        history.value[chunk],
    )


def _beliefs(history: History, groups: Candidates, model: UpdateModel) -> Beliefs:
    gap = np.maximum(history.gap, 1)
    steps = different(gap)
    power = np.stack([model.power(int(k)) for k in steps]) if len(steps) else np.empty((0, 0, 0))
    reach = np.stack([model.reach(int(k)) for k in steps]) if len(steps) else power > 0
    nodes = groups.values.take(history.group)
    posterior = np.empty(len(nodes.items))
    alive = np.empty(len(nodes.items), dtype=np.bool_)
    onward = np.ones(len(nodes.items))
    weight = groups.weight[groups.values.item_index(history.group)]
    step = np.searchsorted(steps, gap)
    graph = (history.is_first, step, nodes.offsets, nodes.items, weight, power, reach)
    _forward(*graph, posterior, alive)
    _backward(*graph, posterior, onward, alive)
    return Beliefs(nodes, weight, posterior, onward, alive)


@kernel(nogil=True)
def _forward(is_first, step, offsets, values, weights, power, reach, arriving, alive):  # type: ignore[no-untyped-def]
    """Sum the paths that arrive at each node, scaled so that each version's nodes add up to 1."""
    for i in range(len(is_first)):
        low, high = offsets[i], offsets[i + 1]
        for node in range(low, high):
            arriving[node] = weights[node]
            alive[node] = is_first[i]
            if not is_first[i]:
                paths = 0.0
                for before in range(offsets[i - 1], low):
                    paths += arriving[before] * power[step[i], values[before], values[node]]
                    if alive[before] and reach[step[i], values[before], values[node]]:
                        alive[node] = True
                arriving[node] *= paths
        _scale(arriving, low, high)


@kernel(nogil=True)
def _backward(  # type: ignore[no-untyped-def]
    is_first, step, offsets, values, weights, power, reach, posterior, onward, alive
):
    """Multiply what arrives at each node with the paths that lead on from it."""
    for i in range(len(is_first) - 2, -1, -1):
        if is_first[i + 1]:
            continue
        low, high = offsets[i], offsets[i + 1]
        for node in range(low, high):
            paths, feasible = 0.0, False
            for after in range(high, offsets[i + 2]):
                edge = power[step[i + 1], values[node], values[after]]
                paths += edge * weights[after] * onward[after]
                if alive[after] and reach[step[i + 1], values[node], values[after]]:
                    feasible = True
            onward[node] = paths
            alive[node] = alive[node] and feasible
        _scale(onward, low, high)
        for node in range(low, high):
            posterior[node] *= onward[node]
        _scale(posterior, low, high)


@kernel_part
def _scale(weights, low, high):  # type: ignore[no-untyped-def]
    """Make some weights add up to 1, unless all are 0."""
    total = 0.0
    for i in range(low, high):
        total += weights[i]
    if total > 0:
        for i in range(low, high):
            weights[i] /= total
