"""Nothing that a reader can reach tells a counterfeit from a real row, or a row from its record.

Chance decides much of a release, so some of it is measured: over many releases, standardized sums
of ranks that would be far from 0 if there were a connection, and lie within noise if there is none.
"""

from __future__ import annotations

import math
import random
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import psycopg
import pytest

from tests.fix_database import Connection, acting_as
from tests.integration.cases import one, publish

VALUES = ("asthma", "bronchitis", "cold", "diabetes", "eczema", "fever")
RELEASES = 14
RECORDS = 60
# A standard normal variable is farther out once in fifteen million times.
NOISE = 5.4
# Rows of a group stand together, and there are at most six of them: their rank sums spread more
# than those of single rows would, by less than this factor.
CLUSTERED = 6**0.5
PLANS = (
    "",
    "SET enable_hashjoin = off",
    "SET enable_hashjoin = off; SET enable_nestloop = off",
    "SET enable_hashjoin = off; SET enable_seqscan = off; SET enable_bitmapscan = off",
)


def make_history(db: Connection, releases: int) -> None:
    """Publish releases with many counterfeits: values never change, and half of some goes."""
    chance = random.Random(1)
    db.execute("CREATE TABLE public.ward (id integer, age integer, disease text)")
    db.execute("SELECT mdistinct_register('ward', 'ward', 'id', '{age}', 'disease', 4)")
    for value in VALUES:
        db.execute("SELECT mdistinct_allow_update('ward', %s, %s)", (value, [value]))
    last = 0
    for _ in range(releases):
        going = chance.sample(VALUES, 3)
        db.execute(
            "DELETE FROM ward WHERE id %% 2 = %s AND disease = ANY (%s)",
            (chance.randrange(2), going),
        )
        count = RECORDS - one(db, "SELECT count(*)::int FROM ward")
        rows = [(last + i + 1, chance.randrange(90), chance.choice(VALUES)) for i in range(count)]
        last += count
        with db.cursor() as cursor:
            cursor.executemany("INSERT INTO ward VALUES (%s, %s, %s)", rows)
        # The order on the disk is that of the identifiers: what leaks it leaks the record.
        db.execute("CREATE TABLE sorted AS SELECT * FROM ward ORDER BY id")
        db.execute("TRUNCATE ward; INSERT INTO ward TABLE sorted; DROP TABLE sorted")
        publish(db)


@dataclass(frozen=True)
class Truth:
    """What no reader knows: the real rows of each group, and the group of each record."""

    real: set[tuple[int, int, str]]
    group_of: dict[tuple[int, int], int]


def truth(db: Connection) -> Truth:
    """Only values that never change can be looked up like this."""
    value_of = dict(
        db.execute(
            "SELECT m.* FROM mdistinct_data.ward_versions AS v, unnest(v.record_id, v.label) AS m"
        ).fetchall()
    )
    members = db.execute("SELECT release, record_id, gid FROM mdistinct.ward_membership").fetchall()
    return Truth(
        {(release, gid, value_of[record]) for release, record, gid in members},
        {(release, int(record)): gid for release, record, gid in members},
    )


def standardized(ranks: Iterable[tuple[Sequence[int], int]]) -> float:
    """Return the rank sums of many samples as one standard normal variable, if chance drew them.

    Each sample comes with the number of ranks that it was drawn from.
    """
    excess = variance = 0.0
    for sample, total in ranks:
        n = len(sample)
        excess += sum(sample) - n * (total + 1) / 2
        variance += n * (total - n) * (total + 1) / 12
    assert variance > 0
    return excess / math.sqrt(variance)


def correlation(pairs: Iterable[Sequence[tuple[int, int]]]) -> float:
    """Return rank correlations of many samples as one standard normal variable."""
    total, samples = 0.0, 0
    for sample in pairs:
        first = _ranks([left for left, _ in sample])
        second = _ranks([right for _, right in sample])
        n = len(sample)
        mean = (n - 1) / 2
        above = sum((a - mean) * (b - mean) for a, b in zip(first, second, strict=True))
        spread = (sum((a - mean) ** 2 for a in first) * sum((b - mean) ** 2 for b in second)) ** 0.5
        total += above / spread * (n - 1) ** 0.5
        samples += 1
    return total / math.sqrt(samples)


def _ranks(values: Sequence[int]) -> list[float]:
    """Return ranks from 0; equal values share theirs."""
    places: dict[int, list[int]] = defaultdict(list)
    for place, value in enumerate(sorted(values)):
        places[value].append(place)
    return [sum(places[value]) / len(places[value]) for value in values]


def rows_as_read(db: Connection, plan: str) -> dict[int, list[tuple[int, int, str]]]:
    """Return the rows of every release in the order in which a reader gets them."""
    found = {}
    with acting_as(db, "mdistinct_reader"):
        if plan:
            db.execute(plan)
        for release in range(1, RELEASES + 1):
            found[release] = db.execute(
                "SELECT release, gid, disease FROM mdistinct_published.ward WHERE release = %s",
                (release,),
            ).fetchall()
        db.execute("RESET ALL")
    return found


