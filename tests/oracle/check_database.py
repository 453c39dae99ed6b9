"""Runs the checker on everything that a database has published, reading through SQL only."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import psycopg
from psycopg import sql

from tests.oracle.checker import signature_changes, violations
from tests.oracle.history import Group, Release, UpdateModel, versions_by_record

SMALL = 20_000
"""Up to so many versions every update graph is explored; beyond, those with a dead end."""


@dataclass
class ReleaseFigures:
    """What one release holds, counted from its rows."""

    release: int
    m: int
    groups: int
    rows: int
    records: int
    counterfeits: int


@dataclass
class DatasetReport:
    """What the checker found out about one dataset."""

    dataset: str
    variant: str
    releases: list[ReleaseFigures] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)


def check_database(connection: psycopg.Connection) -> list[str]:
    """Every violation in every dataset of the database; an empty list: all is well."""
    return [
        f"{report.dataset}: {violation}"
        for report in inspect_database(connection)
        for violation in report.violations
    ]


def inspect_database(connection: psycopg.Connection) -> list[DatasetReport]:
    """The same by dataset, with the figures of each release."""
    with _garbage_left_alone():
        return list(_reports(connection))


@contextmanager
def _garbage_left_alone() -> Iterator[None]:
    """A long history is millions of small objects, none of them garbage: looking is dear."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _reports(connection: psycopg.Connection) -> Iterator[DatasetReport]:
    rows = connection.execute(
        """
        SELECT dataset::text, array_agg(release ORDER BY release), array_agg(m ORDER BY release),
               array_agg(variant ORDER BY release),
               array_agg(rows ORDER BY release), array_agg(groups ORDER BY release),
               array_agg(counterfeits ORDER BY release)
        FROM mdistinct_published.releases GROUP BY dataset ORDER BY dataset
        """
    ).fetchall()
    for dataset, numbers, bounds, variants, *announced in rows:
        report = DatasetReport(dataset, variants[-1])
        report.violations += _numbering(numbers, variants)
        loader = _Loader(connection, dataset)
        history = loader.history(max(numbers, default=0))
        report.violations += loader.problems
        report.releases = [
            _figures(number, m, release)
            for number, m, release in zip(numbers, bounds, history, strict=False)
        ]
        report.violations += _announced(report.releases, *announced)
        if not report.violations:
            report.violations += _invariant_before(history, variants)
            report.violations += loader.forbidden_updates()
            versions = sum(figures.records for figures in report.releases)
            report.violations += violations(
                history,
                loader.model(),
                bounds,
                report.variant,
                explore_graphs=versions <= SMALL,
            )
        yield report


