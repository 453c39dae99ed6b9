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
from pg_mdistinct.server.packed import (
    SEPARATORS,
    Integers,
    elements,
    gather_arrays,
    joined_texts,
    ragged,
    texts,
)
from pg_mdistinct.server.plpython import Plpy, run
from pg_mdistinct.server.relations import relations_of

NOBODY: IntArray = np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class PlannedRelease:
    """A release that is not published yet: its records with their values, and the plan."""

    record_ids: Texts
    value: IntArray
    release: Release


@dataclass(frozen=True)
class StoredHistory:
    """A history, the identifiers of its records, and each version's place within its release."""

    history: History
    record_ids: list[str]
    place: IntArray

    def record_id(self, version: int) -> str:
        """Return the identifier of the record that a version belongs to."""
        return self.record_ids[int(self.history.record[version])]


def read_history(
    plpy: Plpy,
    dataset: Dataset,
    labels: Sequence[str],
    *,
    until: int | None = None,
    record_id: str | None = None,
    planned: PlannedRelease | None = None,
    progress: Progress = lambda phase, share: None,
) -> StoredHistory:
    """Return what was published of a dataset with these values, and who was where.

    All of it, or only up to some release, or only one record's; or with a release that is planned.
    """
    groups = _read_groups(plpy, dataset, len(labels))
    known = TextIndex(Texts.of(labels), 0)
    last = dataset.last_release if until is None else until
    parts = []
    for n in range(1, last + 1):
        progress("read", (n - 1) / last)
        parts.append(_read_versions(plpy, dataset, n, known, record_id))
    group, published = _find(
        groups.release,
        groups.gid,
        np.repeat(np.arange(1, last + 1), [len(part.value) for part in parts]),
        np.concatenate([NOBODY, *(part.gid for part in parts)]),
    )
    _expect(dataset, published, "records are in groups that were not published")
    if planned is not None:
        own, group_of = planned.value, planned.release.group
        parts.append(_Versions(planned.record_ids, np.arange(len(own)), own, group_of + 1))
        group = np.append(group, len(groups.release) + group_of)
        groups = _with_planned(groups, dataset.last_release + 1, planned.release)
    record, record_ids = _numbered(parts)
    value = np.concatenate([NOBODY, *(part.value for part in parts)])
    _expect(dataset, value >= 0, "records have values that nobody knows")
    place = np.concatenate([NOBODY, *(part.place for part in parts)])
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
    return StoredHistory(history, record_ids, place[order])


@dataclass(frozen=True)
class _Versions:
    """The versions of one release, or some of them."""

    record_ids: Texts
    place: IntArray
    value: IntArray
    gid: IntArray

    def take(self, rows: IntArray) -> _Versions:
        return _Versions(
            self.record_ids.take(rows), self.place[rows], self.value[rows], self.gid[rows]
        )


def _numbered(parts: Sequence[_Versions]) -> tuple[IntArray, list[str]]:
    """Number the records as they come; return each version's number, and their identifiers."""
    versions = sum(len(part.value) for part in parts)
    packed = b"\0".join(part.record_ids.joined() for part in parts if len(part.value))
    texts = Texts.separated(packed, versions)
    rows, record = TextIndex(texts, secrets.randbits(64)).different()
    return record, texts.take(rows).decoded()


def _read_versions(
    plpy: Plpy, dataset: Dataset, release: int, labels: TextIndex, record_id: str | None
) -> _Versions:
    """Read the versions of a release, of one record or of all."""
    names = relations_of(plpy, dataset.name)
    rows = list(
        run(
            plpy,
            "SELECT v.first, pg_catalog.cardinality(v.record_id) AS count,"
            f" {joined_texts('v.record_id')} AS record_ids, {joined_texts('v.label')} AS labels,"
            " pg_catalog.array_send(coalesce(p.gids, '{}')) AS gids"
            f" FROM {names.versions} AS v LEFT JOIN {names.placement} AS p"
            f" ON p.first = v.first AND p.release = {release}"
            f" WHERE v.release = {release} AND ($3 IS NULL OR $3 = ANY (v.record_id))"
            " ORDER BY v.first",
            ["text", "text", "text"],
            [*SEPARATORS, record_id],
        )
    )
    counts = [row["count"] for row in rows]
    record_ids = _whole(dataset, texts([row["record_ids"] for row in rows], sum(counts)))
    own = _whole(dataset, texts([row["labels"] for row in rows], sum(counts)))
    gids = [_of_length(elements([row["gids"]], ">i4"), row["count"]) for row in rows]
    found = _Versions(
        record_ids,
        np.concatenate([NOBODY, *(row["first"] + np.arange(row["count"]) for row in rows)]),
        labels.find(own),
        np.concatenate([NOBODY, *gids]),
    )
    if record_id is None:
        return found
    return found.take(np.flatnonzero(TextIndex(Texts.of([record_id]), 0).find(record_ids) >= 0))


def _whole(dataset: Dataset, column: Texts | None) -> Texts:
    _expect(dataset, np.array([column is not None]), "release lacks identifiers or values")
    assert column is not None
    return column


def _of_length(gids: IntArray | None, count: int) -> IntArray:
    """Return so many gids: no group has the number 0, which stands for those that are missing."""
    placed = np.zeros(count, dtype=np.int64)
    if gids is not None:
        placed[: len(gids)] = gids[:count]
    return placed


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
    # Gids count from 1: unless somebody has removed a group, that tells its place.
    first = np.searchsorted(release, np.arange(int(wanted_release.max(initial=0)) + 1))
    rows = np.clip(first[wanted_release] + wanted_gid - 1, 0, len(keys) - 1)
    elsewhere = np.flatnonzero(keys[rows] != wanted)
    rows[elsewhere] = np.minimum(np.searchsorted(keys, wanted[elsewhere]), len(keys) - 1)
    return rows, keys[rows] == wanted


def _expect(dataset: Dataset, holds: BoolArray, trouble: str) -> None:
    if not holds.all():
        raise MdistinctError(
            f'the history of dataset "{dataset.name}" is damaged: {int((~holds).sum())} {trouble}',
            hint="Restore the tables in schema mdistinct_data from a backup.",
            sqlstate=errors.INCONSISTENT_HISTORY,
        )
