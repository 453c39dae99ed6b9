"""The adversary's knowledge, carried from release to release.

Computing all risks from the whole history costs more with every release. But what matters of a
record's past is small. Let α(v) be the probability that its last version has value v, and, for each
version i, let q_i(v) be the probability that i has its true value *if* the last version has value
v: then r_n(t_i) = Σ α(v) q_i(v). A new release turns every q_i into averages of itself, the same
ones for all i, so a version whose q lies nowhere above another's never again has the higher risk
and can be forgotten. What is left, usually one or two vectors a record, gives the largest risk of
all versions exactly, at a cost that does not depend on the length of the history.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from pg_mdistinct.core.arrays import FloatArray, IntArray, Ragged, different
from pg_mdistinct.core.compiled import kernel, kernel_part
from pg_mdistinct.core.history import History
from pg_mdistinct.core.model import UpdateModel
from pg_mdistinct.core.side_by_side import Breathe, side_by_side
from pg_mdistinct.core.snapshot import Snapshot

SAME = 1e-14

RECORDS_AT_ONCE = 25_000
"""Learned between two looks at whether to go on."""

Progress = Callable[[str, float], None]

_ODD = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(32)


@dataclass(frozen=True)
class States:
    """Each with k candidates in a last version: α, k numbers, and the q that are kept.

    ``kept`` counts the q of each; ``belief`` and ``past`` hold the numbers, one after another.
    """

    candidates: IntArray
    kept: IntArray
    belief: FloatArray
    past: FloatArray

    def __len__(self) -> int:
        return len(self.candidates)

    @staticmethod
    def none() -> States:
        """Return no states."""
        nothing = np.empty(0, dtype=np.int64)
        return States(nothing, nothing, np.empty(0), np.empty(0))

    @property
    def belief_start(self) -> IntArray:
        """Return where each α begins, and where the last one ends."""
        return _starts(self.candidates)

    @property
    def past_start(self) -> IntArray:
        """Return where the q of each begin, and where the last ones end."""
        return _starts(self.candidates * self.kept)

    @property
    def largest_risk(self) -> FloatArray:
        """Return the largest risk of any version in each state."""
        risk = np.zeros(len(self))
        owner = np.repeat(np.arange(len(self)), self.kept)
        size = self.candidates[owner]
        belief = Ragged(self.belief_start, np.arange(len(self.belief))).take(owner).items
        if len(owner):
            own = np.add.reduceat(self.belief[belief] * self.past, _starts(size)[:-1])
            np.maximum.at(risk, owner, own)
        return risk

    def take(self, rows: IntArray) -> States:
        """Return some states."""
        beliefs = Ragged(self.belief_start, np.arange(len(self.belief))).item_index(rows)
        pasts = Ragged(self.past_start, np.arange(len(self.past))).item_index(rows)
        return States(
            self.candidates[rows], self.kept[rows], self.belief[beliefs], self.past[pasts]
        )

    def distinct(self) -> Knowledge:
        """Return the states that differ, and for each which of them it is."""
        first = np.empty(len(self), dtype=np.int64)
        slots = np.full(1 << max(2 * len(self) - 1, 1).bit_length(), -1, dtype=np.int32)
        _find_equal(
            self.candidates,
            self.kept,
            self.belief_start,
            self.belief.view(np.uint64),
            self.past_start,
            self.past.view(np.uint64),
            slots,
            first,
        )
        own = first == np.arange(len(self))
        return Knowledge((np.cumsum(own) - 1)[first], self.take(np.flatnonzero(own)))


@dataclass(frozen=True)
class Knowledge:
    """What is known of some records: the state of each, -1 for one that was never published.

    Many records share a state.
    """

    state: IntArray
    states: States

    def __len__(self) -> int:
        return len(self.state)

    @staticmethod
    def nothing(records: int) -> Knowledge:
        """Return what is known of records that were never published."""
        return Knowledge(np.full(records, -1, dtype=np.int64), States.none())

    @staticmethod
    def join(parts: Sequence[Knowledge]) -> Knowledge:
        """Put the records of several parts one after another."""
        first = _starts(np.array([len(part.states) for part in parts], dtype=np.int64))
        moved = [
            np.where(part.state < 0, -1, part.state + start)
            for part, start in zip(parts, first.tolist(), strict=False)
        ]
        states = States(
            np.concatenate([part.states.candidates for part in parts]),
            np.concatenate([part.states.kept for part in parts]),
            np.concatenate([part.states.belief for part in parts]),
            np.concatenate([part.states.past for part in parts]),
        )
        return Knowledge(np.concatenate(moved), states)

    @property
    def candidates(self) -> IntArray:
        """Return the number of candidates in each record's last version, 0 if there is none."""
        return np.append(self.states.candidates, 0)[self.state]

    @property
    def kept(self) -> IntArray:
        """Return the number of q that are kept of each record."""
        return np.append(self.states.kept, 0)[self.state]

    @property
    def largest_risk(self) -> FloatArray:
        """Return the largest risk of each record's versions."""
        return np.append(self.states.largest_risk, 0.0)[self.state]

    def take(self, records: IntArray) -> Knowledge:
        """Return what is known of some records; -1 stands for one that is new."""
        return Knowledge(np.append(self.state, -1)[records], self.states)

    def compact(self) -> Knowledge:
        """Return the same with every state once, and none that no record has."""
        used = np.zeros(len(self.states) + 1, dtype=np.bool_)
        used[self.state] = True
        rows = np.flatnonzero(used[:-1])
        shared = self.states.take(rows).distinct()
        state = np.full(len(self.states) + 1, -1, dtype=np.int64)
        state[rows] = shared.state
        return Knowledge(state[self.state], shared.states)


