"""Reads the source into a table, once, and that table into the arrays of a snapshot."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np

from pg_mdistinct.core.arrays import IntArray, Ragged
from pg_mdistinct.core.knowledge import Knowledge
from pg_mdistinct.core.model import UpdateModel
from pg_mdistinct.core.snapshot import QiColumn, Snapshot
from pg_mdistinct.core.texts import TextIndex, Texts
from pg_mdistinct.server import column_values, latest, source
from pg_mdistinct.server.catalog import Dataset
from pg_mdistinct.server.column_values import ColumnValues, Numbers
from pg_mdistinct.server.latest import Latest
from pg_mdistinct.server.packed import SEPARATORS, Integers, gather_arrays, literal, ragged
from pg_mdistinct.server.plpython import Plpy, Row, run
from pg_mdistinct.server.qi_types import SET, QiType, qi_type_of
from pg_mdistinct.server.relations import relations_of, unnested
from pg_mdistinct.server.validation import Staged


@dataclass(frozen=True)
class ReadColumn:
    """A QI column with the texts of its distinct values, in the order of their codes."""

    type: QiType
    column: QiColumn
    texts: Sequence[str]


@dataclass(frozen=True)
class Rows:
    """The staged table as arrays, and where to find an identifier.

    ``label`` says which of ``labels`` each row's sensitive value is.
    """

    record_ids: Texts
    index: TextIndex
    labels: list[str]
    label: IntArray
    qi: Sequence[Numbers | Texts]

    def values(self, model: UpdateModel) -> IntArray | None:
        """Return the codes of the sensitive values; None if the model does not know one."""
        codes = {label: code for code, label in enumerate(model.labels) if model.known[code]}
        known = [codes.get(label, -1) for label in self.labels]
        return None if -1 in known else np.array(known, dtype=np.int64)[self.label]


@dataclass(frozen=True)
class ReadSnapshot:
    """A snapshot, its columns, and what ties it to the releases before.

    ``leaving`` are those records of the previous release that the snapshot has not got,
    ``returned`` the identifiers of its records that were absent from the previous one, and
    ``known`` what was known of each of its records before.
    """

    snapshot: Snapshot
    columns: list[ReadColumn]
    record_ids: Texts
    leaving: IntArray
    returned: list[str]
    known: Knowledge


def stage(plpy: Plpy, dataset: Dataset, table: str) -> tuple[Staged, Rows | None]:
    """Fill a table with the source as it is now: the one moment that the source is read at.

    Return it as arrays, too; None if anything in it cannot be published.
    """
    types = {f"q{i}": qi_type for i, qi_type in enumerate(qi_types(plpy, dataset), start=1)}
    columns = {"record_id": SET, **types, "label": SET}
    names = ", ".join(columns)
    count = "pg_catalog.cardinality(s.record_id)"
    packed = "".join(
        f", {column_values.packed(qi_type, f'v.{name}')} AS {name}"
        for name, qi_type in columns.items()
    )
    whole = " AND ".join(
        f"pg_catalog.array_ndims(v.{name}) = 1"
        f" AND pg_catalog.cardinality(v.{name}) = pg_catalog.cardinality(v.record_id)"
        for name in columns
    )
    with source.reading(plpy, dataset):
        parts = run(
            plpy,
            f"INSERT INTO {table} AS v (release, first, {names}) SELECT {dataset.last_release + 1},"
            f" pg_catalog.sum({count}) OVER (ROWS UNBOUNDED PRECEDING) - {count}, {names}"
            f" FROM {relations_of(plpy, dataset.name).reader}() AS s"
            " RETURNING v.first, pg_catalog.cardinality(v.record_id) AS rows,"
            f" coalesce({whole}, false) AS whole{packed}",
            ["text", "text"],
            SEPARATORS,
        )
    ordered = sorted(parts, key=lambda part: int(part["first"]))
    rows = _unpacked(columns, ordered) if all(part["whole"] for part in ordered) else None
    return Staged(table, tuple(types.values())), rows


def _unpacked(columns: dict[str, QiType], parts: Sequence[Row]) -> Rows | None:
    count = sum(part["rows"] for part in parts)
    read: dict[str, Any] = {}
    for name, qi_type in columns.items():
        read[name] = column_values.unpacked(qi_type, [part[name] for part in parts], count)
        if read[name] is None:
            return None
    index = TextIndex(read["record_id"], secrets.randbits(64))
    if not np.array_equal(index.first, np.arange(count)):
        return None
    labels, label = TextIndex(read["label"], secrets.randbits(64)).different()
    return Rows(
        read["record_id"],
        index,
        read["label"].take(labels).decoded(),
        label,
        [read[name] for name in columns if name not in ("record_id", "label")],
    )


def snapshot(
    plpy: Plpy, dataset: Dataset, staged: Staged, rows: Rows, value: IntArray, previous: Latest
) -> ReadSnapshot:
    """Return the rows, with the codes of their values, and the last versions of their records.

    A record's last version is in the previous release, or else among the absent.
    """
    now = rows.index.find(previous.record_ids)
    last_place = np.full(len(value), -1, dtype=np.int64)
    last_place[now[now >= 0]] = np.flatnonzero(now >= 0)
    back = _returned(plpy, dataset, rows, last_place)
    here = np.array([row["number"] for row in back], dtype=np.int64) - 1
    last_group = np.append(previous.group, -1)[last_place]
    last_value = np.append(previous.value, -1)[last_place]
    gap = (last_place >= 0).astype(np.int64)
    gap[here] = [dataset.last_release + 1 - row["release"] for row in back]
    last_value[here] = [row["value"] for row in back]
    last_group[here], earlier = _earlier_groups(plpy, dataset, back)
    last_group[here] += len(previous.candidates)
    qi = [_read_column(plpy, dataset, staged, i, sent) for i, sent in enumerate(rows.qi, start=1)]
    known = Knowledge.join([previous.known, latest.unpacked([row["knowledge"] for row in back])])
    last_place[here] = len(previous) + np.arange(len(back))
    return ReadSnapshot(
        Snapshot(
            value=value,
            qi=tuple(column.column for column in qi),
            last_group=last_group,
            gap=gap,
            last_candidates=Ragged.join([previous.candidates, earlier]),
            last_value=last_value,
        ),
        qi,
        rows.record_ids,
        leaving=np.flatnonzero(now < 0),
        returned=rows.record_ids.take(here).decoded(),
        known=known.take(last_place),
    )


def _returned(plpy: Plpy, dataset: Dataset, rows: Rows, last_place: IntArray) -> list[Row]:
    """Find those records among the absent that the previous release has not got."""
    absent = relations_of(plpy, dataset.name).absent
    new = np.flatnonzero(last_place < 0)
    if not len(new) or not plpy.execute(f"SELECT FROM {absent} LIMIT 1").nrows():
        return []
    found = run(
        plpy,
        "SELECT t.row AS number, a.release, a.gid, a.value, a.knowledge"
        " FROM unnest($1, $2::int4[]) AS t (record_id, row)"
        # One by one: a join may read all of the absent, who become more with every release.
        f" CROSS JOIN LATERAL (SELECT * FROM {absent} AS a WHERE a.record_id = t.record_id"
        " OFFSET 0) AS a",
        ["text[]", "text"],
        [rows.record_ids.take(new).decoded(), literal(new + 1)],
    )
    return list(found)


def qi_types(plpy: Plpy, dataset: Dataset) -> list[QiType]:
    """Return the types that the dataset's tables were made with."""
    rows = run(
        plpy,
        "SELECT pg_catalog.format_type(a.atttypid, -1) AS type FROM pg_catalog.pg_attribute AS a"
        " WHERE a.attrelid = $1::pg_catalog.regclass AND a.attname ~ '^q[0-9]+$'"
        " ORDER BY a.attnum",
        ["text"],
        [relations_of(plpy, dataset.name).versions],
    )
    return [qi_type_of(row["type"].removesuffix("[]")) for row in rows]


