"""Split a bucket into groups: phase three of the paper, by recursive halving.

A node of the recursion holds g groups' worth of rows: per cell (value, entry type) how many, and
the records themselves. It is halved into g1 and g2 groups along the quasi-identifier that leaves
the least spread, or, while there are many groups, along the one that is spread out most. Legal
halves take g1 rows of each entry, and of each value neither more than g1 nor so few that the other
half has more than g2: since the placement is a forest, the numbers that each cell may give are
intervals, passed up from the leaves and then chosen from the roots down, as near to the geometric
cut as they allow. Such numbers always exist: g1/g of every cell would do, and flows in a forest
can be rounded.

Counterfeits are rows without a place of their own: they go where they are needed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from numba import njit

from pg_mdistinct.core.arrays import IntArray
from pg_mdistinct.core.buckets import Bucket, Placement
from pg_mdistinct.core.forest import as_forest

STACK = 256
WORK_AT_ONCE = 1_000_000
"""In records looked at, between two breaths; that is a fraction of a second."""

SPREAD_ABOVE = 16
"""Nodes with more groups are judged by standard deviations: all their ranges are wide."""

WIDEST_ABOVE = 32
"""Nodes with more groups are cut along the attribute that is spread out most, without trials."""


@dataclass(frozen=True)
class SplitBucket:
    """Groups of one bucket: the group of each record, and group and value of counterfeits.

    Groups are numbered along the recursion, so that neighbours lie close to each other.
    """

    group: IntArray
    counterfeit_group: IntArray
    counterfeit_value: IntArray


def split_bucket(
    bucket: Bucket,
    placement: Placement,
    value: IntArray,
    position: npt.NDArray[np.float32],
    breathe: Callable[[], None] = lambda: None,
) -> SplitBucket:
    """Split into groups; ``position`` has a row a record, scaled to 0..1.

    ``breathe`` is called every now and then, and may raise to end the work.
    """
    forest = as_forest(placement, len(bucket.types))
    multiplicity = np.array([count for _, count in bucket.types], dtype=np.int64)
    group = np.zeros(len(value), dtype=np.int64)
    fakes = bucket.holes
    fake_group, fake_value = np.empty(fakes, dtype=np.int64), np.empty(fakes, dtype=np.int64)
    position = np.ascontiguousarray(position)
    order = np.ascontiguousarray(np.argsort(position, axis=0, kind="stable").T.astype(np.int32))
    place = np.searchsorted(forest.values, value).astype(np.int32)
    pending_rows = np.empty((STACK, len(forest.cell_rows)), dtype=np.int64)
    pending_node = np.empty((STACK, 3), dtype=np.int64)
    pending_rows[0], pending_node[0] = forest.cell_rows, (0, len(value), bucket.groups)
    state = np.array([1, 0, 0], dtype=np.int64)
    while state[0]:
        _split(
            position,
            order,
            place,
            forest.cell_value,
            forest.walk,
            forest.parent_cell,
            forest.child_start,
            forest.child_cell,
            multiplicity,
            pending_rows,
            pending_node,
            state,
            group,
            fake_group,
            fake_value,
        )
        breathe()
    return SplitBucket(group, fake_group, forest.values[fake_value])


@njit(cache=True)
def _split(  # type: ignore[no-untyped-def]
    position,
    order,
    value,
    cell_value,
    walk,
    parent_cell,
    child_start,
    child_cell,
    multiplicity,
    stack_rows,
    stack_node,
    state,
    group,
    fake_group,
    fake_value,
):
    """Halve pending nodes down to single groups, until none is left or some work is done.

    ``state`` counts the pending nodes, the finished groups and the counterfeits placed so far.
    """
    records, attributes = position.shape
    cells = stack_rows.shape[1]
    values = len(walk) - len(multiplicity)
    is_left = np.zeros(records, dtype=np.bool_)
    moved = np.empty(records, dtype=np.int32)
    rows = np.empty(cells, dtype=np.int64)
    left_rows = np.empty(cells, dtype=np.int64)
    best_rows = np.empty(cells, dtype=np.int64)
    left_real = np.empty(values, dtype=np.int64)
    best_real = np.empty(values, dtype=np.int64)
    total = np.empty(values, dtype=np.int64)
    real = np.empty(values, dtype=np.int64)
    depth, finished, fakes = state
    work = 0
    while depth and work < WORK_AT_ONCE:
        depth -= 1
        start, end, here = stack_node[depth, 0], stack_node[depth, 1], stack_node[depth, 2]
        work += end - start
        rows[:] = stack_rows[depth]
        _count(order[0], start, end, value, rows, cell_value, total, real)
        if here <= 1:
            group[order[0, start:end]] = finished
            fakes = _place_fakes(total, real, finished, fakes, fake_group, fake_value)
            finished += 1
            continue
        best_score, best_attribute, best_left = np.inf, -1, 0
        for attribute in _worth_trying(position, order, start, end, here):
            cut, left_groups = _cut(position, order, attribute, start, end, here)
            _halve(
                order[attribute],
                start,
                end,
                cut,
                value,
                total,
                real,
                rows,
                left_groups,
                here - left_groups,
                cell_value,
                walk,
                parent_cell,
                child_start,
                child_cell,
                multiplicity,
                left_rows,
                left_real,
            )
            score = _score(
                position, order[attribute], start, end, value, left_real, left_groups, here
            )
            if score < best_score or best_attribute < 0:
                best_score, best_attribute, best_left = score, attribute, left_groups
                best_rows[:] = left_rows
                best_real[:] = left_real
        _mark(order[best_attribute], start, end, value, best_real, is_left)
        middle = start
        for attribute in range(attributes):
            middle = _partition(order[attribute], start, end, is_left, moved)
        stack_rows[depth] = rows - best_rows
        stack_node[depth, 0], stack_node[depth, 1] = middle, end
        stack_node[depth, 2] = here - best_left
        depth += 1
        stack_rows[depth] = best_rows
        stack_node[depth, 0], stack_node[depth, 1] = start, middle
        stack_node[depth, 2] = best_left
        depth += 1
    state[0], state[1], state[2] = depth, finished, fakes


@njit(cache=True)
def _count(order, start, end, value, rows, cell_value, total, real):  # type: ignore[no-untyped-def]
    """Count the rows and the real records of each value."""
    total[:] = 0
    real[:] = 0
    for cell in range(len(rows)):
        total[cell_value[cell]] += rows[cell]
    for i in range(start, end):
        real[value[order[i]]] += 1


@njit(cache=True)
def _place_fakes(total, real, finished, fakes, fake_group, fake_value):  # type: ignore[no-untyped-def]
    """Note the counterfeits of a finished group; return how many there are by now."""
    for v in range(len(total)):
        for _ in range(total[v] - real[v]):
            fake_group[fakes] = finished
            fake_value[fakes] = v
            fakes += 1
    return fakes


@njit(cache=True)
def _worth_trying(position, order, start, end, groups):  # type: ignore[no-untyped-def]
    """Return the attributes to cut along: those that vary, or only the one that varies most."""
    attributes = position.shape[1]
    if groups > WIDEST_ABOVE:
        return np.array([_widest(position, order[0], start, end)])
    varying = np.empty(attributes, dtype=np.int64)
    found = 0
    for attribute in range(attributes):
        first = position[order[attribute, start], attribute]
        if first != position[order[attribute, end - 1], attribute]:
            varying[found] = attribute
            found += 1
    return varying[:found] if found else np.zeros(1, dtype=np.int64)


@njit(cache=True)
def _widest(position, order, start, end):  # type: ignore[no-untyped-def]
    """Return the attribute with the largest variance."""
    attributes = position.shape[1]
    sums, squares = np.zeros(attributes), np.zeros(attributes)
    for i in range(start, end):
        for a in range(attributes):
            x = position[order[i], a]
            sums[a] += x
            squares[a] += x * x
    count = max(end - start, 1)
    return np.argmax(squares / count - (sums / count) ** 2)


@njit(cache=True)
def _cut(position, order, attribute, start, end, groups):  # type: ignore[no-untyped-def]
    """Cut between two different values, as near to the middle as there are any in its half."""
    middle = (start + end) // 2
    cut = middle
    quarter = (end - start) // 4
    for offset in range(quarter + 1):
        found = False
        for place in (middle + offset, middle - offset):
            if start < place < end:
                before = position[order[attribute, place - 1], attribute]
                if before != position[order[attribute, place], attribute]:
                    cut = place
                    found = True
                    break
        if found:
            break
    share = (cut - start) / max(end - start, 1)
    return cut, min(max(int(np.round(groups * share)), 1), groups - 1)


@njit(cache=True)
def _halve(  # type: ignore[no-untyped-def]
    order,
    start,
    end,
    cut,
    value,
    total,
    real,
    rows,
    left_groups,
    right_groups,
    cell_value,
    walk,
    parent_cell,
    child_start,
    child_cell,
    multiplicity,
    left_rows,
    left_real,
):
    """Choose how many rows of each cell, and how many real records of each value, go left."""
    values = len(total)
    wanted = np.zeros(values, dtype=np.int64)
    for i in range(start, cut):
        wanted[value[order[i]]] += 1
    first, place = _places_by_value(order, start, end, value, real)
    lower, upper = _bounds(total, left_groups, right_groups, multiplicity)
    least, most = _intervals(rows, lower, upper, walk, parent_cell, child_start, child_cell)
    share = left_groups / (left_groups + right_groups)
    for node in walk:
        given = left_rows[parent_cell[node]] if parent_cell[node] >= 0 else 0
        chosen = 0
        for i in range(child_start[node], child_start[node + 1]):
            cell = child_cell[i]
            v = cell_value[cell]
            target = (wanted[v] + (total[v] - real[v]) * share) * rows[cell] / max(total[v], 1)
            left_rows[cell] = min(max(int(np.round(target)), least[cell]), most[cell])
            chosen += left_rows[cell]
        change = max(lower[node] - given - chosen, 0) + min(upper[node] - given - chosen, 0)
        direction = 1 if change > 0 else -1
        limit = most if change > 0 else least
        for _ in range(abs(change)):
            cell = _nearest(
                direction,
                node,
                cut,
                left_rows,
                limit,
                rows,
                cell_value,
                child_start,
                child_cell,
                first,
                place,
                real,
                total,
            )
            left_rows[cell] += direction
    _real_share(left_rows, cell_value, wanted, total, real, left_real)


@njit(cache=True)
def _places_by_value(order, start, end, value, real):  # type: ignore[no-untyped-def]
    """List the places of each value's records along the order, value after value."""
    first = np.zeros(len(real) + 1, dtype=np.int64)
    for v in range(len(real)):
        first[v + 1] = first[v] + real[v]
    place = np.empty(end - start, dtype=np.int64)
    filled = first.copy()
    for i in range(start, end):
        v = value[order[i]]
        place[filled[v]] = i
        filled[v] += 1
    return first, place