def _starts(lengths: IntArray) -> IntArray:
    return np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)


def learn(
    before: Knowledge,
    snapshot: Snapshot,
    candidates: Ragged,
    group: IntArray,
    model: UpdateModel,
    progress: Progress = lambda phase, share: None,
) -> tuple[Knowledge, FloatArray]:
    """Add a release to what is known; return that, and each record's largest risk.

    ``before`` has a row for every record of the snapshot. The release, published or only
    planned, is given by the candidates of its groups and the group of each record.
    """
    if not len(snapshot):
        return before, np.empty(0)
    gap = np.maximum(snapshot.gap, 1)
    steps = different(gap)
    power = np.stack([model.power(int(k)) for k in steps])
    step = np.searchsorted(steps, gap)
    old_rows = snapshot.last_candidates.lengths
    assert np.array_equal(
        before.candidates,
        np.where(snapshot.gap > 0, np.append(old_rows, 0)[snapshot.last_group], 0),
    ), "knowledge and last versions belong together"
    states = before.states
    starts = states.belief_start, states.past_start
    risk = np.empty(len(snapshot))
    sizes, had = candidates.lengths, before.kept

    def learn_some(here: slice, _: Breathe) -> Knowledge:
        size = sizes[group[here]]
        room = size * (had[here] + 1)
        kept = np.empty(len(size), dtype=np.int64)
        belief = np.empty(int(size.sum()))
        past = np.empty(int(room.sum()))
        _learn(
            before.state[here],
            states.kept,
            *starts,
            states.belief,
            states.past,
            snapshot.last_candidates.offsets,
            snapshot.last_candidates.items,
            snapshot.last_group[here],
            snapshot.value[here],
            step[here],
            power,
            candidates.offsets,
            candidates.items,
            group[here],
            kept,
            risk[here],
            belief,
            past,
        )
        return States(size, kept, belief, past[: int((size * kept).sum())]).distinct()

    starts_of_parts = range(0, len(snapshot), RECORDS_AT_ONCE)
    parts = [slice(first, first + RECORDS_AT_ONCE) for first in starts_of_parts]
    learned = side_by_side(
        learn_some, parts, [RECORDS_AT_ONCE] * len(parts), lambda share: progress("learn", share)
    )
    return Knowledge.join(learned).compact(), risk


@dataclass(frozen=True)
class Recalled:
    """What is known of every record after a history, its largest risk, and the largest ever."""

    known: Knowledge
    risk: FloatArray
    largest_ever: float


def recall(
    history: History, model: UpdateModel, progress: Progress = lambda phase, share: None
) -> Recalled:
    """Learn a whole history again, release by release.

    Records are numbered as in the history, which must have versions of all of them.
    """
    records = int(history.record.max(initial=-1)) + 1
    known, risk, largest_ever = Knowledge.nothing(records), np.zeros(records), 0.0
    last = np.full(records, -1)
    for release in np.unique(history.version_release):
        versions = np.flatnonzero(history.version_release == release)
        who = history.record[versions]
        before = last[who]
        snapshot = Snapshot(
            value=history.value[versions],
            qi=(),
            last_group=np.where(before >= 0, history.group[before], -1),
            gap=np.where(before >= 0, release - history.version_release[before], 0),
            last_candidates=history.rows,
            last_value=np.where(before >= 0, history.value[before], -1),
        )
        learned, risk[who] = learn(
            known.take(who), snapshot, history.rows, history.group[versions], model, progress
        )
        place = np.arange(records)
        place[who] = records + np.arange(len(who))
        known = Knowledge.join([known, learned]).take(place).compact()
        last[who] = versions
        largest_ever = max(largest_ever, float(risk[who].max()))
    return Recalled(known, risk, largest_ever)


