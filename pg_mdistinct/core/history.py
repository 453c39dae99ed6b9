"""What was published, and who was where: all that an adversary or an auditor starts from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pg_mdistinct.core.arrays import BoolArray, IntArray, Ragged


@dataclass(frozen=True)
class History:
    """Releases as arrays: one row a group, and one row a version of a record.

    Versions are sorted by record, then by release. ``rows`` are the sensitive values of each
    group, counterfeits included and repeated values too if there are any. ``value`` is the
    version's own value, -1 where nobody told.
    """

    release: IntArray
    gid: IntArray
    rows: Ragged
    counterfeits: IntArray
    record: IntArray
    group: IntArray
    value: IntArray

    @property
    def version_release(self) -> IntArray:
        """Return the release of every version."""
        return self.release[self.group]

    @property
    def gap(self) -> IntArray:
        """Return the releases since a record's version before, 0 for its first one."""
        steps = np.diff(self.version_release, prepend=0)
        return np.where(self.is_first, 0, steps)

    @property
    def is_first(self) -> BoolArray:
        """Tell which versions are the first of their record."""
        return np.not_equal(np.diff(self.record, prepend=-1), 0)

    def until(self, release: int) -> History:
        """Return the history as it was after some release."""
        early = self.version_release <= release
        return History(
            self.release,
            self.gid,
            self.rows,
            self.counterfeits,
            self.record[early],
            self.group[early],
            self.value[early],
        )


def sorted_history(
    release: IntArray,
    gid: IntArray,
    rows: Ragged,
    counterfeits: IntArray,
    record: IntArray,
    group: IntArray,
    value: IntArray,
) -> History:
    """Build a history from versions in any order."""
    order = np.lexsort((release[group], record))
    return History(release, gid, rows, counterfeits, record[order], group[order], value[order])
