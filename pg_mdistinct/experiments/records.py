"""Who was where: releases of the workload gathered into a history that can be attacked."""

from __future__ import annotations

import numpy as np

from pg_mdistinct.core.arrays import IntArray, Ragged
from pg_mdistinct.core.history import History, sorted_history
from pg_mdistinct.core.model import UpdateModel
from pg_mdistinct.core.snapshot import QiColumn
from pg_mdistinct.workload import QI_COLUMNS, SnapshotArray, Workload


class Recorder:
    """Keeps releases one after another, and builds the history of all of them."""

    def __init__(self) -> None:
        self._rows: list[Ragged] = []
        self._counterfeits: list[IntArray] = []
        self._record: list[IntArray] = []
        self._group: list[IntArray] = []
        self._value: list[IntArray] = []

    def add(
        self,
        record: IntArray,
        group: IntArray,
        value: IntArray,
        rows: Ragged,
        counterfeits: IntArray,
    ) -> None:
        """Add a release: per record its group and value, per group its rows."""
        before = sum(map(len, self._rows))
        self._rows.append(rows)
        self._counterfeits.append(counterfeits)
        self._record.append(record)
        self._group.append(before + group)
        self._value.append(value)

    def history(self) -> History:
        """Return all that was published."""
        sizes = [len(rows) for rows in self._rows]
        lengths = np.concatenate([rows.lengths for rows in self._rows])
        return sorted_history(
            release=np.repeat(np.arange(1, len(sizes) + 1), sizes),
            gid=np.concatenate([np.arange(1, size + 1) for size in sizes]),
            rows=Ragged(
                np.concatenate(([0], np.cumsum(lengths))).astype(np.int64),
                np.concatenate([rows.items for rows in self._rows]),
            ),
            counterfeits=np.concatenate(self._counterfeits),
            record=np.concatenate(self._record),
            group=np.concatenate(self._group),
            value=np.concatenate(self._value),
        )


def workload_model(workload: Workload) -> UpdateModel:
    """Return the update model of a workload as the core wants it."""
    labels, transition = workload.model()
    return UpdateModel(transition, np.ones(len(labels), dtype=np.bool_), labels)


def qi_columns(people: SnapshotArray) -> tuple[QiColumn, ...]:
    """Return the quasi-identifiers of a snapshot of the workload."""
    columns = []
    for name in QI_COLUMNS:
        values, code = np.unique(people[name], return_inverse=True)
        columns.append(QiColumn(code.astype(np.int64), values.astype(np.float64), is_set=False))
    return tuple(columns)
