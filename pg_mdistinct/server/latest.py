"""The latest release as arrays: all of it that the next publication needs.

It could be read from the history, and is when the update model has changed; keeping it packed makes
a publication cost the same however long the history is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from pg_mdistinct.core.arrays import IntArray, Ragged
from pg_mdistinct.core.knowledge import Knowledge, States
from pg_mdistinct.core.model import UpdateModel
from pg_mdistinct.core.texts import Texts
from pg_mdistinct.server.catalog import Dataset
from pg_mdistinct.server.plpython import Plpy, Row, run
from pg_mdistinct.server.relations import LATEST, relations_of

ROWS_AT_ONCE = 100_000
"""Records, and groups, that one row of the table keeps."""


@dataclass(frozen=True)
class Latest:
    """Who was in a release, in its order: where, with which value, and what is known of him.

    ``group`` is a row of ``candidates``, which has the groups in the order of their gids.
    """

    record_ids: Texts
    group: IntArray
    value: IntArray
    candidates: Ragged
    known: Knowledge

    def __len__(self) -> int:
        return len(self.group)


def read(plpy: Plpy, dataset: Dataset) -> Latest:
    """Return the latest release; nobody is there before the first."""
    rows = list(
        plpy.execute(f"SELECT * FROM {relations_of(plpy, dataset.name).knowledge} ORDER BY first")
    )
    group = _integers(rows, "gid") - 1
    # There may be more groups than records: such rows have no identifiers.
    ids = b"\0".join(row["record_ids"] for row in rows if row["gid"])
    parts = [Knowledge(_integers([row], "state"), _states(row)) for row in rows]
    offsets = np.concatenate(([0], np.cumsum(_integers(rows, "group_sizes"))))
    return Latest(
        Texts.separated(ids, len(group)),
        group,
        _integers(rows, "value"),
        Ragged(offsets.astype(np.int64), _integers(rows, "group_values")),
        Knowledge.join([Knowledge.nothing(0), *parts]),
    )


def is_current(plpy: Plpy, dataset: Dataset, model: UpdateModel) -> bool:
    """Tell whether what is kept was learned under this model."""
    table = relations_of(plpy, dataset.name).knowledge
    rows = plpy.execute(f"SELECT k.model FROM {table} AS k")
    return dataset.last_release == 0 or {row["model"] for row in rows} == {_fingerprint(model)}


def store(plpy: Plpy, dataset: Dataset, model: UpdateModel, latest: Latest) -> None:
    """Replace what is kept."""
    table = relations_of(plpy, dataset.name).knowledge
    plpy.execute(f"DELETE FROM {table}")
    columns = ", ".join(LATEST)
    parameters = ", ".join(f"${i}" for i in range(2, len(LATEST) + 2))
    for first in range(0, max(len(latest), len(latest.candidates), 1), ROWS_AT_ONCE):
        run(
            plpy,
            f"INSERT INTO {table} (first, {columns}) VALUES ($1, {parameters})",
            ["int4", *["bytea"] * len(LATEST)],
            [first, _fingerprint(model), *_packed_part(latest, first)],
        )


def _packed_part(latest: Latest, first: int) -> Iterator[bytes]:
    """Yield the columns of one row of the table."""
    records = np.arange(first, max(min(first + ROWS_AT_ONCE, len(latest)), first))
    offsets = latest.candidates.offsets[first : first + ROWS_AT_ONCE + 1]
    values = latest.candidates.items[offsets[0] : offsets[-1]] if len(offsets) else offsets
    known = latest.known.take(records).compact()
    yield latest.record_ids.take(records).joined()
    for numbers in (latest.group[records] + 1, latest.value[records], np.diff(offsets), values):
        yield _packed_integers(numbers)
    yield _packed_integers(known.state)
    yield from _packed(known.states)


def packed_one_by_one(states: States) -> list[bytes]:
    """Pack each state alone, for the table of the absent."""
    beliefs, pasts = states.belief_start.tolist(), states.past_start.tolist()
    candidates, kept, belief, past = _packed(states)
    return [
        candidates[4 * i : 4 * i + 4]
        + kept[4 * i : 4 * i + 4]
        + belief[8 * beliefs[i] : 8 * beliefs[i + 1]]
        + past[8 * pasts[i] : 8 * pasts[i + 1]]
        for i in range(len(states))
    ]


def unpacked(packed: Sequence[bytes]) -> Knowledge:
    """Return what is known of records whose states were packed one by one."""
    heads = np.frombuffer(b"".join(one[:8] for one in packed), dtype="<i4").reshape(-1, 2)
    ends = [8 + 8 * candidates for candidates in heads[:, 0].tolist()]
    states = States(
        heads[:, 0].astype(np.int64),
        heads[:, 1].astype(np.int64),
        _floats(b"".join(one[8:end] for one, end in zip(packed, ends, strict=True))),
        _floats(b"".join(one[end:] for one, end in zip(packed, ends, strict=True))),
    )
    return Knowledge(np.arange(len(packed)), states)


def _packed(states: States) -> tuple[bytes, bytes, bytes, bytes]:
    return (
        _packed_integers(states.candidates),
        _packed_integers(states.kept),
        states.belief.astype("<f8").tobytes(),
        states.past.astype("<f8").tobytes(),
    )


def _packed_integers(numbers: IntArray) -> bytes:
    return numbers.astype("<i4").tobytes()


def _states(row: Row) -> States:
    return States(
        _integers([row], "candidates"),
        _integers([row], "kept"),
        _floats(row["belief"]),
        _floats(row["past"]),
    )


def _integers(rows: Sequence[Row], column: str) -> IntArray:
    packed = b"".join(row[column] for row in rows)
    return np.frombuffer(packed, dtype="<i4").astype(np.int64)


def _floats(packed: bytes) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.frombuffer(packed, dtype="<f8").astype(np.float64)


def _fingerprint(model: UpdateModel) -> bytes:
    return hashlib.sha256(model.transition.astype("<f8").tobytes()).digest()
