"""Publishes the workload with the core alone, keeping what a database would keep."""

from __future__ import annotations

import numpy as np

from pg_mdistinct.core.arrays import IntArray, Ragged
from pg_mdistinct.core.history import History
from pg_mdistinct.core.model import M_DISTINCT, UpdateModel
from pg_mdistinct.core.publication import Release, plan_release
from pg_mdistinct.core.snapshot import Snapshot
from pg_mdistinct.experiments.records import Recorder, qi_columns
from pg_mdistinct.workload import SnapshotArray


class Publisher:
    """A dataset without a database: `publish` snapshots one after another, then take `history`.

    Identifiers are small whole numbers, as in the workload: they are used as indexes.
    """

    def __init__(
        self,
        model: UpdateModel,
        m: int,
        variant: str = M_DISTINCT,
        rng: np.random.Generator | None = None,
    ) -> None:
        model.check(m, variant)
        self._model = model
        self._m = m
        self._variant = variant
        self._rng = rng or np.random.default_rng()
        self._recorder = Recorder()
        self._releases: list[Ragged] = []
        # Per identifier: release (0: never published), group and value of the last version.
        self._release = np.zeros(0, dtype=np.int64)
        self._group = np.zeros(0, dtype=np.int64)
        self._value = np.zeros(0, dtype=np.int64)

    def publish(self, people: SnapshotArray) -> Release:
        """Plan the next release and remember it."""
        ids, value = people["id"], people["occupation"]
        snapshot = self.snapshot(people)
        release = plan_release(snapshot, self._model, self._m, self._variant, self._rng)
        self._releases.append(release.candidates)
        self._recorder.add(ids, release.group, value, release.candidates, release.counterfeits)
        self._release[ids] = len(self._releases)
        self._group[ids] = release.group
        self._value[ids] = value
        return release

    def history(self) -> History:
        """Return all that was published so far."""
        return self._recorder.history()

    def snapshot(self, people: SnapshotArray) -> Snapshot:
        """Return what the next release would be planned from."""
        ids = people["id"]
        self._make_room(int(ids.max(initial=0)) + 1)
        last = self._release[ids]
        seen = last > 0
        last_group, last_candidates = self._last_groups(last, self._group[ids])
        return Snapshot(
            value=people["occupation"],
            qi=qi_columns(people),
            last_group=last_group,
            gap=np.where(seen, len(self._releases) + 1 - last, 0),
            last_candidates=last_candidates,
            last_value=np.where(seen, self._value[ids], -1),
        )

    def _last_groups(self, release: IntArray, group: IntArray) -> tuple[IntArray, Ragged]:
        """Number the groups that somebody comes from, and return their candidates."""
        of_record = np.full(len(release), -1, dtype=np.int64)
        parts = []
        count = 0
        for number in np.unique(release[release > 0]):
            members = release == number
            used, place = np.unique(group[members], return_inverse=True)
            of_record[members] = count + place
            parts.append(self._releases[number - 1].take(used))
            count += len(used)
        lengths = np.concatenate([np.zeros(0, dtype=np.int64), *(part.lengths for part in parts)])
        items = np.concatenate([np.zeros(0, dtype=np.int64), *(part.items for part in parts)])
        offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
        return of_record, Ragged(offsets, items)

    def _make_room(self, size: int) -> None:
        missing = size - len(self._release)
        if missing > 0:
            more = np.zeros(missing, dtype=np.int64)
            self._release = np.concatenate([self._release, more])
            self._group = np.concatenate([self._group, more])
            self._value = np.concatenate([self._value, more])
