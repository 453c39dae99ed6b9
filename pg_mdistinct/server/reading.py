"""Reads the source into a table, once, and that table into the arrays of a snapshot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from pg_mdistinct.core.arrays import IntArray, Ragged
from pg_mdistinct.core.snapshot import QiColumn, Snapshot
from pg_mdistinct.server import caller, column_values, source
from pg_mdistinct.server.catalog import Dataset
from pg_mdistinct.server.column_values import ColumnValues
from pg_mdistinct.server.errors import NAMED_AT_MOST
from pg_mdistinct.server.packed import gather, gather_arrays, integers, numbers, ragged
from pg_mdistinct.server.plpython import Plpy, Row, run, sqlstate_of
from pg_mdistinct.server.qi_types import QiType, qi_type_of
from pg_mdistinct.server.relations import relations_of
from pg_mdistinct.server.validation import Staged

# Failures of the source whose message tells nothing of its data.
_HARMLESS = ("57014", "55P03", "40001", "40P01")


@dataclass(frozen=True)
class ReadColumn:
    """A QI column with the texts of its distinct values, in the order of their codes."""

    type: QiType
    column: QiColumn
    texts: Sequence[str]


def stage(plpy: Plpy, dataset: Dataset, table: str) -> Staged:
    """Fill a table with the source as it is now: the one moment that the source is read at."""
    qi = tuple(qi_types(plpy, dataset))
    names = relations_of(plpy, dataset.name)
    columns = "".join(f"q{i}, " for i in range(1, len(qi) + 1))
    statement = f"""
        WITH model AS (
            SELECT u.old_value, u.new_value FROM mdistinct.updates AS u WHERE u.dataset = $1
        ), known AS (
            SELECT d.code, d.label FROM {names.domain} AS d
            WHERE d.label IN (SELECT old_value FROM model UNION SELECT new_value FROM model)
        ), snapshot AS MATERIALIZED (
            SELECT (pg_catalog.row_number() OVER () - 1)::int4 AS seq,
                s.record_id, {columns} s.sensitive, k.code
            FROM {names.reader}() AS s LEFT JOIN known AS k ON k.label = s.sensitive
        ), stored AS (
            INSERT INTO {table}
            SELECT $2, seq, record_id, {columns} code FROM snapshot
        )
        SELECT sensitive, pg_catalog.count(*) AS records, pg_catalog.count(*) OVER () AS values,
            (pg_catalog.array_agg(record_id))[1:{NAMED_AT_MOST}] AS named
        FROM snapshot WHERE code IS NULL
        GROUP BY sensitive ORDER BY sensitive NULLS FIRST LIMIT {NAMED_AT_MOST}
    """
    try:
        unknown = run(plpy, statement, ["name", "int4"], [dataset.name, dataset.last_release + 1])
    except plpy.SPIError as error:
        sqlstate, may_see = sqlstate_of(error), caller.sees_microdata(plpy)
        if sqlstate == "42501":
            raise source.no_right_to_read(dataset, str(error) if may_see else None) from None
        if sqlstate in _HARMLESS or may_see:
            raise
        raise source.unreadable(dataset, error) from None
    return Staged(table, qi, list(unknown))


@dataclass(frozen=True)
class ReadSnapshot:
    """A snapshot, its columns, and each record's seq in the previous release (-1: not there)."""

    snapshot: Snapshot
    columns: list[ReadColumn]
    last_seq: IntArray


def read(plpy: Plpy, dataset: Dataset, staged: Staged) -> ReadSnapshot:
    """Return the staged snapshot with the last versions of its records."""
    row = plpy.execute(_packed_columns(plpy, dataset, staged))[0]
    seq = integers(row["seq"])
    order = np.argsort(seq, kind="stable")
    qi = [_read_column(plpy, dataset, staged, i, row, order) for i in range(1, len(staged.qi) + 1)]
    last_release = integers(row["last_release"])[order]
    last_gid = integers(row["last_gid"])[order]
    last_group, last_candidates = _last_groups(plpy, dataset, last_release, last_gid)
    gap = np.where(last_release > 0, dataset.last_release + 1 - last_release, 0)
    snapshot = Snapshot(
        value=integers(row["value"])[order],
        qi=tuple(read.column for read in qi),
        last_group=last_group,
        gap=gap.astype(np.int64),
        last_candidates=last_candidates,
        last_value=integers(row["last_value"])[order],
    )
    return ReadSnapshot(snapshot, qi, integers(row["last_seq"])[order])


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
    return [qi_type_of(row["type"]) for row in rows]


