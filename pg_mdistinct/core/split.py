"""Split a bucket into groups: phase three of the paper, by recursive halving.

A node of the recursion holds g groups' worth of rows: per cell (value, entry type) how many, and
the records themselves. It is halved into g1 and g2 groups along the quasi-identifier that is spread
out most; trying all of them gains nothing that the exchanges afterwards do not gain too. Legal
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
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pg_mdistinct.core.arrays import BoolArray, IntArray, bits, stable_order
from pg_mdistinct.core.buckets import Bucket, Placement
from pg_mdistinct.core.compiled import kernel, kernel_part, loop_part
from pg_mdistinct.core.curve import along_curve
from pg_mdistinct.core.forest import as_forest

STACK = 256
WORK_AT_ONCE = 1_000_000
"""In records looked at, between two breaths; that is a fraction of a second."""


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
    # Those of one node are to be near each other in memory, too: the lower levels are quicker then.
    near = stable_order(along_curve(position))
    number = np.empty(len(near), dtype=np.int32)
    number[near] = np.arange(len(near))
    order = np.array([number[stable_order(bits(column))] for column in position.T])
    position = position.take(near, axis=0)
    place_of_value = np.zeros(len(bucket.counts), dtype=np.int32)
    place_of_value[forest.values] = np.arange(len(forest.values))
    place = place_of_value[value[near]]
    pending_rows = np.empty((STACK, len(forest.cell_rows)), dtype=np.int64)
    pending_real = np.empty((STACK, len(forest.values)), dtype=np.int64)
    pending_node = np.empty((STACK, 3), dtype=np.int64)
    pending_rows[0], pending_node[0] = forest.cell_rows, (0, len(value), bucket.groups)
    pending_real[0] = np.bincount(place, minlength=len(forest.values))
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
            pending_real,
            pending_node,
            state,
            group,
            fake_group,
            fake_value,
        )
        breathe()
    return SplitBucket(group[number], fake_group, forest.values[fake_value])


class _Tree(NamedTuple):
    """The forest of values, entry types and the cells between them, as compiled code takes it."""

    cell_value: IntArray
    walk: IntArray
    parent_cell: IntArray
    child_start: IntArray
    child_cell: IntArray
    multiplicity: IntArray


class _Room(NamedTuple):
    """Arrays to work in, made once: a bucket may have tens of thousands of nodes.

    Numbers by value, by node of the forest, by cell and by record.
    """

    total: IntArray
    real: IntArray
    wanted: IntArray
    taken: IntArray
    left_real: IntArray
    first: IntArray
    filled: IntArray
    lower: IntArray
    upper: IntArray
    least: IntArray
    most: IntArray
    rows: IntArray
    left_rows: IntArray
    is_left: BoolArray
    moved: npt.NDArray[np.int32]
    place: npt.NDArray[np.int32]


@kernel_part
def _room(tree, records):  # type: ignore[no-untyped-def]
    nodes, cells = len(tree.walk), len(tree.cell_value)
    values = nodes - len(tree.multiplicity)
    by_value = np.zeros((7, values), dtype=np.int64)
    by_node = np.zeros((2, nodes), dtype=np.int64)
    by_cell = np.zeros((4, cells), dtype=np.int64)
    return _Room(
        by_value[0],
        by_value[1],
        by_value[2],
        by_value[3],
        by_value[4],
        by_value[5],
        by_value[6],
        by_node[0],
        by_node[1],
        by_cell[0],
        by_cell[1],
        by_cell[2],
        by_cell[3],
        np.zeros(records, dtype=np.bool_),
        np.empty(records, dtype=np.int32),
        np.empty(records, dtype=np.int32),
    )


@kernel(nogil=True)
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
    stack_real,
    stack_node,
    state,
    group,
    fake_group,
    fake_value,
):
    """Halve pending nodes down to single groups, until none is left or some work is done.

    ``state`` counts the pending nodes, the finished groups and the counterfeits placed so far.
    """
    attributes = position.shape[1]
    # Made here: tuples that Python hands over take longer to look at than small buckets to split.
    tree = _Tree(cell_value, walk, parent_cell, child_start, child_cell, multiplicity)
    room = _room(tree, len(position))
    entries = multiplicity.sum()
    depth, finished, fakes = state
    work = 0
    while depth and work < WORK_AT_ONCE:
        depth -= 1
        start, end, here = stack_node[depth, 0], stack_node[depth, 1], stack_node[depth, 2]
        work += end - start
        if here <= 1:
            for i in range(start, end):
                group[order[0, i]] = finished
            if end - start < entries:
                _take_up(stack_rows[depth], stack_real[depth], tree, room)
                fakes = _place_fakes(room, finished, fakes, fake_group, fake_value)
            finished += 1
            continue
        _take_up(stack_rows[depth], stack_real[depth], tree, room)
        along = _widest(position, order[0], start, end)
        cut, left_groups = _cut(position, order, along, start, end, here)
        _halve(order[along], start, end, cut, value, left_groups, here, tree, room)
        _mark(order[along], start, end, value, room)
        # Single groups are not cut any more: one order of their records will do.
        middle = start
        for attribute in range(attributes if here > 2 else 1):
            middle = _partition(order[attribute], start, end, room.is_left, room.moved)
        for cell in range(len(room.rows)):
            stack_rows[depth, cell] = room.rows[cell] - room.left_rows[cell]
            stack_rows[depth + 1, cell] = room.left_rows[cell]
        for v in range(len(room.real)):
            stack_real[depth, v] = room.real[v] - room.left_real[v]
            stack_real[depth + 1, v] = room.left_real[v]
        stack_node[depth, 0], stack_node[depth, 1] = middle, end
        stack_node[depth, 2] = here - left_groups
        stack_node[depth + 1, 0], stack_node[depth + 1, 1] = start, middle
        stack_node[depth + 1, 2] = left_groups
        depth += 2
    state[0], state[1], state[2] = depth, finished, fakes


@loop_part
def _take_up(rows, real, tree, room):  # type: ignore[no-untyped-def]
    """Load a pending node, and count the rows of each value."""
    for v in range(len(room.real)):
        room.real[v] = real[v]
        room.total[v] = 0
    for cell in range(len(room.rows)):
        room.rows[cell] = rows[cell]
        room.total[tree.cell_value[cell]] += rows[cell]


@loop_part
def _place_fakes(room, finished, fakes, fake_group, fake_value):  # type: ignore[no-untyped-def]
    """Note the counterfeits of a finished group; return how many there are by now."""
    for v in range(len(room.total)):
        for _ in range(room.total[v] - room.real[v]):
            fake_group[fakes] = finished
            fake_value[fakes] = v
            fakes += 1
    return fakes


@loop_part
def _widest(position, order, start, end):  # type: ignore[no-untyped-def]
    """Return the attribute with the largest variance."""
    count = max(end - start, 1)
    widest, largest = 0, -1.0
    for a in range(position.shape[1]):
        total, squares = 0.0, 0.0
        for i in range(start, end):
            x = position[order[i], a]
            total += x
            squares += x * x
        variance = squares / count - (total / count) ** 2
        if variance > largest:
            widest, largest = a, variance
    return widest


@loop_part
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


@loop_part
def _halve(order, start, end, cut, value, left_groups, groups, tree, room):  # type: ignore[no-untyped-def]
    """Choose how many rows of each cell, and how many real records of each value, go left."""
    total, real, wanted, rows, left_rows = (
        room.total,
        room.real,
        room.wanted,
        room.rows,
        room.left_rows,
    )
    _note_places(order, start, end, cut, value, room)
    _bound(left_groups, groups - left_groups, tree, room)
    _pass_up(tree, room)
    share = left_groups / groups
    for node in tree.walk:
        above = tree.parent_cell[node]
        given = left_rows[above] if above >= 0 else 0
        chosen = 0
        for i in range(tree.child_start[node], tree.child_start[node + 1]):
            cell = tree.child_cell[i]
            v = tree.cell_value[cell]
            target = wanted[v] + (total[v] - real[v]) * share
            if rows[cell] < total[v]:
                target *= rows[cell] / total[v]
            left_rows[cell] = min(max(int(np.round(target)), room.least[cell]), room.most[cell])
            chosen += left_rows[cell]
        lacking = room.lower[node] - given - chosen
        spare = given + chosen - room.upper[node]
        for _ in range(lacking):
            left_rows[_nearest(1, node, cut, room.most, tree, room)] += 1
        for _ in range(spare):
            left_rows[_nearest(-1, node, cut, room.least, tree, room)] -= 1
    _real_share(tree, room)


@loop_part
def _note_places(order, start, end, cut, value, room):  # type: ignore[no-untyped-def]
    """List the places of each value's records along the order, and count those before the cut."""
    first, filled = room.first, room.filled
    before = 0
    for v in range(len(room.real)):
        first[v] = filled[v] = before
        before += room.real[v]
    for i in range(start, cut):
        v = value[order[i]]
        room.place[filled[v]] = i
        filled[v] += 1
    for v in range(len(room.real)):
        room.wanted[v] = filled[v] - first[v]
    for i in range(cut, end):
        v = value[order[i]]
        room.place[filled[v]] = i
        filled[v] += 1


