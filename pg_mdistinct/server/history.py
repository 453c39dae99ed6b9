"""Reads the whole release history of a dataset into arrays."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pg_mdistinct.core import errors
from pg_mdistinct.core.arrays import BoolArray, IntArray, Ragged, places_of
from pg_mdistinct.core.errors import MdistinctError
from pg_mdistinct.core.history import History
from pg_mdistinct.core.publication import Release
from pg_mdistinct.core.texts import TextIndex, Texts
from pg_mdistinct.core.update_graph import Progress
from pg_mdistinct.server.catalog import Dataset
from pg_mdistinct.server.packed import Integers, gather_arrays, gather_texts, ragged, separated
from pg_mdistinct.server.plpython import Plpy, run
from pg_mdistinct.server.relations import relations_of

NOBODY: IntArray = np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class PlannedRelease:
    """A release that is not published yet: the table of its snapshot, and the plan."""

    table: str
    release: Release


@dataclass(frozen=True)
class StoredHistory:
    """A history, the identifiers of its records, and each version's seq within its release."""

    history: History
    record_ids: list[str]
    seq: IntArray

    def record_id(self, version: int) -> str:
        """Return the identifier of the record that a version belongs to."""
        return self.record_ids[int(self.history.record[version])]


def read_history(
    plpy: Plpy,
    dataset: Dataset,
    values: int,
    *,
    until: int | None = None,
    record_id: str | None = None,
    planned: PlannedRelease | None = None,
    progress: Progress = lambda phase, share: None,
) -> StoredHistory:
    """Return what was published of a dataset with that many values, and who was where.

    All of it, or only up to some release, or only one record's; or with a release that is planned.
    """
    groups = _read_groups(plpy, dataset, values)
    last = dataset.last_release if until is None else until
    parts = []
    for n in range(1, last + 1):
        progress("read", (n - 1) / last)
        parts.append(_read_versions(plpy, dataset, n, record_id))
    group, published = _find(
        groups.release,
        groups.gid,
        np.repeat(np.arange(1, last + 1), [len(part.seq) for part in parts]),
        np.concatenate([NOBODY, *(part.gid for part in parts)]),
    )
    _expect(dataset, published, "records are in groups that were not published")
    if planned is not None:
        parts.append(_staged_versions(plpy, planned.table))
        group = np.append(group, len(groups.release) + planned.release.group[parts[-1].seq])
        groups = _with_planned(groups, dataset.last_release + 1, planned.release)
    record, record_ids = _numbered(parts)
    value = np.concatenate([NOBODY, *(part.value for part in parts)])
    seq = np.concatenate([NOBODY, *(part.seq for part in parts)])
    # Versions come release by release: sorting them by record alone keeps that order.
    order = places_of(record, len(record_ids)).items
    history = History(
        groups.release,
        groups.gid,
        groups.rows,
        groups.counterfeits,
        record[order],
        group[order],
        value[order],
    )
    return StoredHistory(history, record_ids, seq[order])


@dataclass(frozen=True)
class _Versions:
    """The versions of one release, in any order; identifiers have a zero byte between any two."""

    record_ids: bytes
    seq: IntArray
    value: IntArray
    gid: IntArray


def _numbered(parts: Sequence[_Versions]) -> tuple[IntArray, list[str]]:
    """Number the records as they come; return each version's number, and their identifiers."""
    versions = sum(len(part.seq) for part in parts)
    packed = b"\0".join(part.record_ids for part in parts if len(part.seq))
    texts = Texts.separated(packed, versions)
    rows, record = TextIndex(texts, secrets.randbits(64)).different()
    return record, texts.take(rows).decoded()