def _packed_columns(plpy: Plpy, dataset: Dataset, staged: Staged) -> str:
    """Return the query for all columns as packed integers, row by row in the same order.

    A record's last version is in the previous release, or else among the absent. Values that are
    no integers are replaced by their rank.
    """
    names = relations_of(plpy, dataset.name)
    packed, ranks = [], []
    for i, qi_type in enumerate(staged.qi, start=1):
        if qi_type.send is not None:
            packed.append((f"q{i}", f"pg_catalog.{qi_type.send}(v.q{i})"))
            continue
        packed.append((f"q{i}", f"pg_catalog.int4send(r{i}.rank)"))
        ranks.append(
            f" JOIN (SELECT q, (pg_catalog.row_number() OVER (ORDER BY q) - 1)::int4 AS rank"
            f" FROM (SELECT DISTINCT q{i} AS q FROM {staged.table}) AS d) AS r{i}"
            f" ON r{i}.q = v.q{i}"
        )
    packed += [
        ("seq", "pg_catalog.int4send(v.seq)"),
        ("value", "pg_catalog.int4send(v.value)"),
        ("last_seq", "pg_catalog.int4send(coalesce(p.seq, -1))"),
        ("last_release", "pg_catalog.int4send(coalesce(p.release, a.release, 0))"),
        ("last_gid", "pg_catalog.int4send(coalesce(g.gid, a.gid, 0))"),
        ("last_value", "pg_catalog.int4send(coalesce(p.value, a.value, -1))"),
    ]
    columns = ", ".join(f"pg_catalog.string_agg({sent}, '') AS {name}" for name, sent in packed)
    previous = f"release = {dataset.last_release}"
    return (
        f"SELECT {columns} FROM {staged.table} AS v"
        + "".join(ranks)
        + f" LEFT JOIN (SELECT * FROM {names.versions} WHERE {previous}) AS p"
        " ON p.record_id = v.record_id"
        f" LEFT JOIN (SELECT * FROM {names.placement} WHERE {previous}) AS g ON g.seq = p.seq"
        f" LEFT JOIN {names.absent} AS a ON a.record_id = v.record_id"
    )


def _read_column(
    plpy: Plpy, dataset: Dataset, staged: Staged, i: int, row: Row, order: IntArray
) -> ReadColumn:
    qi_type = staged.qi[i - 1]
    values = column_values.distinct(plpy, qi_type, f"SELECT q{i} AS q FROM {staged.table}")
    first = 0
    if len(values) == 1:
        values, first = _widened(plpy, dataset, staged, i, values)
    if qi_type.dtype is None:
        code = integers(row[f"q{i}"])[order] + first
    else:
        own = numbers(row[f"q{i}"], qi_type.dtype)[order]
        code = np.searchsorted(values.numbers, own).astype(np.int64)
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
        f"SELECT q{i} AS q FROM {staged.table}"
        f" UNION SELECT q{i} FROM {versions} WHERE release = {dataset.last_release}",
    )
    if len(wider) == 1:
        wider = column_values.with_neighbours(plpy, wider)
    if staged.qi[i - 1].is_set:
        return wider, list(wider.texts).index(only.texts[0])
    # Equal numbers may be written differently: 5 and 5.0.
    own = Decimal(only.texts[0]) if staged.qi[i - 1].dtype is None else None
    return wider, sum(own is not None and Decimal(text) < own for text in wider.texts)


def _last_groups(
    plpy: Plpy, dataset: Dataset, release: IntArray, gid: IntArray
) -> tuple[IntArray, Ragged]:
    """Return each record's row among the last groups, and the candidates of these groups."""
    groups = relations_of(plpy, dataset.name).groups
    last_group = np.full(len(release), -1, dtype=np.int64)
    published = np.flatnonzero(release > 0)
    lengths, items, first = [np.zeros(1, dtype=np.int64)], [np.empty(0, dtype=np.int64)], 0
    # One release at a time, so that each query looks into one partition.
    for number in np.unique(release[published]).tolist():
        rows = published[release[published] == number]
        gids, which = np.unique(gid[rows], return_inverse=True)
        last_group[rows] = first + which
        first += len(gids)
        packed = run(
            plpy,
            f"SELECT {gather(gids='g.gid')}, {gather_arrays('candidates', 'g.candidates')}"
            f" FROM {groups} AS g WHERE g.release = {number} AND g.gid = ANY ($1)",
            ["int4[]"],
            [gids.tolist()],
        )[0]
        candidates = ragged(packed, "candidates").take(np.argsort(integers(packed["gids"])))
        lengths.append(candidates.lengths)
        items.append(candidates.items)
    return last_group, Ragged(np.cumsum(np.concatenate(lengths)), np.concatenate(items))
