"""What a report tells, read from the database at one moment, with the rights of the caller."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from heapq import nsmallest
from typing import Any

import numpy as np
import psycopg
from psycopg import sql
from psycopg.rows import dict_row, scalar_row

from pg_mdistinct.client import (
    Client,
    DatasetInfo,
    NotAllowedError,
    Publication,
    Release,
    ReleaseInfo,
    UnknownDatasetError,
    VersionRisk,
    Violation,
)
from pg_mdistinct.client.connections import APPLICATION, plain
from pg_mdistinct.client.errors import translated
from pg_mdistinct.picture import UpdateGraphPicture
from pg_mdistinct.report.samples import Samples, sample
from pg_mdistinct.risk_figures import RiskFigures

Connection = psycopg.Connection[Any]

RISKIEST = 10


@dataclass(frozen=True)
class Update:
    """What a value may become by the next release, and how likely."""

    old_value: str
    new_value: str
    probability: float


@dataclass(frozen=True)
class ReleaseRisk:
    """The versions of one release, as sure as an adversary is of them who has all releases."""

    release: int
    figures: RiskFigures
    disclosed: int


@dataclass(frozen=True)
class Inside:
    """What only admins may know: it takes the membership, the model or the source to tell."""

    info: DatasetInfo
    publications: list[Publication]
    violations: list[Violation]
    risks: list[ReleaseRisk]
    total: ReleaseRisk
    riskiest: list[VersionRisk]
    updates: list[Update]
    samples: Samples
    record: UpdateGraphPicture | None

    @property
    def highest_risk(self) -> float | None:
        """The highest risk that was measured after any release."""
        return max((p.max_risk for p in self.publications if p.max_risk is not None), default=None)


@dataclass(frozen=True)
class Figures:
    """All that a report tells; `inside` is None in one for readers."""

    dataset: str
    made_at: datetime
    releases: list[ReleaseInfo]
    qi_columns: tuple[str, ...]
    sensitive_column: str
    group_sizes: dict[int, int]
    inside: Inside | None

    @property
    def latest(self) -> ReleaseInfo:
        """The latest release."""
        return self.releases[-1]


def read_figures(
    dsn: str, dataset: str, *, for_readers: bool = False, record: str | None = None
) -> Figures:
    """Reads the figures of a report; admins get theirs unless it is made `for_readers`."""
    with translated(), psycopg.connect(plain(dsn), application_name=APPLICATION) as connection:
        # All of a report is about the same releases, whatever is published meanwhile.
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        admin = not for_readers and _is_admin(connection)
        if record is not None and not admin:
            raise NotAllowedError(
                "only an admin's report shows the update graph of a record",
                hint="Connect as a member of mdistinct_admin, or leave the record out.",
                sqlstate="42501",
            )
        return _figures(connection, dataset, admin, record)


def _figures(connection: Connection, dataset: str, admin: bool, record: str | None) -> Figures:
    client = Client(connection)
    releases = client.releases(dataset)
    if not releases:
        raise UnknownDatasetError(
            f'there is no release of a dataset "{dataset}"',
            hint="`pg-mdistinct releases` lists what has been published.",
            sqlstate="42704",
        )
    latest = client.release(dataset)
    return Figures(
        dataset=dataset,
        made_at=_one(connection, sql.SQL("SELECT pg_catalog.now()")),
        releases=releases,
        qi_columns=latest.qi_columns,
        sensitive_column=latest.sensitive_column,
        group_sizes=_group_sizes(connection, latest),
        inside=_inside(connection, latest, record) if admin else None,
    )


def _inside(connection: Connection, latest: Release, record: str | None) -> Inside:
    dataset = Client(connection).dataset(latest.dataset)
    versions = dataset.risk()
    return Inside(
        info=dataset.info,
        publications=[
            Publication.of(row)
            for row in _rows(
                connection,
                "SELECT * FROM mdistinct.releases AS r WHERE r.dataset = %s ORDER BY r.release",
                dataset.name,
            )
        ],
        violations=dataset.verify(),
        risks=_by_release(versions),
        total=_risk(latest.release, versions),
        riskiest=nsmallest(RISKIEST, versions, key=lambda v: (-v.risk, v.record_id, v.release)),
        updates=[
            Update(**row)
            for row in _rows(
                connection,
                "SELECT u.old_value, u.new_value, u.probability FROM mdistinct.updates AS u"
                " WHERE u.dataset = %s AND u.probability > 0 ORDER BY 1, 2",
                dataset.name,
            )
        ],
        samples=sample(connection, dataset, latest),
        record=None if record is None else dataset.sug(record),
    )


def _is_admin(connection: Connection) -> bool:
    role = "SELECT pg_catalog.pg_has_role('mdistinct_admin', 'USAGE')"
    return bool(_one(connection, sql.SQL(role)))


def _group_sizes(connection: Connection, release: Release) -> dict[int, int]:
    """How many groups of a release have how many rows."""
    query = sql.SQL(
        "SELECT g.size, pg_catalog.count(*) AS groups FROM ("
        "SELECT pg_catalog.count(*) AS size FROM {} AS v WHERE v.release = %s GROUP BY v.gid"
        ") AS g GROUP BY g.size ORDER BY g.size"
    ).format(sql.Identifier("mdistinct_published", release.dataset))
    return dict(connection.execute(query, [release.release]).fetchall())


def _by_release(versions: Sequence[VersionRisk]) -> list[ReleaseRisk]:
    parts: dict[int, list[VersionRisk]] = {}
    for version in versions:
        parts.setdefault(version.release, []).append(version)
    return [_risk(release, part) for release, part in sorted(parts.items())]


def _risk(release: int, versions: Sequence[VersionRisk]) -> ReleaseRisk:
    return ReleaseRisk(
        release=release,
        figures=RiskFigures.of(np.array([v.risk for v in versions], dtype=np.float64)),
        disclosed=sum(version.candidates == 1 for version in versions),
    )


def _one(connection: Connection, query: sql.SQL) -> Any:
    with connection.cursor(row_factory=scalar_row) as cursor:
        return cursor.execute(query).fetchone()


def _rows(connection: Connection, query: str, dataset: str) -> list[dict[str, Any]]:
    with connection.cursor(row_factory=dict_row) as cursor:
        return cursor.execute(query.encode(), [dataset]).fetchall()
