"""Keeps what the adversary knows after the latest release, for the next one to add to.

It could be computed from the history, and is when the update model has changed; keeping it makes a
publication cost the same however long the history is.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from pg_mdistinct.core import errors
from pg_mdistinct.core.arrays import IntArray
from pg_mdistinct.core.errors import MdistinctError
from pg_mdistinct.core.history import History
from pg_mdistinct.core.knowledge import Knowledge, recall
from pg_mdistinct.core.model import UpdateModel
from pg_mdistinct.server.catalog import Dataset
from pg_mdistinct.server.errors import counted
from pg_mdistinct.server.history import read_history
from pg_mdistinct.server.plpython import Plpy, run
from pg_mdistinct.server.relations import relations_of

RECORDS_A_ROW = 100_000


@dataclass(frozen=True)
class KnownBefore:
    """What was known before a publication: of the previous release, by seq, and of the snapshot.

    ``of_snapshot`` has a row for every record of the new snapshot; ``leaving`` are the seq of the
    previous release's records that the new one has not got; ``away_risk`` is the largest risk of
    records that are absent from both.
    """

    previous: Knowledge
    of_snapshot: Knowledge
    leaving: IntArray
    away_risk: float

    @property
    def absent_risk(self) -> float:
        """Return the largest risk of all records that the new release has not got."""
        left = self.previous.take(self.leaving).largest_risk
        return max(self.away_risk, float(left.max(initial=0.0)))


def before(
    plpy: Plpy, dataset: Dataset, model: UpdateModel, table: str, last_seq: IntArray
) -> KnownBefore:
    """Return what was known before; ``last_seq`` is each record's place in the previous release."""
    if not _is_current(plpy, dataset, model):
        _learn_again(plpy, dataset, model)
    previous = _read(plpy, dataset)
    absent = relations_of(plpy, dataset.name).absent
    back = plpy.execute(
        f"SELECT v.seq, a.knowledge FROM {table} AS v"
        f" JOIN {absent} AS a ON a.record_id = v.record_id"
    )
    row = last_seq.copy()
    row[[r["seq"] for r in back]] = len(previous) + np.arange(len(back))
    everybody = Knowledge.join([previous, *(_unpack_one(r["knowledge"]) for r in back)])
    away = plpy.execute(
        f"SELECT pg_catalog.max(a.risk) AS risk FROM {absent} AS a WHERE NOT EXISTS"
        f" (SELECT FROM {table} AS v WHERE v.record_id = a.record_id)"
    )[0]["risk"]
    leaving = np.setdiff1d(np.arange(len(previous)), last_seq)
    return KnownBefore(previous, everybody.take(row), leaving, away or 0.0)


def store(plpy: Plpy, dataset: Dataset, model: UpdateModel, known: Knowledge) -> None:
    """Replace what is kept by what is known of the records of the new release, in their order."""
    table = relations_of(plpy, dataset.name).knowledge
    plpy.execute(f"DELETE FROM {table}")
    for first in range(0, max(len(known), 1), RECORDS_A_ROW):
        part = known.take(np.arange(first, min(first + RECORDS_A_ROW, len(known))))
        run(
            plpy,
            f"INSERT INTO {table} (first, model, candidates, kept, belief, past)"
            " VALUES ($1, $2, $3, $4, $5, $6)",
            ["int4", *["bytea"] * 5],
            [first, _fingerprint(model), *_pack(part)],
        )


def packed_rows(known: Knowledge) -> list[bytes]:
    """Pack what is known record by record, for the table of the absent."""
    parts = (known.take(np.array([i])) for i in range(len(known)))
    return [b"".join(_pack(part)) for part in parts]


def _is_current(plpy: Plpy, dataset: Dataset, model: UpdateModel) -> bool:
    """Tell whether what is kept was learned under this model."""
    table = relations_of(plpy, dataset.name).knowledge
    rows = plpy.execute(f"SELECT k.model FROM {table} AS k")
    return dataset.last_release == 0 or {row["model"] for row in rows} == {_fingerprint(model)}


def _learn_again(plpy: Plpy, dataset: Dataset, model: UpdateModel) -> None:
    """Go through the whole history under a model that has changed."""
    stored = read_history(plpy, dataset, len(model))
    history = stored.history
    _refuse_contradiction(dataset, history, model)
    learned = recall(history, model)
    last = np.flatnonzero(np.append(history.is_first[1:], True)[: len(history.record)])
    in_latest = history.version_release[last] == dataset.last_release
    present = last[in_latest]
    present = present[np.argsort(stored.seq[present])]
    store(plpy, dataset, model, learned.known.take(history.record[present]))
    away = history.record[last[~in_latest]]
    run(
        plpy,
        f"UPDATE {relations_of(plpy, dataset.name).absent} AS a"
        " SET knowledge = t.knowledge, risk = t.risk"
        " FROM unnest($1, $2, $3) AS t (record_id, knowledge, risk)"
        " WHERE t.record_id = a.record_id",
        ["text[]", "bytea[]", "float8[]"],
        [
            [stored.record_ids[record] for record in away.tolist()],
            packed_rows(learned.known.take(away)),
            learned.risk[away].tolist(),
        ],
    )


def _refuse_contradiction(dataset: Dataset, history: History, model: UpdateModel) -> None:
    """Refuse a model under which what was published could not have happened.

    All risks would be 0 then, and say nothing.
    """
    later = np.flatnonzero(~history.is_first)
    gap = history.gap[later]
    impossible = 0
    for steps in np.unique(gap).tolist():
        versions = later[gap == steps]
        legal = model.reach(steps)[history.value[versions - 1], history.value[versions]]
        impossible += int((~legal).sum())
    if impossible:
        raise MdistinctError(
            f'the update model of dataset "{dataset.name}" was changed: it calls '
            f"{counted(impossible, 'update')} impossible that past releases contain",
            hint="Allow these updates again; an update may be made unlikely, but not undone.",
            sqlstate=errors.IMPOSSIBLE_UPDATE,
        )


def _read(plpy: Plpy, dataset: Dataset) -> Knowledge:
    table = relations_of(plpy, dataset.name).knowledge
    rows = plpy.execute(
        f"SELECT k.candidates, k.kept, k.belief, k.past FROM {table} AS k ORDER BY k.first"
    )
    parts = [_unpack(row["candidates"], row["kept"], row["belief"], row["past"]) for row in rows]
    return Knowledge.join([Knowledge.nothing(0), *parts])


def _pack(known: Knowledge) -> tuple[bytes, bytes, bytes, bytes]:
    return (
        known.candidates.astype("<i4").tobytes(),
        known.kept.astype("<i4").tobytes(),
        known.belief.astype("<f8").tobytes(),
        known.past.astype("<f8").tobytes(),
    )


def _unpack(candidates: bytes, kept: bytes, belief: bytes, past: bytes) -> Knowledge:
    return Knowledge(
        np.frombuffer(candidates, dtype="<i4").astype(np.int64),
        np.frombuffer(kept, dtype="<i4").astype(np.int64),
        np.frombuffer(belief, dtype="<f8").astype(np.float64),
        np.frombuffer(past, dtype="<f8").astype(np.float64),
    )


def _unpack_one(packed: bytes) -> Knowledge:
    beliefs_end = 8 + 8 * int.from_bytes(packed[:4], "little")
    return _unpack(packed[:4], packed[4:8], packed[8:beliefs_end], packed[beliefs_end:])


def _fingerprint(model: UpdateModel) -> bytes:
    return hashlib.sha256(model.transition.astype("<f8").tobytes()).digest()