@njit(cache=True)
def _bounds(total, left_groups, right_groups, multiplicity):  # type: ignore[no-untyped-def]
    """Return between which numbers the rows of each value and entry type that go left must be."""
    values = len(total)
    lower = np.empty(values + len(multiplicity), dtype=np.int64)
    upper = np.empty(values + len(multiplicity), dtype=np.int64)
    for v in range(values):
        lower[v] = max(0, total[v] - right_groups)
        upper[v] = min(total[v], left_groups)
    for t in range(len(multiplicity)):
        lower[values + t] = left_groups * multiplicity[t]
        upper[values + t] = lower[values + t]
    return lower, upper


@njit(cache=True)
def _intervals(rows, lower, upper, walk, parent_cell, child_start, child_cell):  # type: ignore[no-untyped-def]
    """Pass up from the leaves how few and how many rows each cell can give."""
    least, most = np.zeros(len(rows), dtype=np.int64), np.zeros(len(rows), dtype=np.int64)
    for step in range(len(walk) - 1, -1, -1):
        node = walk[step]
        above = parent_cell[node]
        if above < 0:
            continue
        below_least, below_most = 0, 0
        for i in range(child_start[node], child_start[node + 1]):
            below_least += least[child_cell[i]]
            below_most += most[child_cell[i]]
        least[above] = max(0, lower[node] - below_most)
        most[above] = min(rows[above], upper[node] - below_least)
    return least, most


