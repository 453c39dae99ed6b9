"""Reads the whole release history of a dataset into arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pg_mdistinct.core import errors
from pg_mdistinct.core.arrays import BoolArray, IntArray, Ragged
from pg_mdistinct.core.errors import MdistinctError
from pg_mdistinct.core.history import History
from pg_mdistinct.core.publication import Release
from pg_mdistinct.server.catalog import Dataset
from pg_mdistinct.server.packed import gather, integers
from pg_mdistinct.server.plpython import Plpy, Row, run
from pg_mdistinct.server.relations import relations_of


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
) -> StoredHistory:
    """Return what was published of a dataset with that many values, and who was where.

    All of it, or only up to some release, or only one record's; or with a release that is planned.
    """
    groups = _read_groups(plpy, dataset, values)
    row = _read_versions(plpy, dataset, until, record_id, planned)
    record, release, seq = (integers(row[name]) for name in ("record", "release", "seq"))
    group, published = _find(groups.release, groups.gid, release, integers(row["gid"]))
    if planned is not None:
        coming = release > dataset.last_release
        group[coming] = len(groups.release) + planned.release.group[seq[coming]]
        published |= coming
        groups = _with_planned(groups, dataset.last_release + 1, planned.release)
    _expect(dataset, published, "records are in groups that were not published")
    order = np.lexsort((release, record))
    history = History(
        groups.release,
        groups.gid,
        groups.rows,
        groups.counterfeits,
        record[order],
        group[order],
        integers(row["value"])[order],
    )
    return StoredHistory(history, row["record_ids"] or [], seq[order])


def _read_versions(
    plpy: Plpy,
    dataset: Dataset,
    until: int | None,
    record_id: str | None,
    planned: PlannedRelease | None,
) -> Row:
    """Return packed columns of all versions, with records numbered as in ``record_ids``."""
    names = relations_of(plpy, dataset.name)
    versions = (
        "SELECT v.release, v.seq, v.record_id, v.value, p.gid"
        f" FROM {names.versions} AS v"
        f" JOIN {names.placement} AS p ON p.release = v.release AND p.seq = v.seq"
        " WHERE ($1 IS NULL OR v.release <= $1) AND ($2 IS NULL OR v.record_id = $2)"
    )
    if planned is not None:
        versions += (
            f" UNION ALL SELECT {dataset.last_release + 1}, v.seq, v.record_id, v.value, 0"
            f" FROM {planned.table} AS v"
        )
    packed = gather(
        record="r.number", release="v.release", seq="v.seq", gid="v.gid", value="v.value"
    )
    return run(
        plpy,
        f"WITH versions AS MATERIALIZED ({versions}), records AS MATERIALIZED ("
        "SELECT d.record_id, (pg_catalog.row_number() OVER () - 1)::int4 AS number"
        " FROM (SELECT DISTINCT v.record_id FROM versions AS v) AS d)"
        f" SELECT {packed}, (SELECT pg_catalog.array_agg(r.record_id ORDER BY r.number)"
        " FROM records AS r) AS record_ids"
        " FROM versions AS v JOIN records AS r ON r.record_id = v.record_id",
        ["int4", "text"],
        [until, record_id],
    )[0]


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
    packed = gather(release="g.release", gid="g.gid", counterfeits="g.counterfeits")
    row = plpy.execute(f"SELECT {packed} FROM {groups} AS g")[0]
    release, gid = integers(row["release"]), integers(row["gid"])
    order = np.lexsort((gid, release))
    release, gid = release[order], gid[order]
    packed = gather(release="g.release", gid="g.gid", code="c.code")
    rows = plpy.execute(
        f"SELECT {packed} FROM {groups} AS g"
        " CROSS JOIN LATERAL pg_catalog.unnest(g.candidates) AS c (code)"
    )[0]
    code = integers(rows["code"])
    _expect(dataset, (code >= 0) & (code < values), "rows have values that nobody knows")
    group, _ = _find(release, gid, integers(rows["release"]), integers(rows["gid"]))
    offsets = np.concatenate(([0], np.cumsum(np.bincount(group, minlength=len(release)))))
    candidates = Ragged(offsets.astype(np.int64), code[np.lexsort((code, group))])
    return _Groups(release, gid, integers(row["counterfeits"])[order], candidates)


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
