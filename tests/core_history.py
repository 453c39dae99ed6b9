"""Publishes a history with the core alone, keeping outside it what a database would keep."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from pg_mdistinct.core.arrays import Ragged
from pg_mdistinct.core.model import UpdateModel
from pg_mdistinct.core.publication import Release, plan_release
from pg_mdistinct.core.snapshot import QiColumn, Snapshot
from tests.oracle.checker import violations
from tests.oracle.history import Group
from tests.strategies import HistorySpec, ModelSpec, Row


@dataclass(frozen=True)
class LastVersion:
    """Where a record was last seen."""

    release: int
    candidates: tuple[int, ...]
    value: int


@dataclass
class CoreHistory:
    """A dataset without a database: `publish` it again and again, then look at `violations`."""

    model: ModelSpec
    m: int
    variant: str
    qi_is_set: tuple[bool, ...]
    rng: np.random.Generator
    releases: list[dict[int, Group]] = field(default_factory=list)
    plans: list[Release] = field(default_factory=list)
    snapshots: list[dict[str, str]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    last: dict[str, LastVersion] = field(default_factory=dict)

    @classmethod
    def of(cls, spec: HistorySpec, seed: int = 0) -> CoreHistory:
        """Ready to publish the snapshots of `spec`."""
        rng = np.random.default_rng(seed)
        return cls(spec.model, spec.m, spec.variant, spec.qi_is_set, rng)

    @classmethod
    def run(cls, spec: HistorySpec, seed: int = 0) -> CoreHistory:
        """Publishes everything in `spec`."""
        history = cls.of(spec, seed)
        for rows in spec.snapshots:
            history.publish(rows)
        return history

    def snapshot(self, rows: Mapping[str, Row]) -> Snapshot:
        """The arrays that the core wants for the next release of `rows`."""
        release = len(self.releases) + 1
        last = [self.last.get(record) for record in rows]
        groups: dict[tuple[int, tuple[int, ...]], int] = {}
        for version in last:
            if version is not None:
                groups.setdefault((version.release, version.candidates), len(groups))
        return Snapshot(
            value=_ints([row.value for row in rows.values()]),
            qi=tuple(
                _qi_column([row.qi[i] for row in rows.values()], is_set)
                for i, is_set in enumerate(self.qi_is_set)
            ),
            last_group=_ints([-1 if v is None else groups[v.release, v.candidates] for v in last]),
            gap=_ints([0 if v is None else release - v.release for v in last]),
            last_candidates=Ragged.of([candidates for _, candidates in groups]),
            last_value=_ints([-1 if v is None else v.value for v in last]),
        )

    def publish(self, rows: Mapping[str, Row]) -> Release:
        """Plans one release and remembers it."""
        snapshot = self.snapshot(rows)
        known = np.ones(len(self.model.labels), dtype=np.bool_)
        model = UpdateModel(self.model.transition, known, self.model.labels)
        plan = plan_release(snapshot, model, self.m, self.variant, self.rng)
        self._remember(rows, plan)
        number = len(self.releases)
        self.problems += [f"release {number}: {p}" for p in _uncovered(snapshot, plan)]
        return plan

    def violations(self) -> list[str]:
        """Everything that the independent checker has to say, and QI that are not covered."""
        return self.problems + violations(
            self.releases,
            self.model.by_label,
            self.m,
            self.variant,
            snapshots=self.snapshots,
        )

    def _remember(self, rows: Mapping[str, Row], plan: Release) -> None:
        labels = self.model.labels
        number = len(self.releases) + 1
        members: dict[int, dict[str, str | None]] = {}
        for (record, row), group in zip(rows.items(), plan.group.tolist(), strict=True):
            members.setdefault(group, {})[record] = labels[row.value]
            candidates = tuple(plan.candidates.row(group).tolist())
            self.last[record] = LastVersion(number, candidates, row.value)
        self.releases.append(
            {
                group + 1: Group(
                    tuple(labels[code] for code in plan.candidates.row(group).tolist()),
                    members.get(group, {}),
                    int(plan.counterfeits[group]),
                )
                for group in range(len(plan.candidates))
            }
        )
        self.plans.append(plan)
        self.snapshots.append({record: labels[row.value] for record, row in rows.items()})


def _ints(values: Sequence[int]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array(values, dtype=np.int64)


def _qi_column(values: list[int], is_set: bool) -> QiColumn:
    distinct = sorted(set(values))
    rank = {value: i for i, value in enumerate(distinct)}
    positions = range(len(distinct)) if is_set else distinct
    return QiColumn(
        code=_ints([rank[value] for value in values]),
        position=np.array(positions, dtype=np.float64),
        is_set=is_set,
    )


def _uncovered(snapshot: Snapshot, plan: Release) -> Iterator[str]:
    """Records whose own QI value lies outside their group's range or set."""
    for i, column in enumerate(snapshot.qi):
        low, high, members = plan.low[i], plan.high[i], plan.members[i]
        for record, group in enumerate(plan.group.tolist()):
            code = int(column.code[record])
            if not low[group] <= code <= high[group]:
                yield f"QI {i} of row {record} is outside the range of group {group}"
            if column.is_set and (members is None or code not in members.row(group).tolist()):
                yield f"QI {i} of row {record} is not in the set of group {group}"
