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
from pg_mdistinct.core.model import M_INVARIANCE
from pg_mdistinct.core.snapshot import QiColumn, Snapshot
from pg_mdistinct.core.texts import TextIndex, Texts
from pg_mdistinct.server import column_values, latest, source
from pg_mdistinct.server.catalog import Dataset
from pg_mdistinct.server.column_values import ColumnValues, Numbers
from pg_mdistinct.server.errors import NAMED_AT_MOST
from pg_mdistinct.server.latest import Latest
from pg_mdistinct.server.packed import Integers, gather_arrays, gather_texts, literal, ragged
from pg_mdistinct.server.plpython import Plpy, Result, Row, run
from pg_mdistinct.server.qi_types import SET, QiType, qi_type_of
from pg_mdistinct.server.relations import relations_of
from pg_mdistinct.server.validation import Staged

_SMALL_INTEGER = "int4send"


@dataclass(frozen=True)
class ReadColumn:
    """A QI column with the texts of its distinct values, in the order of their codes."""

    type: QiType
    column: QiColumn
    texts: Sequence[str]


@dataclass(frozen=True)
class Rows:
    """The staged table as arrays, in the order of seq, and where to find an identifier."""

    record_ids: Texts
    index: TextIndex
    value: IntArray
    qi: Sequence[Numbers | Texts]


@dataclass(frozen=True)
class ReadSnapshot:
    """A snapshot, its columns, and what ties it to the releases before.

    ``leaving`` are the seq of the previous release's records that the snapshot has not got,
    ``returned`` the identifiers of its records that were absent from the previous one, and
    ``known`` what was known of each of its records before.
    """

    snapshot: Snapshot
    columns: list[ReadColumn]
    record_ids: Texts
    leaving: IntArray
    returned: list[str]
    known: Knowledge


def stage(plpy: Plpy, dataset: Dataset, table: str) -> Staged:
    """Fill a table with the source as it is now: the one moment that the source is read at."""
    qi = tuple(qi_types(plpy, dataset))
    columns = "".join(f"q{i}, " for i in range(1, len(qi) + 1))
    own = "".join(f"s.q{i}, " for i in range(1, len(qi) + 1))
    _read_source(
        plpy,
        dataset,
        f"INSERT INTO {table} (release, seq, record_id, {columns} value)"
        f" SELECT {dataset.last_release + 1}, (s.ordinality - 1)::int4, s.record_id, {own} k.code",
    )
    return Staged(table, qi)


def unknown_values(plpy: Plpy, dataset: Dataset) -> list[Row]:
    """Return some sensitive values of the source that have no code, NULL first."""
    rows = _read_source(
        plpy,
        dataset,
        "SELECT s.sensitive, pg_catalog.count(*) AS records,"
        " pg_catalog.count(*) OVER () AS values,"
        f" (pg_catalog.array_agg(s.record_id))[1:{NAMED_AT_MOST}] AS named",
        "WHERE k.code IS NULL GROUP BY s.sensitive ORDER BY s.sensitive NULLS FIRST"
        f" LIMIT {NAMED_AT_MOST}",
    )
    return list(rows)


def new_values(plpy: Plpy, dataset: Dataset) -> list[str]:
    """Return all sensitive values of the source that have no code."""
    rows = _read_source(
        plpy,
        dataset,
        "SELECT s.sensitive",
        "WHERE k.code IS NULL AND s.sensitive IS NOT NULL GROUP BY 1 ORDER BY 1",
    )
    return [row["sensitive"] for row in rows]


def _read_source(plpy: Plpy, dataset: Dataset, select: str, rest: str = "") -> Result:
    """Run a statement over the source, s, and the codes of its sensitive values, k."""
    names = relations_of(plpy, dataset.name)
    mentioned = "d.label IN (SELECT old_value FROM model UNION SELECT new_value FROM model)"
    statement = f"""
        WITH model AS (
            SELECT u.old_value, u.new_value FROM mdistinct.updates AS u WHERE u.dataset = $1
        ), known AS (
            SELECT d.code, d.label FROM {names.domain} AS d
            WHERE {"true" if dataset.variant == M_INVARIANCE else mentioned}
        )
        {select}
        FROM {names.reader}() WITH ORDINALITY AS s LEFT JOIN known AS k ON k.label = s.sensitive
        {rest}
    """
    with source.reading(plpy, dataset):
        return run(plpy, statement, ["name"], [dataset.name])


