"""Writes a release into the tables of its dataset."""

from __future__ import annotations

from collections.abc import Sequence

from pg_mdistinct.core.arrays import IntArray, Ragged, ranked
from pg_mdistinct.core.publication import Release
from pg_mdistinct.core.texts import TextIndex, Texts
from pg_mdistinct.server import latest
from pg_mdistinct.server.catalog import Dataset
from pg_mdistinct.server.latest import Latest
from pg_mdistinct.server.packed import literal
from pg_mdistinct.server.plpython import Plpy, run
from pg_mdistinct.server.qi_types import quoted_element
from pg_mdistinct.server.reading import ReadColumn
from pg_mdistinct.server.relations import partition_of, provide_groups, relations_of

ATTACHED_LAST = ("versions", "placement")


def create_partitions(plpy: Plpy, dataset: Dataset) -> dict[str, str]:
    """Make the tables of the next release, where no reader waits for them."""
    release = dataset.last_release + 1
    names = relations_of(plpy, dataset.name)
    made = {}
    for kind in ATTACHED_LAST:
        made[kind] = partition_of(plpy, dataset.name, kind, release)
        plpy.execute(
            # Beside its parent: what a failure leaves is gone with it. The constraint spares
            # ATTACH PARTITION the scan.
            f"CREATE TABLE {made[kind]}"
            f" (LIKE {getattr(names, kind)} INCLUDING STORAGE, CHECK (release = {release}))"
        )
    return made | {"groups": provide_groups(plpy, dataset.name, release)}


def write(
    plpy: Plpy,
    dataset: Dataset,
    release: Release,
    columns: Sequence[ReadColumn],
    partitions: dict[str, str],
) -> None:
    """Write placement and groups, show the release, and make room for the groups of the next."""
    _write_placement(plpy, release, partitions)
    _write_groups(plpy, dataset, release, columns, partitions["groups"])
    names = relations_of(plpy, dataset.name)
    for kind in ATTACHED_LAST:
        plpy.execute(
            f"ALTER TABLE {getattr(names, kind)} ATTACH PARTITION {partitions[kind]}"
            f" FOR VALUES IN ({dataset.last_release + 1})"
        )
    provide_groups(plpy, dataset.name, dataset.last_release + 2)


def _write_placement(plpy: Plpy, release: Release, partitions: dict[str, str]) -> None:
    run(
        plpy,
        f"INSERT INTO {partitions['placement']} (release, first, gids) SELECT v.release, v.first,"
        # The subquery, for a literal is read again wherever it stands by itself.
        " ((SELECT $1::int4[]))[v.first + 1 : v.first + pg_catalog.cardinality(v.record_id)]"
        f" FROM {partitions['versions']} AS v",
        ["text"],
        [literal(release.group + 1)],
    )


def _write_groups(
    plpy: Plpy, dataset: Dataset, release: Release, columns: Sequence[ReadColumn], table: str
) -> None:
    """Write the groups; their place on disk tells nothing that they do not show themselves.

    They come in the order of gids, which are random. What a column shows is sent once for all
    groups that show the same, and joined here.
    """
    numbers = {
        "first": release.candidates.offsets[:-1] + 1,
        "last": release.candidates.offsets[1:],
        "counterfeits": release.counterfeits,
    }
    different, joins = [], []
    for i, (column, members) in enumerate(zip(columns, release.members, strict=True), start=1):
        shown, which = (
            _sets(column.texts, members)
            if members is not None
            else _ranges(column, release.low[i - 1], release.high[i - 1])
        )
        numbers[f"q{i}"] = which + 1
        different.append(shown)
        joins.append(
            # Distinct as they are: else more rows are expected, and sorted, for a merge join.
            f" LEFT JOIN (SELECT DISTINCT ON (number) s.number::int4 AS number,"
            f" s.shown::{column.type.generalized} AS shown"
            f" FROM pg_catalog.unnest(${i + 1}) WITH ORDINALITY AS s (shown, number))"
            f" AS s{i} ON s{i}.number = g.q{i}"
        )
    unnested = "".join(
        f", pg_catalog.unnest(${i}::int4[]) AS {name}"
        for i, name in enumerate(numbers, start=len(columns) + 2)
    )
    qi = range(1, len(columns) + 1)
    run(
        plpy,
        f"INSERT INTO {table} (release, gid, {', '.join(f'q{i}' for i in qi)}, candidates,"
        f" counterfeits) SELECT {dataset.last_release + 1}, g.gid,"
        f" {', '.join(f's{i}.shown' for i in qi)},"
        " ((SELECT $1::int4[]))[g.first : g.last], g.counterfeits"
        f" FROM (SELECT pg_catalog.generate_series(1, {len(release.counterfeits)}) AS gid"
        f"{unnested} OFFSET 0) AS g" + "".join(joins),
        ["text", *["text[]"] * len(columns), *["text"] * len(numbers)],
        [literal(release.candidates.items), *different, *map(literal, numbers.values())],
    )
    # Not by a constraint: that would lock readers out until the commit.
    plpy.execute(f"CREATE UNIQUE INDEX ON {table} (gid)")


def _ranges(column: ReadColumn, low: IntArray, high: IntArray) -> tuple[list[str], IntArray]:
    """Return the literals of different ranges, and which of them each group shows."""
    assert column.type.bounds is not None
    width = len(column.texts)
    pairs, which = ranked(low * width + high)
    lows, highs = column.type.bounds(column.texts)
    ends = zip((pairs // width).tolist(), (pairs % width).tolist(), strict=True)
    return [lows[a] + highs[b] for a, b in ends], which


def _sets(texts: Sequence[str], members: Ragged) -> tuple[list[str], IntArray]:
    """Return the array literals of different sets, and which of them each group shows."""
    packed = Texts(members.items.tobytes(), 8 * members.offsets[:-1], 8 * members.offsets[1:])
    rows, which = TextIndex(packed, 0).different()
    elements = [quoted_element(text) for text in texts]
    return [
        "{" + ",".join(elements[item] for item in members.row(row).tolist()) + "}"
        for row in rows.tolist()
    ], which


def update_absent(
    plpy: Plpy, dataset: Dataset, returned: list[str], previous: Latest, leaving: IntArray
) -> None:
    """Keep the last version of every record that the new release does not have."""
    absent = relations_of(plpy, dataset.name).absent
    if returned:
        run(plpy, f"DELETE FROM {absent} WHERE record_id = ANY ($1)", ["text[]"], [returned])
    if not len(leaving):
        return
    known = previous.known.take(leaving).compact()
    run(
        plpy,
        f"INSERT INTO {absent} (record_id, release, gid, value, knowledge, risk)"
        f" SELECT t.record_id, {dataset.last_release}, t.gid, t.value, s.knowledge, s.risk"
        " FROM unnest($1, $2::int4[], $3::int4[], $4::int4[])"
        " AS t (record_id, gid, value, state)"
        " JOIN unnest($5, $6) WITH ORDINALITY AS s (knowledge, risk, state) ON s.state = t.state",
        ["text[]", "text", "text", "text", "bytea[]", "float8[]"],
        [
            previous.record_ids.take(leaving).decoded(),
            literal(previous.group[leaving] + 1),
            literal(previous.value[leaving]),
            literal(known.state + 1),
            latest.packed_one_by_one(known.states),
            known.states.largest_risk.tolist(),
        ],
    )