@njit(cache=True)
def _real_share(left_rows, cell_value, wanted, total, real, left_real):  # type: ignore[no-untyped-def]
    """Say how many of the rows that go left are real: as the cut has it, as far as possible."""
    left_real[:] = 0
    for cell in range(len(left_rows)):
        left_real[cell_value[cell]] += left_rows[cell]
    for v in range(len(total)):
        going = left_real[v]
        fakes = total[v] - real[v]
        left_real[v] = min(max(wanted[v], going - fakes), min(going, real[v]))


@njit(cache=True)
def _nearest(  # type: ignore[no-untyped-def]
    direction,
    node,
    cut,
    left_rows,
    limit,
    rows,
    cell_value,
    child_start,
    child_cell,
    first,
    place,
    real,
    total,
):
    """Return the cell below a node whose next record, one way or the other, is nearest the cut.

    Counterfeits, and values that stand at several entries, can be moved at no cost.
    """
    best, best_distance = -1, np.inf
    for i in range(child_start[node], child_start[node + 1]):
        cell = child_cell[i]
        if direction * left_rows[cell] >= direction * limit[cell]:
            continue
        distance = 0.0
        v = cell_value[cell]
        at = left_rows[cell] - (1 if direction < 0 else 0)
        if node >= len(total) and rows[cell] == total[v] and at < real[v]:
            distance = abs(place[first[v] + at] - cut)
        if distance < best_distance:
            best, best_distance = cell, distance
    return best