def read(plpy: Plpy, staged: Staged) -> Rows | None:
    """Return the staged table as arrays; None if anything in it cannot be published."""
    columns = [f"v.q{i}" for i in range(1, len(staged.qi) + 1)]
    kinds = dict(zip(columns, staged.qi, strict=True))
    small = {name[2:]: name for name in columns if kinds[name].send == _SMALL_INTEGER}
    integers = Integers(seq="v.seq", value="v.value", **small)
    packed = {"record_ids": gather_texts("v.record_id")} | {
        name[2:]: column_values.packed(kinds[name], name)
        for name in columns
        if name[2:] not in small
    }
    faults = [f"{name} IS NULL" for name in ("v.record_id", "v.value", *columns)]
    faults += [kind.infinite.format(name) for name, kind in kinds.items() if kind.infinite]
    row = plpy.execute(
        "SELECT pg_catalog.count(*) AS records,"
        f" pg_catalog.count(*) FILTER (WHERE {' OR '.join(faults)}) AS faults, {integers.select}, "
        + ", ".join(f"{sent} AS {name}" for name, sent in packed.items())
        + f" FROM {staged.table} AS v"
    )[0]
    if row["faults"]:
        return None
    read: dict[str, Numbers | Texts] = dict(integers.read(row))
    for name, kind in (("record_ids", SET), *((name[2:], kind) for name, kind in kinds.items())):
        if name in packed:
            read[name] = column_values.unpacked(kind, row[name], row["records"])
    return _indexed(read, len(columns))


def _indexed(columns: dict[str, Any], qi: int) -> Rows | None:
    """Put the rows in the order of seq; None if an identifier is there twice."""
    seq = columns["seq"]
    if not np.array_equal(seq, np.arange(len(seq))):
        order = np.argsort(seq)
        columns = {
            name: column.take(order) if isinstance(column, Texts) else column[order]
            for name, column in columns.items()
        }
    record_ids = columns["record_ids"]
    index = TextIndex(record_ids, secrets.randbits(64))
    if not np.array_equal(index.first, np.arange(len(seq))):
        return None
    return Rows(record_ids, index, columns["value"], [columns[f"q{i}"] for i in range(1, qi + 1)])


def snapshot(
    plpy: Plpy, dataset: Dataset, staged: Staged, rows: Rows, previous: Latest
) -> ReadSnapshot:
    """Return the rows with the last versions of their records.

    A record's last version is in the previous release, or else among the absent.
    """
    now = rows.index.find(previous.record_ids)
    last_seq = np.full(len(rows.value), -1, dtype=np.int64)
    last_seq[now[now >= 0]] = np.flatnonzero(now >= 0)
    back = _returned(plpy, dataset, rows, last_seq)
    here = np.array([row["number"] for row in back], dtype=np.int64) - 1
    last_group = np.append(previous.group, -1)[last_seq]
    last_value = np.append(previous.value, -1)[last_seq]
    gap = (last_seq >= 0).astype(np.int64)
    gap[here] = [dataset.last_release + 1 - row["release"] for row in back]
    last_value[here] = [row["value"] for row in back]
    last_group[here], earlier = _earlier_groups(plpy, dataset, back)
    last_group[here] += len(previous.candidates)
    qi = [_read_column(plpy, dataset, staged, i, sent) for i, sent in enumerate(rows.qi, start=1)]
    known = Knowledge.join([previous.known, latest.unpacked([row["knowledge"] for row in back])])
    last_seq[here] = len(previous) + np.arange(len(back))
    return ReadSnapshot(
        Snapshot(
            value=rows.value,
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
        known=known.take(last_seq),
    )


def _returned(plpy: Plpy, dataset: Dataset, rows: Rows, last_seq: IntArray) -> list[Row]:
    """Find those records among the absent that the previous release has not got."""
    absent = relations_of(plpy, dataset.name).absent
    new = np.flatnonzero(last_seq < 0)
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
    return [qi_type_of(row["type"]) for row in rows]


def _read_column(
    plpy: Plpy, dataset: Dataset, staged: Staged, i: int, sent: Numbers | Texts
) -> ReadColumn:
    qi_type = staged.qi[i - 1]
    values, code = column_values.ranked(plpy, qi_type, sent, f"{staged.table} AS v", f"v.q{i}")
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
        f"SELECT q{i} AS q FROM {staged.table}"
        f" UNION SELECT q{i} FROM {versions} WHERE release = {dataset.last_release}"
        # A column that has just been added has no value there.
        f" AND q{i} IS NOT NULL",
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