@loop_part
def _bound(left_groups, right_groups, tree, room):  # type: ignore[no-untyped-def]
    """Say between which numbers the rows of each value and entry type that go left must be."""
    values = len(room.total)
    for v in range(values):
        room.lower[v] = max(0, room.total[v] - right_groups)
        room.upper[v] = min(room.total[v], left_groups)
    for t in range(len(tree.multiplicity)):
        room.lower[values + t] = left_groups * tree.multiplicity[t]
        room.upper[values + t] = room.lower[values + t]


@loop_part
def _pass_up(tree, room):  # type: ignore[no-untyped-def]
    """Pass up from the leaves how few and how many rows each cell can give."""
    least, most = room.least, room.most
    for step in range(len(tree.walk) - 1, -1, -1):
        node = tree.walk[step]
        above = tree.parent_cell[node]
        if above < 0:
            continue
        below_least, below_most = 0, 0
        for i in range(tree.child_start[node], tree.child_start[node + 1]):
            below_least += least[tree.child_cell[i]]
            below_most += most[tree.child_cell[i]]
        least[above] = max(0, room.lower[node] - below_most)
        most[above] = min(room.rows[above], room.upper[node] - below_least)


@loop_part
def _real_share(tree, room):  # type: ignore[no-untyped-def]
    """Say how many of the rows that go left are real: as the cut has it, as far as possible."""
    left_real = room.left_real
    for v in range(len(left_real)):
        left_real[v] = 0
    for cell in range(len(room.left_rows)):
        left_real[tree.cell_value[cell]] += room.left_rows[cell]
    for v in range(len(left_real)):
        going = left_real[v]
        fakes = room.total[v] - room.real[v]
        left_real[v] = min(max(room.wanted[v], going - fakes), min(going, room.real[v]))


