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

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numba import njit

from pg_mdistinct.core.arrays import FloatArray, IntArray, Ragged
from pg_mdistinct.core.history import History
from pg_mdistinct.core.model import UpdateModel
from pg_mdistinct.core.snapshot import Snapshot

SAME = 1e-14


@dataclass(frozen=True)
class Knowledge:
    """Per record, with k candidates in its last version: α, k numbers, and the q that are kept.

    ``kept`` counts the q of each record; ``belief`` and ``past`` hold the numbers, record after
    record. A record that was never published has k = 0.
    """

    candidates: IntArray
    kept: IntArray
    belief: FloatArray
    past: FloatArray

    def __len__(self) -> int:
        return len(self.candidates)

    @staticmethod
    def nothing(records: int) -> Knowledge:
        """Return what is known of records that were never published."""
        none = np.zeros(records, dtype=np.int64)
        return Knowledge(none, none, np.empty(0), np.empty(0))

    @staticmethod
    def join(parts: Sequence[Knowledge]) -> Knowledge:
        """Put the records of several parts one after another."""
        return Knowledge(
            np.concatenate([part.candidates for part in parts]),
            np.concatenate([part.kept for part in parts]),
            np.concatenate([part.belief for part in parts]),
            np.concatenate([part.past for part in parts]),
        )

    @property
    def belief_start(self) -> IntArray:
        """Return where each record's α begins, and where the last one ends."""
        return _starts(self.candidates)

    @property
    def past_start(self) -> IntArray:
        """Return where each record's q begin, and where the last ones end."""
        return _starts(self.candidates * self.kept)

    @property
    def largest_risk(self) -> FloatArray:
        """Return the largest risk of each record's versions."""
        risk = np.zeros(len(self))
        owner = np.repeat(np.arange(len(self)), self.kept)
        size = self.candidates[owner]
        belief = Ragged(self.belief_start, np.arange(len(self.belief))).take(owner).items
        if len(owner):
            own = np.add.reduceat(self.belief[belief] * self.past, _starts(size)[:-1])
            np.maximum.at(risk, owner, own)
        return risk

    def take(self, records: IntArray) -> Knowledge:
        """Return what is known of some records; -1 stands for one that is new."""
        known = records[records >= 0]
        candidates = np.append(self.candidates, 0)[records]
        kept = np.append(self.kept, 0)[records]
        beliefs = Ragged(self.belief_start, np.arange(len(self.belief))).take(known).items
        pasts = Ragged(self.past_start, np.arange(len(self.past))).take(known).items
        return Knowledge(candidates, kept, self.belief[beliefs], self.past[pasts])


def _starts(lengths: IntArray) -> IntArray:
    return np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)


def learn(
    before: Knowledge,
    snapshot: Snapshot,
    candidates: Ragged,
    group: IntArray,
    model: UpdateModel,
) -> tuple[Knowledge, FloatArray]:
    """Add a release to what is known; return that, and each record's largest risk.

    ``before`` has a row for every record of the snapshot. The release, published or only
    planned, is given by the candidates of its groups and the group of each record.
    """
    if not len(snapshot):
        return before, np.empty(0)
    gap = np.maximum(snapshot.gap, 1)
    steps = np.unique(gap)
    power = np.stack([model.power(int(k)) for k in steps])
    old_rows = snapshot.last_candidates.lengths
    assert np.array_equal(
        before.candidates,
        np.where(snapshot.gap > 0, np.append(old_rows, 0)[snapshot.last_group], 0),
    ), "knowledge and last versions belong together"
    size = candidates.lengths[group]
    kept = np.empty(len(snapshot), dtype=np.int64)
    risk = np.empty(len(snapshot))
    belief = np.empty(int(size.sum()))
    past = np.empty(int((size * (before.kept + 1)).sum()))
    _learn(
        before.candidates,
        before.kept,
        before.belief,
        before.past,
        snapshot.last_candidates.offsets,
        snapshot.last_candidates.items,
        snapshot.last_group,
        snapshot.value,
        np.searchsorted(steps, gap),
        power,
        candidates.offsets,
        candidates.items,
        group,
        kept,
        risk,
        belief,
        past,
    )
    return Knowledge(size, kept, belief, past[: int((size * kept).sum())]), risk


@dataclass(frozen=True)
class Recalled:
    """What is known of every record after a history, its largest risk, and the largest ever."""

    known: Knowledge
    risk: FloatArray
    largest_ever: float


def recall(history: History, model: UpdateModel) -> Recalled:
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
            known.take(who), snapshot, history.rows, history.group[versions], model
        )
        place = np.arange(records)
        place[who] = records + np.arange(len(who))
        known = Knowledge.join([known, learned]).take(place)
        last[who] = versions
        largest_ever = max(largest_ever, float(risk[who].max()))
    return Recalled(known, risk, largest_ever)


@njit(cache=True)
def _learn(  # type: ignore[no-untyped-def]
    old_size,
    old_kept,
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
    """Go through the records one by one, appending to ``belief`` and ``past``."""
    old_at, old_past_at, at, past_at = 0, 0, 0, 0
    for record in range(len(group)):
        old = old_size[record]
        new_values = values[offsets[group[record]] : offsets[group[record] + 1]]
        size = len(new_values)
        alpha = belief[at : at + size]
        mine = past[past_at : past_at + size * (old_kept[record] + 1)].reshape(-1, size)
        if old:
            first = old_offsets[old_group[record]]
            _step(
                old_belief[old_at : old_at + old],
                old_past[old_past_at : old_past_at + old * old_kept[record]].reshape(-1, old),
                old_values[first : first + old],
                new_values,
                power[step[record]],
                alpha,
                mine,
            )
        else:
            alpha[:] = 1.0 / size
        for node in range(size):
            mine[old_kept[record], node] = 1.0 if new_values[node] == value[record] else 0.0
        kept[record] = _keep_undominated(mine)
        risk[record] = 0.0
        for i in range(kept[record]):
            own = 0.0
            for node in range(size):
                own += alpha[node] * mine[i, node]
            risk[record] = max(risk[record], own)
        old_at += old
        old_past_at += old * old_kept[record]
        at += size
        past_at += size * kept[record]


@njit(cache=True)
def _step(old_belief, old_past, old_values, new_values, power, alpha, past):  # type: ignore[no-untyped-def]
    """Follow the updates from one version to the next."""
    total = 0.0
    for node in range(len(new_values)):
        arriving = 0.0
        past[:-1, node] = 0.0
        for before in range(len(old_values)):
            path = old_belief[before] * power[old_values[before], new_values[node]]
            arriving += path
            for i in range(len(old_past)):
                past[i, node] += path * old_past[i, before]
        if arriving > 0:
            past[:-1, node] /= arriving
        alpha[node] = arriving
        total += arriving
    if total > 0:
        alpha /= total


@njit(cache=True)
def _keep_undominated(vectors):  # type: ignore[no-untyped-def]
    """Move the vectors that lie somewhere above all others to the front; return their number."""
    kept = 0
    for i in range(len(vectors)):
        needed = True
        for j in range(len(vectors)):
            other = j if j >= i else -1
            if j < kept:
                other = j
            if other < 0 or other == i:
                continue
            above, equal = True, True
            for node in range(vectors.shape[1]):
                above = above and vectors[other, node] >= vectors[i, node] - SAME
                equal = equal and abs(vectors[other, node] - vectors[i, node]) <= SAME
            if above and (not equal or other < kept):
                needed = False
                break
        if needed:
            vectors[kept] = vectors[i]
            kept += 1
    return kept