def test_what_a_reader_gets_tells_neither_what_is_real_nor_whose_it_is(db: Connection) -> None:
    make_history(db, RELEASES)
    known = truth(db)
    counterfeits = one(db, "SELECT sum(counterfeits)::int FROM mdistinct.releases")
    assert counterfeits > 100
    for plan in PLANS:
        releases = rows_as_read(db, plan)
        fakes = [
            ([place for place, row in enumerate(rows, 1) if row not in known.real], len(rows))
            for rows in releases.values()
        ]
        assert sum(len(sample) for sample, _ in fakes) == counterfeits
        assert abs(standardized(fakes)) < NOISE * CLUSTERED, plan
        # The order of identifiers, which is that of the source's table, is not that of the rows.
        assert abs(correlation(_places_and_records(releases, known))) < NOISE * CLUSTERED, plan
    _gids_tell_nothing(db, known)
    # Values of a group are sorted: nothing of who has them, or whether anybody has, is in that.
    for (candidates,) in db.execute("SELECT candidates FROM mdistinct_data.ward_groups"):
        assert candidates == sorted(candidates)


def _places_and_records(
    releases: dict[int, list[tuple[int, int, str]]], known: Truth
) -> list[list[tuple[int, int]]]:
    pairs = []
    for release, rows in releases.items():
        first: dict[int, int] = {}
        for place, (_, gid, _) in enumerate(rows):
            first.setdefault(gid, place)
        pairs.append(
            [(first[gid], record) for (at, record), gid in known.group_of.items() if at == release]
        )
    return pairs


def _gids_tell_nothing(db: Connection, known: Truth) -> None:
    groups = dict(db.execute("SELECT release, groups FROM mdistinct.releases").fetchall())
    with_fakes: dict[int, list[int]] = defaultdict(list)
    for release, gid in db.execute(
        "SELECT release, gid FROM mdistinct_published.ward_counterfeits"
    ):
        with_fakes[release].append(gid)
    assert abs(standardized((with_fakes[number], groups[number]) for number in groups)) < NOISE
    oldest = {}
    for (release, record), gid in sorted(known.group_of.items(), reverse=True):
        oldest[release, gid] = record
    by_release: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for (release, gid), record in oldest.items():
        by_release[release].append((gid, record))
    assert abs(correlation(by_release.values())) < NOISE


def test_the_measures_are_not_blind() -> None:
    """Rows in an order that gives them away are far outside of noise."""
    counterfeits_last = [(list(range(56, 64)), 63)] * RELEASES
    assert abs(standardized(counterfeits_last)) > NOISE * CLUSTERED
    in_order = [[(place // 4, place) for place in range(RECORDS)]] * RELEASES
    assert abs(correlation(in_order)) > NOISE * CLUSTERED


def test_what_lies_behind_the_views_is_out_of_reach(db: Connection) -> None:
    make_history(db, 2)
    db.execute("ANALYZE")
    with acting_as(db, "mdistinct_reader"):
        for relation in ("ward", "ward_counterfeits", "releases"):
            for column in ("ctid", "xmin", "xmax", "cmin", "cmax", "tableoid"):
                with pytest.raises(psycopg.errors.UndefinedColumn):
                    db.execute(f"SELECT {column} FROM mdistinct_published.{relation}")
        for view in ("pg_stats", "pg_stats_ext", "pg_stats_ext_exprs"):
            found = db.execute(
                f"SELECT tablename FROM {view} WHERE schemaname LIKE 'mdistinct%'"
            ).fetchall()
            assert found == [], view
        for relation in (
            "pg_statistic",
            "mdistinct_data.ward_groups",
            "mdistinct_data.ward_g1",
            "mdistinct.releases",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                db.execute(f"SELECT * FROM {relation}")


def test_a_function_in_where_sees_no_more_than_the_view(db: Connection) -> None:
    """PostgreSQL may call it on rows that the view leaves out, unless the view is a barrier."""
    make_history(db, 2)
    db.execute("SELECT mdistinct_allow_update('ward', 'unpublished', '{unpublished}')")
    seen: set[str] = set()
    db.add_notice_handler(lambda notice: seen.add(str(notice.message_primary)))
    with acting_as(db, "mdistinct_reader"):
        for kind in ("text", "integer"):
            db.execute(
                f"CREATE FUNCTION pg_temp.leak({kind}) RETURNS boolean COST 0.0000001"
                " LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE '%', $1; RETURN true; END $$"
            )
        db.execute("SELECT count(*) FROM mdistinct_published.ward WHERE pg_temp.leak(disease)")
        assert seen == set(VALUES)
        seen.clear()
        db.execute("SELECT * FROM mdistinct_published.ward_counterfeits WHERE pg_temp.leak(count)")
        assert seen
        assert "0" not in seen


def test_a_plan_names_nothing_but_groups_and_values(db: Connection) -> None:
    make_history(db, 2)
    with acting_as(db, "mdistinct_reader"):
        for relation in ("ward", "ward_counterfeits"):
            plan = "\n".join(
                line
                for (line,) in db.execute(
                    "EXPLAIN (ANALYZE, VERBOSE, COSTS OFF)"
                    f" SELECT * FROM mdistinct_published.{relation}"
                )
            )
            touched = set(re.findall(r"mdistinct_data\.ward_(\w+?)\d*\b", plan))
            assert "g" in touched
            assert touched <= {"g", "domain"}, plan
