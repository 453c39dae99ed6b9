"""Reads the whole release history of a dataset into arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pg_mdistinct.core import errors
from pg_mdistinct.core.arrays import BoolArray, IntArray, Ragged
from pg_mdistinct.core.errors import MdistinctError
from pg_mdistinct.core.history import History
from pg_mdistinct.server.catalog import Dataset
from pg_mdistinct.server.packed import gather, integers
from pg_mdistinct.server.plpython import Plpy, run
from pg_mdistinct.server.relations import relations_of


@dataclass(frozen=True)
class StoredHistory:
    """A history, and where each of its versions is stored within its release."""

    history: History
    seq: IntArray

    def record_ids(self, plpy: Plpy, dataset: Dataset, versions: list[int]) -> dict[int, str]:
        """Return the identifiers of the records that some versions belong to."""
        versions = list(set(versions))
        release = self.history.version_release[versions].tolist()
        seq = self.seq[versions].tolist()
        rows = run(
            plpy,
            "SELECT v.release, v.seq, v.record_id"
            f" FROM {relations_of(plpy, dataset.name).versions} AS v"
            " JOIN unnest($1, $2) AS wanted (release, seq)"
            " ON wanted.release = v.release AND wanted.seq = v.seq",
            ["int4[]", "int4[]"],
            [release, seq],
        )
        found = {(row["release"], row["seq"]): row["record_id"] for row in rows}
        places = zip(release, seq, strict=True)
        return {version: found[place] for version, place in zip(versions, places, strict=True)}


def read_history(plpy: Plpy, dataset: Dataset, values: int) -> StoredHistory:
    """Return what was published of a dataset with that many values, and who was where."""
    release, gid, counterfeits, rows = _read_groups(plpy, dataset, values)
    names = relations_of(plpy, dataset.name)
    packed = gather(
        record="r.number", release="v.release", seq="v.seq", gid="p.gid", value="v.value"
    )
    row = plpy.execute(
        f"SELECT {packed} FROM {names.versions} AS v"
        f" JOIN {names.placement} AS p ON p.release = v.release AND p.seq = v.seq"
        " JOIN (SELECT record_id, pg_catalog.row_number() OVER ()::int4 AS number"
        f" FROM (SELECT DISTINCT record_id FROM {names.versions}) AS d) AS r"
        " ON r.record_id = v.record_id"
    )[0]
    record, version_release = integers(row["record"]), integers(row["release"])
    group, published = _find(release, gid, version_release, integers(row["gid"]))
    _expect(dataset, published, "records are in groups that were not published")
    order = np.lexsort((version_release, record))
    history = History(
        release,
        gid,
        rows,
        counterfeits,
        record[order],
        group[order],
        integers(row["value"])[order],
    )
    return StoredHistory(history, integers(row["seq"])[order])


def _read_groups(
    plpy: Plpy, dataset: Dataset, values: int
) -> tuple[IntArray, IntArray, IntArray, Ragged]:
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
    return release, gid, integers(row["counterfeits"])[order], candidates


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