class _Loader:
    """Reads one dataset's releases, and notes where its relations contradict one another."""

    def __init__(self, connection: psycopg.Connection, dataset: str) -> None:
        self.problems: list[str] = []
        self._connection = connection
        self._dataset = dataset
        self._published = sql.Identifier("mdistinct_published", dataset)
        self._columns, self._sensitive_type = self._describe()

    def _describe(self) -> tuple[list[str], str]:
        """The view's columns in order; the contract puts the sensitive one last."""
        rows = self._connection.execute(
            """
            SELECT attname::text, format_type(atttypid, atttypmod) FROM pg_attribute
            WHERE attrelid = format('%%I.%%I', 'mdistinct_published', %s::text)::regclass
              AND attnum > 0 AND NOT attisdropped
            ORDER BY attnum
            """,
            [self._dataset],
        ).fetchall()
        columns = [name for name, _ in rows]
        if columns[:2] != ["release", "gid"]:
            self.problems.append(f"the published view begins with {columns[:2]}")
        return columns, rows[-1][1]

    def history(self, last: int) -> list[Release]:
        """Releases 1 to `last`, joined from the three relations that show them."""
        counterfeits = self._counterfeits()
        members = self._members()
        history: list[dict[int, Group]] = [{} for _ in range(last)]
        shared: dict[tuple[str, ...], tuple[str, ...]] = {}
        for release, gid, values, generalizations in self._rows():
            if generalizations != 1:
                self.problems.append(f"release {release}, group {gid}: QI differ within the group")
            if not 1 <= release <= last:
                self.problems.append(f"release {release} is published, but not in releases")
                continue
            names = members.pop((release, gid), [])
            if len(set(names)) != len(names):
                self.problems.append(f"release {release}, group {gid}: a member is listed twice")
            # One tuple for all groups with the same values: the checker compares them often.
            candidates = shared.setdefault(tuple(values), tuple(values))
            history[release - 1][gid] = Group(
                candidates, dict.fromkeys(names), counterfeits.pop((release, gid), 0)
            )
        self._leftovers("members", members)
        self._leftovers("counterfeits", counterfeits)
        return list(history)

    def forbidden_updates(self) -> Iterator[str]:
        """A model where there must be none: the dataset is registered as m-invariance."""
        row = self._connection.execute(
            "SELECT variant FROM mdistinct.datasets WHERE dataset = %s", [self._dataset]
        ).fetchone()
        if row == ("m-invariance",) and self.model():
            yield "m-invariance knows no updates, but some are declared"

    def model(self) -> UpdateModel:
        """The declared updates, under the text that the published view shows values as."""
        # The type's name comes from format_type, which quotes it.
        cast = sql.SQL(self._sensitive_type)
        rows = self._connection.execute(
            sql.SQL(
                "SELECT (old_value::{0})::text, (new_value::{0})::text, probability "
                "FROM mdistinct.updates WHERE dataset = %s"
            ).format(cast),
            [self._dataset],
        )
        model: dict[str, dict[str, float]] = {}
        for old, new, probability in rows:
            model.setdefault(old, {})[new] = probability
        return model

    def _rows(self) -> Iterator[tuple[int, int, list[str], int]]:
        *qi, sensitive = self._columns[2:]
        query = sql.SQL(
            "SELECT release, gid, array_agg({value}::text ORDER BY {value}::text), "
            "count(DISTINCT ROW({qi})) FROM {view} GROUP BY release, gid"
        ).format(
            value=sql.Identifier(sensitive),
            qi=sql.SQL(", ").join(map(sql.Identifier, qi)),
            view=self._published,
        )
        yield from self._connection.execute(query)

    def _counterfeits(self) -> dict[tuple[int, int], int]:
        view = sql.Identifier("mdistinct_published", f"{self._dataset}_counterfeits")
        rows = self._connection.execute(
            sql.SQL("SELECT release, gid, count FROM {}").format(view)
        ).fetchall()
        counts = {(release, gid): count for release, gid, count in rows}
        if len(counts) != len(rows) or any(count <= 0 for count in counts.values()):
            self.problems.append("counterfeit statistics list a group twice or a count of zero")
        return counts

    def _members(self) -> dict[tuple[int, int], list[str]]:
        view = sql.Identifier("mdistinct", f"{self._dataset}_membership")
        rows = self._connection.execute(
            sql.SQL(
                "SELECT release, gid, array_agg(record_id) FROM {} GROUP BY release, gid"
            ).format(view)
        )
        return {(release, gid): names for release, gid, names in rows}

    def _leftovers(self, what: str, groups: Iterable[tuple[int, int]]) -> None:
        for release, gid in groups:
            self.problems.append(f"release {release}, group {gid}: {what} of an unpublished group")


def _numbering(numbers: list[int], variants: list[str]) -> Iterator[str]:
    """Releases count up, and the variant stays; only m-invariance may be given up for another."""
    if numbers != list(range(1, len(numbers) + 1)):
        yield f"releases are numbered {numbers}"
    given_up = variants.count("m-invariance")
    if len(set(variants[given_up:])) > 1 or "m-invariance" in variants[given_up:]:
        yield f"the variant changed: {variants}"


def _invariant_before(history: list[Release], variants: list[str]) -> Iterator[str]:
    """What is wrong with the releases that were m-invariant, where later ones need not be."""
    until = variants.count("m-invariance")
    if until < len(variants):
        for record, versions in versions_by_record(history[:until]).items():
            yield from signature_changes(record, versions)


def _figures(number: int, m: int, release: Release) -> ReleaseFigures:
    return ReleaseFigures(
        release=number,
        m=m,
        groups=len(release),
        rows=sum(len(group.values) for group in release.values()),
        records=sum(len(group.members) for group in release.values()),
        counterfeits=sum(group.counterfeits for group in release.values()),
    )


def _announced(
    figures: list[ReleaseFigures], rows: list[int], groups: list[int], counterfeits: list[int]
) -> Iterator[str]:
    for counted, *said in zip(figures, rows, groups, counterfeits, strict=True):
        found = [counted.rows, counted.groups, counted.counterfeits]
        if found != said:
            yield f"release {counted.release} says rows, groups, counterfeits {said}, has {found}"