@loop_part
def _nearest(direction, node, cut, limit, tree, room):  # type: ignore[no-untyped-def]
    """Return the cell below a node whose next record, one way or the other, is nearest the cut.

    Counterfeits, and values that stand at several entries, can be moved at no cost.
    """
    best, best_distance = -1, np.inf
    for i in range(tree.child_start[node], tree.child_start[node + 1]):
        cell = tree.child_cell[i]
        if direction * room.left_rows[cell] >= direction * limit[cell]:
            continue
        distance = 0.0
        v = tree.cell_value[cell]
        at = room.left_rows[cell] - (1 if direction < 0 else 0)
        is_alone = node >= len(room.total) and room.rows[cell] == room.total[v]
        if is_alone and at < room.real[v]:
            distance = abs(room.place[room.first[v] + at] - cut)
        if distance < best_distance:
            best, best_distance = cell, distance
    return best


@loop_part
def _mark(order, start, end, value, room):  # type: ignore[no-untyped-def]
    """Mark the records that go left: of each value the first ones in this order."""
    for v in range(len(room.taken)):
        room.taken[v] = 0
    for i in range(start, end):
        v = value[order[i]]
        room.is_left[order[i]] = room.taken[v] < room.left_real[v]
        room.taken[v] += 1


@loop_part
def _partition(order, start, end, is_left, moved):  # type: ignore[no-untyped-def]
    """Bring the records that go left to the front, keeping both sides in order.

    Every record is written to both sides, since a processor that guesses where it goes is wrong
    half the time; what it must not stay at is overwritten.
    """
    middle, right = start, 0
    for i in range(start, end):
        record = order[i]
        left = int(is_left[record])
        order[middle] = record
        moved[right] = record
        middle += left
        right += 1 - left
    for i in range(right):
        order[middle + i] = moved[i]
    return middle
