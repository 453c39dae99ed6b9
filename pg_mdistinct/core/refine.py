"""Tighten groups: neighbours exchange members where that makes them narrower.

Within a bucket, two members may change places if every entry that takes the value of one takes
that of the other, and neither group has the other's value already. Between buckets they may if
both are new and every entry of all buckets takes both of their values or neither: a new record has
no signature yet that it must keep.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from pg_mdistinct.core.arrays import IntArray, stable_order
from pg_mdistinct.core.compiled import kernel, loop_part
from pg_mdistinct.core.curve import along_curve
from pg_mdistinct.core.side_by_side import LEAST_WORK, Breathe, side_by_side

MOST_ROUNDS = 8
MOST_GROUPS = 50_000
WINDOWS = (16, 6)
"""Groups are compared with so many that come after them in an order that keeps neighbours close.

They are gone through so often that they make up about that number; if there are more, once, and
with fewer neighbours: the more there are, the nearer are neighbours by themselves.
"""

GROUPS_AT_ONCE = 8_000
"""Gone through by themselves; that takes a fraction of a second."""

LEAST_GAIN = np.float32(1e-6)


@dataclass(frozen=True)
class Members:
    """All rows, real records first: value, kind, sort, and the position of the real ones.

    Rows of one kind stand in for each other. Kinds are numbered through all buckets, so rows of
    different buckets differ in kind; counterfeits have kind -1 and stay where they are. New records
    of one sort stand in for each other in all buckets; whoever is not new has sort -1.
    """

    value: IntArray
    kind: IntArray
    sort: IntArray
    position: npt.NDArray[np.float32]


def refine(
    group: IntArray,
    bucket: IntArray,
    members: Members,
    rng: np.random.Generator,
    progress: Callable[[float], None] = lambda share: None,
) -> None:
    """Exchange members of groups; ``group``, of every row, is changed in place.

    Groups come numbered bucket by bucket, neighbours close to each other. Each round goes through
    the buckets one by one, then across them. ``progress`` is told the share that is done, and may
    raise to end the work.
    """
    seats = _seats(group, len(bucket), members)
    number = np.arange(len(bucket))
    rounds = min(max(MOST_GROUPS // len(bucket), 1), MOST_ROUNDS)
    window = WINDOWS[len(bucket) > MOST_GROUPS]
    passes = [across for _ in range(rounds) for across in (False, True)]
    if members.sort.max(initial=-1) < 0:
        passes = [False] * rounds
    for done, across in enumerate(passes):
        if done:
            place = along_curve(_centres(seats.kind, seats.position), rng)
            order = stable_order(place) if across else np.lexsort((place, bucket[number]))
            seats, number = seats.take(order), number[order]
        stretches = _stretches(len(bucket))
        side_by_side(
            partial(_exchange_some, seats, across, window),
            stretches,
            [stretch.stop - stretch.start for stretch in stretches],
            lambda share, done=done: progress((done + share) / len(passes)),  # type: ignore[misc]
        )
    _note_groups(seats.row, number, group)


def _stretches(groups: int) -> list[slice]:
    """Cut the groups into stretches, two at least where a second thread is worth its while."""
    count = max(-(-groups // GROUPS_AT_ONCE), 2 if groups >= LEAST_WORK else 1)
    ends = np.linspace(0, groups, count + 1).astype(np.int64).tolist()
    return [slice(start, stop) for start, stop in itertools.pairwise(ends)]


@dataclass(frozen=True)
class _Seats:
    """What sits where, group by group, so that neighbours are near each other in memory too.

    Without a row: row and value are -1. Without a real record: kind is negative.
    """

    row: npt.NDArray[np.int32]
    value: npt.NDArray[np.int32]
    kind: npt.NDArray[np.int32]
    sort: npt.NDArray[np.int32]
    position: npt.NDArray[np.float32]

    def take(self, groups: IntArray) -> _Seats:
        """Return the seats of some groups."""
        return _Seats(
            self.row.take(groups, axis=0),
            self.value.take(groups, axis=0),
            self.kind.take(groups, axis=0),
            self.sort.take(groups, axis=0),
            self.position.take(groups, axis=0),
        )


def _seats(group: IntArray, groups: int, members: Members) -> _Seats:
    """Seat all rows in their groups; there are as many seats as the largest group has rows."""
    size = int(np.bincount(group, minlength=groups).max(initial=0))
    seats = _Seats(
        np.full((groups, size), -1, dtype=np.int32),
        np.full((groups, size), -1, dtype=np.int32),
        np.full((groups, size), -1, dtype=np.int32),
        np.full((groups, size), -1, dtype=np.int32),
        np.zeros((groups, size, members.position.shape[1]), dtype=np.float32),
    )
    _seat(
        group,
        members.value,
        members.kind,
        members.sort,
        members.position,
        seats.row,
        seats.value,
        seats.kind,
        seats.sort,
        seats.position,
    )
    return seats


@kernel()
def _seat(  # type: ignore[no-untyped-def]
    group, value, kind, sort, position, row, seat_value, seat_kind, seat_sort, seat_position
):
    """Give each row the next seat of its group; counterfeits, which come last, have no place."""
    taken = np.zeros(len(row), dtype=np.int64)
    for i in range(len(group)):
        g = group[i]
        seat = taken[g]
        taken[g] += 1
        row[g, seat] = i
        seat_value[g, seat] = value[i]
        seat_kind[g, seat] = kind[i]
        seat_sort[g, seat] = sort[i]
        if i < len(position):
            for a in range(position.shape[1]):
                seat_position[g, seat, a] = position[i, a]


@kernel()
def _note_groups(row, number, group):  # type: ignore[no-untyped-def]
    """Tell all rows the numbers of the groups that they sit in."""
    for g in range(len(row)):
        for i in row[g]:
            if i >= 0:
                group[i] = number[g]


@kernel()
def _centres(kind, position):  # type: ignore[no-untyped-def]
    """Return where the real members of each group lie on the average."""
    groups, size, attributes = position.shape
    centre = np.zeros((groups, attributes), dtype=np.float32)
    for g in range(groups):
        real = 0
        for i in range(size):
            if kind[g, i] >= 0:
                real += 1
                for a in range(attributes):
                    centre[g, a] += position[g, i, a]
        for a in range(attributes):
            centre[g, a] /= max(real, 1)
    return centre


def _exchange_some(seats: _Seats, across: bool, window: int, part: slice, _: Breathe) -> None:
    _exchange(
        seats.row[part],
        seats.value[part],
        seats.kind[part],
        seats.sort[part],
        seats.position[part],
        across,
        window,
    )


@kernel(nogil=True)
def _exchange(row, value, kind, sort, position, across, window):  # type: ignore[no-untyped-def]
    """Go through all pairs of neighbours once, and exchange the two members that gain the most.

    A kind belongs to the seat: whoever comes from another bucket takes it over.
    """
    groups, size, attributes = position.shape
    # The last place is for the box of the whole group.
    low = np.empty((groups, size + 1, attributes), dtype=np.float32)
    high = np.empty((groups, size + 1, attributes), dtype=np.float32)
    width = np.empty(groups, dtype=np.float32)
    for g in range(groups):
        _measure(g, kind, position, low, high, width)
    for g in range(groups):
        for h in range(g + 1, min(g + 1 + window, groups)):
            if _may_gain(g, h, low, high, width):
                i, j = _best_pair(g, h, value, kind, sort, position, across, low, high, width)
                if i >= 0:
                    row[g, i], row[h, j] = row[h, j], row[g, i]
                    value[g, i], value[h, j] = value[h, j], value[g, i]
                    sort[g, i], sort[h, j] = sort[h, j], sort[g, i]
                    for a in range(attributes):
                        x = position[g, i, a]
                        position[g, i, a] = position[h, j, a]
                        position[h, j, a] = x
                    _measure(g, kind, position, low, high, width)
                    _measure(h, kind, position, low, high, width)


@loop_part
def _may_gain(g, h, low, high, width):  # type: ignore[no-untyped-def]
    """Tell whether two groups are near enough: after an exchange both span the gap between them.

    A group of one member spans nothing, but has no width to lose either.
    """
    room = (width[g] + width[h]) / 2
    if min(width[g], width[h]) == 0.0:
        return room > 0.0
    whole = low.shape[1] - 1
    for a in range(low.shape[2]):
        gap = max(low[g, whole, a] - high[h, whole, a], low[h, whole, a] - high[g, whole, a])
        room -= max(gap, np.float32(0.0))
        if room <= 0.0:
            return False
    return True


@loop_part
def _best_pair(g, h, value, kind, sort, position, across, low, high, width):  # type: ignore[no-untyped-def]
    """Return which members of two groups to exchange, -1 if no exchange makes them narrower."""
    size, attributes = position.shape[1:]
    best, best_i, best_j = LEAST_GAIN, -1, -1
    for i in range(size):
        if kind[g, i] < 0:
            continue
        for j in range(size):
            same = value[g, i] == value[h, j]
            if kind[h, j] < 0 or (
                kind[g, i] != kind[h, j]
                and not (across and sort[g, i] >= 0 and sort[g, i] == sort[h, j])
            ):
                continue
            gain = width[g] + width[h]
            for a in range(attributes):
                x, y = position[g, i, a], position[h, j, a]
                gain -= max(high[g, i, a], y) - min(low[g, i, a], y)
                gain -= max(high[h, j, a], x) - min(low[h, j, a], x)
                if gain <= best:
                    break
            if gain > best and (same or _stay_different(g, h, i, j, value)):
                best, best_i, best_j = gain, i, j
    return best_i, best_j


@loop_part
def _measure(g, kind, position, low, high, width):  # type: ignore[no-untyped-def]
    """Find the width of a group, and the box that it would be without each of its members."""
    size, attributes = position.shape[1:]
    width[g] = 0.0
    for a in range(attributes):
        lowest, lower = np.float32(np.inf), np.float32(np.inf)
        highest, higher = np.float32(-np.inf), np.float32(-np.inf)
        for i in range(size):
            if kind[g, i] >= 0:
                x = position[g, i, a]
                lower = min(lower, max(lowest, x))
                lowest = min(lowest, x)
                higher = max(higher, min(highest, x))
                highest = max(highest, x)
        for i in range(size):
            x = position[g, i, a]
            low[g, i, a] = lower if x == lowest else lowest
            high[g, i, a] = higher if x == highest else highest
        low[g, size, a], high[g, size, a] = lowest, highest
        width[g] += max(highest - lowest, np.float32(0.0))


@loop_part
def _stay_different(g, h, i, j, value):  # type: ignore[no-untyped-def]
    """Tell whether neither group would have a value twice."""
    different = True
    for other in range(value.shape[1]):
        different &= value[g, other] != value[h, j] and value[h, other] != value[g, i]
    return different
