"""Writes a release into the tables of its dataset."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from pg_mdistinct.core.arrays import IntArray, Ragged
from pg_mdistinct.core.publication import Release
from pg_mdistinct.server.catalog import Dataset
from pg_mdistinct.server.knowledge import KnownBefore, packed_rows
from pg_mdistinct.server.plpython import Plpy, run
from pg_mdistinct.server.qi_types import quoted_element
from pg_mdistinct.server.reading import ReadColumn
from pg_mdistinct.server.relations import partition_of, relations_of

PARTITIONED = ("versions", "placement", "groups")


def create_partitions(plpy: Plpy, dataset: Dataset) -> dict[str, str]:
    """Make the tables of the next release beside their parents, where no reader waits for them."""
    release = dataset.last_release + 1
    names = relations_of(plpy, dataset.name)
    made = {}
    for kind in PARTITIONED:
        made[kind] = partition_of(plpy, dataset.name, kind, release)
        plpy.execute(
            f"CREATE TABLE {made[kind]} (LIKE {getattr(names, kind)} INCLUDING INDEXES,"
            # Spares ATTACH PARTITION the scan.
            f" CHECK (release = {release}))"
        )
    return made


def write(
    plpy: Plpy,
    dataset: Dataset,
    release: Release,
    columns: Sequence[ReadColumn],
    partitions: dict[str, str],
    before: KnownBefore,
) -> None:
    """Write placement and groups, bring the absent up to date and show the release."""
    _write_placement(plpy, dataset, release, partitions["placement"])
    _write_groups(plpy, dataset, release, columns, partitions["groups"])
    _update_absent(plpy, dataset, partitions["versions"], before)
    names = relations_of(plpy, dataset.name)
    for kind in PARTITIONED:
        plpy.execute(
            f"ALTER TABLE {getattr(names, kind)} ATTACH PARTITION {partitions[kind]}"
            f" FOR VALUES IN ({dataset.last_release + 1})"
        )


def _write_placement(plpy: Plpy, dataset: Dataset, release: Release, table: str) -> None:
    run(
        plpy,
        f"INSERT INTO {table} (release, seq, gid)"
        f" SELECT {dataset.last_release + 1}, t.number - 1, t.gid"
        " FROM pg_catalog.unnest($1) WITH ORDINALITY AS t (gid, number)",
        ["int4[]"],
        [(release.group + 1).tolist()],
    )


def _write_groups(
    plpy: Plpy, dataset: Dataset, release: Release, columns: Sequence[ReadColumn], table: str
) -> None:
    qi = [f"q{i}" for i in range(1, len(columns) + 1)]
    shown = [
        _sets(column.texts, members)
        if members is not None
        else _ranges(column, release.low[i], release.high[i])
        for i, (column, members) in enumerate(zip(columns, release.members, strict=True))
    ]
    candidates = _array_literals(
        list(map(str, range(_width(release.candidates)))), release.candidates
    )
    casts = "".join(
        f"t.{name}::{column.type.generalized}, " for name, column in zip(qi, columns, strict=True)
    )
    parameters = ", ".join(f"${i}" for i in range(1, len(qi) + 3))
    run(
        plpy,
        f"INSERT INTO {table} (release, gid, {', '.join(qi)}, candidates, counterfeits)"
        f" SELECT {dataset.last_release + 1}, t.gid, {casts} t.candidates::int4[], t.counterfeits"
        f" FROM unnest({parameters}) WITH ORDINALITY"
        f" AS t ({', '.join(qi)}, candidates, counterfeits, gid)"
        # In the order of gids, which are random: the place on disk tells nothing.
        " ORDER BY t.gid",
        ["text[]"] * (len(qi) + 1) + ["int4[]"],
        [*shown, candidates, release.counterfeits.tolist()],
    )


def _ranges(column: ReadColumn, low: IntArray, high: IntArray) -> list[str]:
    """Return the range literal of every group."""
    assert column.type.bounds is not None
    used = np.unique(np.concatenate([low, high]))
    lows, highs = column.type.bounds([column.texts[code] for code in used.tolist()])
    ends = zip(
        np.searchsorted(used, low).tolist(), np.searchsorted(used, high).tolist(), strict=True
    )
    return [lows[a] + highs[b] for a, b in ends]


def _sets(texts: Sequence[str], members: Ragged) -> list[str]:
    """Return the array literal of every group's set of values."""
    return _array_literals([quoted_element(text) for text in texts], members)


def _array_literals(elements: Sequence[str], rows: Ragged) -> list[str]:
    items = [elements[item] for item in rows.items.tolist()]
    offsets = rows.offsets.tolist()
    return ["{" + ",".join(items[start:end]) + "}" for start, end in pairwise(offsets)]


def _width(rows: Ragged) -> int:
    return int(np.max(rows.items, initial=-1)) + 1


def _update_absent(plpy: Plpy, dataset: Dataset, versions: str, before: KnownBefore) -> None:
    """Keep the last version of every record that the new release does not have."""
    names = relations_of(plpy, dataset.name)
    previous = dataset.last_release
    plpy.execute(
        f"DELETE FROM {names.absent} AS a USING {versions} AS v WHERE v.record_id = a.record_id"
    )
    if not len(before.leaving):
        return
    known = before.previous.take(before.leaving)
    run(
        plpy,
        f"INSERT INTO {names.absent} (record_id, release, gid, value, knowledge, risk)"
        " SELECT p.record_id, p.release, g.gid, p.value, t.knowledge, t.risk"
        " FROM unnest($1, $2, $3) AS t (seq, knowledge, risk)"
        f" JOIN {names.versions} AS p ON p.seq = t.seq AND p.release = {previous}"
        f" JOIN {names.placement} AS g ON g.seq = t.seq AND g.release = {previous}",
        ["int4[]", "bytea[]", "float8[]"],
        [before.leaving.tolist(), packed_rows(known), known.largest_risk.tolist()],
    )