def _read_column(
    plpy: Plpy, dataset: Dataset, staged: Staged, i: int, sent: Numbers | Texts
) -> ReadColumn:
    qi_type = staged.qi[i - 1]
    values, code = column_values.ranked(plpy, qi_type, sent)
    if len(values) == 1:
        values, first = _widened(plpy, dataset, staged, i, values)
        code = code + first
    return ReadColumn(qi_type, QiColumn(code, values.positions, qi_type.is_set), values.texts)


def _widened(
    plpy: Plpy, dataset: Dataset, staged: Staged, i: int, only: ColumnValues
) -> tuple[ColumnValues, int]:
    """Add values for counterfeits to a column that has a single one, and say where that one is.

    They come from the previous release, or lie beside it: without them the group of a lone record
    would spell it out.
    """
    versions = relations_of(plpy, dataset.name).versions
    wider = column_values.distinct(
        plpy,
        staged.qi[i - 1],
        f"SELECT s.q{i} AS q FROM {unnested(staged.table, f'q{i}')} AS s"
        f" UNION SELECT v.q{i} FROM {unnested(versions, f'q{i}')} AS v"
        f" WHERE v.release = {dataset.last_release}",
    )
    if len(wider) == 1:
        wider = column_values.with_neighbours(plpy, wider)
    if staged.qi[i - 1].is_set:
        return wider, list(wider.texts).index(only.texts[0])
    if staged.qi[i - 1].dtype is not None:
        return wider, int(np.searchsorted(wider.numbers, only.numbers[0]))
    # Equal numbers may be written differently: 5 and 5.0.
    own = Decimal(only.texts[0])
    return wider, sum(Decimal(text) < own for text in wider.texts)


def _earlier_groups(
    plpy: Plpy, dataset: Dataset, versions: Sequence[Row]
) -> tuple[IntArray, Ragged]:
    """Return the group of each of some versions, and the candidates of these groups."""
    groups = relations_of(plpy, dataset.name).groups
    release = np.array([version["release"] for version in versions], dtype=np.int64)
    gid = np.array([version["gid"] for version in versions], dtype=np.int64)
    group = np.empty(len(versions), dtype=np.int64)
    packed = Integers(gid="g.gid", size="pg_catalog.cardinality(g.candidates)")
    parts, first = [Ragged.of([])], 0
    # One release at a time, so that each query looks into one partition.
    for number in np.unique(release).tolist():
        mine = np.flatnonzero(release == number)
        gids, which = np.unique(gid[mine], return_inverse=True)
        group[mine] = first + which
        first += len(gids)
        row = run(
            plpy,
            f"SELECT {packed.select}, {gather_arrays('candidates', 'g.candidates')}"
            f" FROM {groups} AS g WHERE g.release = {number} AND g.gid = ANY ($1)",
            ["int4[]"],
            [gids.tolist()],
        )[0]
        read = packed.read(row)
        parts.append(ragged(row, "candidates", read["size"]).take(np.argsort(read["gid"])))
    return group, Ragged.join(parts)
