"""Choose first groups from the balanced family: few signatures that take nearly everybody.

A balanced signature has j types, each m / j times. How many groups of each signature there are is
an integer programme. Its constraints come from Hall's theorem: g_s groups that take a_s values of
type t each can be filled exactly if, for every k, the slots beyond the first k of each group are
not more than the records beyond the k most frequent values,

    Σ_s max(a_s - k, 0) g_s  ≤  Σ_v c_v - (the k largest c_v),      k = 0, 1, ..., m - 1.

What is left must be m-eligible: of the k most frequent values no more than k a group,

    Σ_s (k - min(k, a_s)) g_s  ≤  k ⌊N / m⌋ - (the k largest c_v),  k = 1, ..., m.

All these numbers are at least 0, so the linear relaxation is a packing programme, and its solution
may be rounded down. It is solved region by region, since groups should lie in one region; what is
left goes on to a region next door. Regions come first where one value prevails the most: those
after them may have room for it.

Many solutions take everybody. The best one makes the narrowest groups. The width that n groups of
j types lose together is about √(j n), a concave cost, so a few large signatures are better than
many small ones: the programme is solved for the cost of one more group at the sizes of the solution
before. The smaller the regions, the less it matters from where that begins.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np

from pg_mdistinct.core.arrays import FloatArray, IntArray
from pg_mdistinct.core.flow import Network
from pg_mdistinct.core.programme import Packing
from pg_mdistinct.core.signature import Signature
from pg_mdistinct.core.templates import ValueTypes

LONGEST_LIST = 500
"""Sets of j types are considered if there are not more of them."""

ROUNDS = 6
LARGE = 100_000
"""Programmes are solved so often, but those with more numbers than that only once."""

COST_SHARE = 0.4
"""What the cost of a group counts, against placing it at all."""

HELD_BACK = 8
"""In groups: room that is left in old buckets, since groups may be taken out again later on."""

EVENNESS = (1.0, 1.2, 1.5, 2.0, 3.0)
"""Values are dealt out to signatures in proportion if possible, else within these factors of it."""


@dataclass(frozen=True)
class Surroundings:
    """What is there when new records come: the records of each bucket by region and value."""

    records: Mapping[Signature, IntArray]
    groups: Mapping[Signature, int]


@dataclass(frozen=True)
class Chosen:
    """New groups of one signature: its types, how many groups, and their records.

    ``taken`` counts the records by region and value. They need not fill groups of their own: old
    records of the same bucket may keep them company.
    """

    types: list[int]
    groups: int
    taken: IntArray


def choose_groups(
    new: IntArray,
    around: Surroundings,
    m: int,
    types: ValueTypes,
    progress: Callable[[float], None] = lambda share: None,
) -> list[Chosen]:
    """Return groups that take all new records, counted by region and value, but a few.

    Those few are m-eligible if all were. ``progress`` is told the share that is done, and may
    raise to end the work.
    """
    family = _Family(new, around, m, types)
    if not len(family.types_of):
        return []
    gain = family.gain(new, lambda share: progress(share / 2))
    groups, taken = family.deal(new, gain, lambda share: progress((1 + share) / 2))
    return [
        Chosen(list(family.types_of[s]) * int(family.each[s]), int(groups[s]), taken[s])
        for s in np.flatnonzero(groups)
    ]


class _Family:
    """All balanced signatures that come into question, numbered, and what there is of each."""

    def __init__(self, new: IntArray, around: Surroundings, m: int, types: ValueTypes) -> None:
        self.m = m
        self.members = types.members
        present = new.sum(axis=0) + sum(
            (records.sum(axis=0) for records in around.records.values()), np.zeros_like(new[0])
        )
        self.types_of = _type_sets(present, m, types)
        self.each = np.array([m // len(chosen) for chosen in self.types_of], dtype=np.int64)
        signatures = [types.signature(chosen * (m // len(chosen))) for chosen in self.types_of]
        nobody = np.zeros_like(new)
        self.old = np.array(
            [around.records.get(signature, nobody) for signature in signatures]
        ).reshape(-1, *new.shape)
        self.old_groups = np.array(
            [around.groups.get(signature, 0) for signature in signatures], dtype=np.int64
        )
        # takes[t, s]: how many values of type t a group of signature s takes.
        self.takes = np.zeros((len(types.members), len(signatures)), dtype=np.int64)
        for s, chosen in enumerate(self.types_of):
            self.takes[list(chosen), s] = self.each[s]

    def gain(self, new: IntArray, progress: Callable[[float], None]) -> FloatArray:
        """Return what one more group is worth: less with many types, or in a small bucket."""
        everybody = new.sum(axis=0)
        regions = [
            _Region(self, records, self.old[:, r], everybody).programme
            for r, records in enumerate(new)
        ]
        programmes = [Packing(*programme) for programme in regions]
        rounds = 1 if max(columns.size for columns, _ in regions) > LARGE else ROUNDS
        sizes = self.old_groups + everybody.sum() / self.m / len(self.types_of)
        for done in range(rounds):
            gain = self._gain(sizes)
            sizes = self.old_groups.astype(np.float64)
            for r, programme in enumerate(programmes):
                progress((done + r / len(programmes)) / rounds)
                sizes += programme.maximize(gain)
        return self._gain(sizes)

    def _gain(self, sizes: FloatArray) -> FloatArray:
        cost = np.sqrt(self.m / self.each / (1.0 + sizes))
        gain: FloatArray = 1.0 - COST_SHARE * cost / cost.max()
        return gain

    def deal(
        self, new: IntArray, gain: FloatArray, progress: Callable[[float], None]
    ) -> tuple[IntArray, IntArray]:
        """Go from region to region; return the groups by signature, and the records that they take.

        The records are counted by signature, region and value.
        """
        groups, taken = np.zeros_like(self.old_groups), np.zeros_like(self.old)
        room = self.old_groups[:, None] - self.old.sum(axis=1)
        room[self.old_groups > 0] -= HELD_BACK
        left, everybody = new.copy(), new.sum(axis=0)
        order = _hardest_first(new, self.m)
        for done, r in enumerate(order):
            progress(done / len(order))
            region = _Region(self, left[r], self.old[:, r], everybody)
            amounts = Packing(*region.programme).maximize(gain)
            more, taken[:, r] = region.deal(amounts, room)
            groups += more
            room += more[:, None] - taken[:, r]
            everybody -= taken[:, r].sum(axis=0)
            if done + 1 < len(order):
                next_door = min(order[done + 1 :], key=lambda other, r=r: other ^ r)  # type: ignore[misc]
                left[next_door] += left[r] - taken[:, r].sum(axis=0)
        return groups, taken


def _hardest_first(new: IntArray, m: int) -> list[int]:
    """Order regions by how many records of their most frequent value are too many for them."""
    too_many = new.max(axis=1, initial=0) - new.sum(axis=1) / m
    order: list[int] = np.argsort(-too_many, kind="stable").tolist()
    return order


def _type_sets(present: IntArray, m: int, types: ValueTypes) -> list[tuple[int, ...]]:
    """List the sets of types that can make up a balanced signature of these records."""
    values = [int((present[members] > 0).sum()) for members in types.members]
    listed: list[tuple[int, ...]] = []
    for j in (j for j in range(1, m + 1) if m % j == 0):
        able = [t for t, count in enumerate(values) if count >= m // j]
        if comb(len(able), j) <= LONGEST_LIST:
            listed += combinations(able, j)
    return listed


class _Region:
    """The programme of one region: its new records, and the old ones of each signature.

    ``everybody`` counts the new records here and in all regions to come.
    """

    def __init__(self, family: _Family, new: IntArray, old: IntArray, everybody: IntArray) -> None:
        self.family = family
        self.new = new
        self.old = old
        self.everybody = everybody
        columns, limits = self._slots()
        if not old.any():
            more_columns, more_limits = self._rest()
            columns = np.concatenate([columns, more_columns])
            limits = np.concatenate([limits, more_limits])
        matters = columns.any(axis=1)
        self.programme = columns[matters].astype(np.float64), limits[matters]

    def _slots(self) -> tuple[IntArray, FloatArray]:
        """Return the constraints that there be enough records for all slots.

        Old records count as if they could be exchanged between signatures: `deal` knows better.
        """
        m, members = self.family.m, self.family.members
        slots = np.maximum(self.family.takes[:, None, :] - np.arange(m)[None, :, None], 0)
        together = self.new + self.old.sum(axis=0)
        beyond = np.array([_beyond_most_frequent(together[values], m) for values in members])
        # Not by the operator @: see core/products.py.
        taken = np.einsum("tks,s->tk", slots, self.old.sum(axis=1) / m)
        limits = np.maximum(beyond - taken, 0.0)
        limits[:, 0] = [self.new[values].sum() for values in members]
        return slots.reshape(-1, slots.shape[-1]), limits.reshape(-1)

    def _rest(self) -> tuple[IntArray, FloatArray]:
        """Return the constraints that what is left be m-eligible."""
        m, members = self.family.m, self.family.members
        k = np.arange(1, m + 1)
        other = k[None, :, None] - np.minimum(k[None, :, None], self.family.takes[:, None, :])
        everybody = self.everybody
        most_frequent = np.array(
            [
                everybody[values].sum() - _beyond_most_frequent(everybody[values], m + 1)[1:]
                for values in members
            ]
        )
        limits = np.maximum(k * (int(everybody.sum()) // m) - most_frequent, 0.0)
        return other.reshape(-1, other.shape[-1]), limits.reshape(-1)

    def deal(self, amounts: FloatArray, room: IntArray) -> tuple[IntArray, IntArray]:
        """Round, and say what each signature takes of each value; fewer groups if need be.

        ``room`` is what old groups could take of each value besides.
        """
        groups = np.floor(amounts + 1e-4).astype(np.int64)
        while groups.any():
            taken = self._try(groups, room)
            if taken is not None:
                return groups, taken
            groups = groups * 9 // 10
        return groups, np.zeros_like(self.old)

    def _must(self, groups: int) -> IntArray:
        """Return how many records of each value have to go, so that the rest is m-eligible.

        Where they are not eligible to begin with, the rest is to lack no more rows than all did.
        """
        everybody = self.everybody
        needed = max(int(everybody.sum()) // self.family.m, int(everybody.max()))
        must: IntArray = np.maximum(everybody - (needed - groups), 0)
        return must

    def _try(self, groups: IntArray, room: IntArray) -> IntArray | None:
        m, takes = self.family.m, self.family.takes
        must = self._must(int(groups.sum()))
        taken = np.zeros_like(self.old)
        here = self.old.sum(axis=1, keepdims=True) // m - self.old
        most = np.maximum(groups[:, None] + np.minimum(here, room), 0)
        cells, demands = [], []
        for t, values in enumerate(self.family.members):
            which = np.flatnonzero((groups > 0) & (takes[t] > 0))
            cells.append((which[:, None], values))
            slots = takes[t, which] * groups[which]
            demands.append((self.new[values], must[values], most[cells[-1]], slots))
        if not all(_could_be_dealt(*demand) for demand in demands):
            return None
        for cell, demand in zip(cells, demands, strict=True):
            dealt = _deal_type(*demand)
            if dealt is None:
                return None
            taken[cell] = dealt
        return taken


def _beyond_most_frequent(counts: IntArray, m: int) -> IntArray:
    """Return the number of records without the k most frequent values, k = 0 ... m - 1."""
    most_frequent = np.zeros(m, dtype=np.int64)
    top = -np.sort(-counts)[: m - 1]
    most_frequent[1 : len(top) + 1] = top
    beyond: IntArray = counts.sum() - np.cumsum(most_frequent)
    return beyond


def _could_be_dealt(counts: IntArray, must: IntArray, most: IntArray, slots: IntArray) -> bool:
    """Tell at a glance of most that cannot be done: for every value and signature by itself."""
    fits = np.minimum(most, counts)
    return bool(
        (must <= np.minimum(counts, fits.sum(axis=0))).all()
        and (slots <= fits.sum(axis=1)).all()
        and slots.sum() <= np.minimum(counts, most.sum(axis=0)).sum()
    )


def _deal_type(
    counts: IntArray, must: IntArray, most: IntArray, slots: IntArray
) -> IntArray | None:
    """Deal the values of one type out to signatures, by maximum flow, as evenly as possible.

    ``must`` says how many records of each value have to be dealt out, and ``most`` bounds what a
    signature takes of a value. None if that cannot be done.
    """
    signatures, values = most.shape
    source, sink = 0, 1
    value_nodes = 2 + np.arange(values)
    signature_nodes = 2 + values + np.arange(signatures)
    network = Network(2 + values + signatures)
    supply = network.add(np.full(values, source), value_nodes, must)
    network.add(signature_nodes, np.full(signatures, sink), slots)
    capacity = np.zeros((signatures, values), dtype=np.int64)
    cells = network.add(
        np.tile(value_nodes, signatures), np.repeat(signature_nodes, values), capacity.reshape(-1)
    )
    routed, urgent = 0, int(must.sum())
    for factor in EVENNESS:
        if routed == urgent:
            break
        fair = slots[:, None] * counts / max(int(counts.sum()), 1)
        wider = np.maximum(np.minimum(np.ceil(fair * factor), most), capacity).astype(np.int64)
        network.widen(cells, (wider - capacity).reshape(-1))
        capacity = wider
        routed += network.augment(source, sink)
    network.widen(cells, (most - capacity).reshape(-1))
    routed += network.augment(source, sink)
    if routed < urgent:
        return None
    network.widen(supply, counts - must)
    if routed + network.augment(source, sink) < int(slots.sum()):
        return None
    return network.flow(cells).reshape(signatures, values)