@njit(cache=True)
def _score(position, order, start, end, value, left_real, left_groups, groups):  # type: ignore[no-untyped-def]
    """Return the paper's split score: sizes of the halves times their widths.

    High up in the recursion, where widths hardly differ, the standard deviation stands in.
    """
    attributes = position.shape[1]
    taken = np.zeros(len(left_real), dtype=np.int64)
    low = np.full((2, attributes), np.inf)
    high = np.full((2, attributes), -np.inf)
    sums = np.zeros((2, attributes))
    squares = np.zeros((2, attributes))
    counts = np.zeros(2)
    for i in range(start, end):
        record = order[i]
        v = value[record]
        side = 0 if taken[v] < left_real[v] else 1
        taken[v] += 1
        counts[side] += 1
        for a in range(attributes):
            x = position[record, a]
            low[side, a] = min(low[side, a], x)
            high[side, a] = max(high[side, a], x)
            sums[side, a] += x
            squares[side, a] += x * x
    score = 0.0
    for side in range(2):
        if counts[side] == 0:
            continue
        size = left_groups if side == 0 else groups - left_groups
        for a in range(attributes):
            if groups > SPREAD_ABOVE:
                mean = sums[side, a] / counts[side]
                variance = max(squares[side, a] / counts[side] - mean * mean, 0.0)
                score += size * np.sqrt(variance)
            else:
                score += size * (high[side, a] - low[side, a])
    return score


@njit(cache=True)
def _mark(order, start, end, value, left_real, is_left):  # type: ignore[no-untyped-def]
    """Mark the records that go left: of each value the first ones in this order."""
    taken = np.zeros(len(left_real), dtype=np.int64)
    for i in range(start, end):
        v = value[order[i]]
        is_left[order[i]] = taken[v] < left_real[v]
        taken[v] += 1


@njit(cache=True)
def _partition(order, start, end, is_left, moved):  # type: ignore[no-untyped-def]
    """Bring the records that go left to the front, keeping both sides in order."""
    middle, right = start, 0
    for i in range(start, end):
        if is_left[order[i]]:
            order[middle] = order[i]
            middle += 1
        else:
            moved[right] = order[i]
            right += 1
    for i in range(right):
        order[middle + i] = moved[i]
    return middle