def _read_versions(plpy: Plpy, dataset: Dataset, release: int, record_id: str | None) -> _Versions:
    """Read versions and placement apart and put them together here: two scans and no join."""
    names = relations_of(plpy, dataset.name)
    found = _staged_versions(plpy, names.versions, f"v.release = {release}", record_id)
    placed = Integers(seq="p.seq", gid="p.gid")
    chosen = "" if record_id is None else " AND p.seq = ANY ($1)"
    row = run(
        plpy,
        f"SELECT {placed.select} FROM {names.placed} AS p WHERE p.release = {release}{chosen}",
        [] if record_id is None else ["int4[]"],
        [] if record_id is None else [found.seq.tolist()],
    )[0]
    places = placed.read(row)
    last = max(int(places["seq"].max(initial=-1)), int(found.seq.max(initial=-1)))
    gid = np.zeros(last + 1, dtype=np.int64)
    gid[places["seq"]] = places["gid"]
    return _Versions(found.record_ids, found.seq, found.value, gid[found.seq])


def _staged_versions(
    plpy: Plpy, table: str, condition: str = "true", record_id: str | None = None
) -> _Versions:
    """Read a table of versions whose groups are not known here."""
    own = Integers(seq="v.seq", value="v.value")
    row = run(
        plpy,
        f"SELECT {gather_texts('v.record_id')} AS record_ids, {own.select}"
        f" FROM {table} AS v WHERE {condition} AND ($1 IS NULL OR v.record_id = $1)",
        ["text"],
        [record_id],
    )[0]
    columns = own.read(row)
    return _Versions(separated(row["record_ids"]), columns["seq"], columns["value"], NOBODY)


@dataclass(frozen=True)
class _Groups:
    """All groups, sorted by release and gid."""

    release: IntArray
    gid: IntArray
    counterfeits: IntArray
    rows: Ragged


def _with_planned(groups: _Groups, number: int, planned: Release) -> _Groups:
    """Append the groups of a release that is not published yet."""
    count = len(planned.counterfeits)
    lengths = np.concatenate([groups.rows.lengths, planned.candidates.lengths])
    return _Groups(
        np.concatenate([groups.release, np.full(count, number)]),
        np.concatenate([groups.gid, np.arange(1, count + 1)]),
        np.concatenate([groups.counterfeits, planned.counterfeits]),
        Ragged(
            np.concatenate(([0], np.cumsum(lengths))).astype(np.int64),
            np.concatenate([groups.rows.items, planned.candidates.items]),
        ),
    )


def _read_groups(plpy: Plpy, dataset: Dataset, values: int) -> _Groups:
    groups = relations_of(plpy, dataset.name).groups
    packed = Integers(
        release="g.release",
        gid="g.gid",
        counterfeits="g.counterfeits",
        size="pg_catalog.cardinality(g.candidates)",
    )
    row = plpy.execute(
        f"SELECT {packed.select}, {gather_arrays('candidates', 'g.candidates')} FROM {groups} AS g"
    )[0]
    read = packed.read(row)
    order = np.lexsort((read["gid"], read["release"]))
    candidates = ragged(row, "candidates", read["size"]).take(order)
    known = (candidates.items >= 0) & (candidates.items < values)
    _expect(dataset, known, "rows have values that nobody knows")
    return _Groups(
        read["release"][order], read["gid"][order], read["counterfeits"][order], candidates
    )


def _find(
    release: IntArray, gid: IntArray, wanted_release: IntArray, wanted_gid: IntArray
) -> tuple[IntArray, BoolArray]:
    """Return the rows of some groups among all of them, sorted, and whether they are there."""
    keys = release << 32 | gid
    wanted = wanted_release << 32 | wanted_gid
    if not len(keys):
        return np.zeros(len(wanted), dtype=np.int64), np.zeros(len(wanted), dtype=np.bool_)
    rows = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return rows, keys[rows] == wanted


def _expect(dataset: Dataset, holds: BoolArray, trouble: str) -> None:
    if not holds.all():
        raise MdistinctError(
            f'the history of dataset "{dataset.name}" is damaged: {int((~holds).sum())} {trouble}',
            hint="Restore the tables in schema mdistinct_data from a backup.",
            sqlstate=errors.INCONSISTENT_HISTORY,
        )