@kernel(nogil=True)
def _learn(  # type: ignore[no-untyped-def]
    state,
    old_kept,
    belief_start,
    past_start,
    old_belief,
    old_past,
    old_offsets,
    old_values,
    old_group,
    value,
    step,
    power,
    offsets,
    values,
    group,
    kept,
    risk,
    belief,
    past,
):
    """Go through the records one by one, appending to ``belief`` and ``past``.

    Places in the arrays are counted out: making a slice costs more than what is done with it.
    """
    at, past_at = 0, 0
    for record in range(len(group)):
        known = state[record]
        own = offsets[group[record]]
        size = offsets[group[record] + 1] - own
        pasts = 0
        if known >= 0:
            pasts = old_kept[known]
            _step(
                old_belief,
                belief_start[known],
                old_past,
                past_start[known],
                pasts,
                old_values,
                old_offsets[old_group[record]],
                belief_start[known + 1] - belief_start[known],
                values,
                own,
                size,
                power,
                step[record],
                belief,
                at,
                past,
                past_at,
            )
        else:
            for node in range(size):
                belief[at + node] = 1.0 / size
        for node in range(size):
            mine = values[own + node] == value[record]
            past[past_at + pasts * size + node] = 1.0 if mine else 0.0
        kept[record] = _keep_undominated(past, past_at, pasts + 1, size)
        risk[record] = 0.0
        for i in range(kept[record]):
            guess = 0.0
            for node in range(size):
                guess += belief[at + node] * past[past_at + i * size + node]
            risk[record] = max(risk[record], guess)
        at += size
        past_at += size * kept[record]


@kernel(nogil=True)
def _find_equal(candidates, kept, belief_start, belief, past_start, past, slots, first):  # type: ignore[no-untyped-def]
    """Find the first state that equals each one, bit by bit."""
    mask = len(slots) - 1
    for state in range(len(candidates)):
        mixed = np.uint64(candidates[state])
        for i in range(belief_start[state], belief_start[state + 1]):
            mixed = (mixed ^ belief[i]) * _ODD
            mixed ^= mixed >> _SHIFT
        for i in range(past_start[state], past_start[state + 1]):
            mixed = (mixed ^ past[i]) * _ODD
            mixed ^= mixed >> _SHIFT
        slot = np.int64(mixed & np.uint64(mask))
        while slots[slot] >= 0:
            there = slots[slot]
            if (
                candidates[there] == candidates[state]
                and kept[there] == kept[state]
                and _equal(belief, belief_start[there], belief_start[state], candidates[state])
                and _equal(
                    past, past_start[there], past_start[state], candidates[state] * kept[state]
                )
            ):
                break
            slot = (slot + 1) & mask
        if slots[slot] < 0:
            slots[slot] = state
        first[state] = slots[slot]


@kernel_part
def _equal(numbers, start, other, count):  # type: ignore[no-untyped-def]
    i = 0
    while i < count and numbers[start + i] == numbers[other + i]:
        i += 1
    return i == count


@kernel_part
def _step(  # type: ignore[no-untyped-def]
    old_belief,
    old_at,
    old_past,
    old_past_at,
    pasts,
    old_values,
    old_first,
    old_size,
    values,
    first,
    size,
    power,
    step,
    belief,
    at,
    past,
    past_at,
):
    """Follow the updates from one version to the next."""
    total = 0.0
    for node in range(size):
        arriving = 0.0
        for i in range(pasts):
            past[past_at + i * size + node] = 0.0
        for before in range(old_size):
            chance = power[step, old_values[old_first + before], values[first + node]]
            path = old_belief[old_at + before] * chance
            if path == 0.0:
                continue
            arriving += path
            for i in range(pasts):
                past[past_at + i * size + node] += (
                    path * old_past[old_past_at + i * old_size + before]
                )
        if arriving > 0:
            for i in range(pasts):
                past[past_at + i * size + node] /= arriving
        belief[at + node] = arriving
        total += arriving
    if total > 0:
        for node in range(size):
            belief[at + node] /= total


@kernel_part
def _keep_undominated(vectors, at, count, size):  # type: ignore[no-untyped-def]
    """Move the vectors that lie somewhere above all others to the front; return their number."""
    kept = 0
    for i in range(count):
        needed = True
        for j in range(count):
            other = j if j >= i else -1
            if j < kept:
                other = j
            if other < 0 or other == i:
                continue
            above, equal = True, True
            for node in range(size):
                theirs, mine = vectors[at + other * size + node], vectors[at + i * size + node]
                above = above and theirs >= mine - SAME
                equal = equal and abs(theirs - mine) <= SAME
            if above and (not equal or other < kept):
                needed = False
                break
        if needed:
            for node in range(size):
                vectors[at + kept * size + node] = vectors[at + i * size + node]
            kept += 1
    return kept
