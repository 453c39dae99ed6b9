"""What the attack found, in figures and names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from pg_mdistinct.core.arrays import BoolArray, IntArray
from pg_mdistinct.core.attack import Attack, attack
from pg_mdistinct.core.joint import STEP_LIMIT, JointRisks, joint_risks
from pg_mdistinct.core.update_graph import candidates
from pg_mdistinct.foreign.loading import ForeignReleases
from pg_mdistinct.risk_figures import RiskFigures

NAMED = 10
_HIGHER = 1e-9


@dataclass(frozen=True)
class Disclosed:
    """A record's first version whose value is certain, out of that many published candidates.

    ``versions`` counts all its versions that are.
    """

    record: str
    release: str
    value: str
    candidates: int
    versions: int


@dataclass(frozen=True)
class ImpossibleUpdate:
    """An update in the data that the model calls impossible."""

    record: str
    release: str
    old_value: str
    new_value: str


@dataclass(frozen=True)
class ReleaseFigures:
    """One release after all of them were seen; ``candidates`` and ``pruned`` add up versions."""

    release: str
    versions: int
    candidates: int
    pruned: int
    disclosed: int
    disclosed_share: float
    contradictory: int
    risk: RiskFigures


@dataclass(frozen=True)
class JointFigures:
    """What comes out beyond the per-record graphs when all groups are looked at together.

    ``pruned_beyond`` are candidates that only the joint attack rules out, ``disclosed_beyond``
    versions that only it discloses, and ``risen`` those whose risk it lifts.
    """

    pruned_beyond: int
    disclosed: int
    disclosed_beyond: int
    disclosed_records_beyond: int
    risen: int
    risk: RiskFigures
    first_disclosed_beyond: list[Disclosed]


@dataclass(frozen=True)
class AttackReport:
    """The attack on a whole history; only the first few records are named."""

    records: int
    disclosed_records: int
    total: ReleaseFigures
    releases: list[ReleaseFigures]
    first_disclosed: list[Disclosed]
    impossible_updates: int
    first_impossible_updates: list[ImpossibleUpdate]
    joint: JointFigures | None


def examine(
    loaded: ForeignReleases, *, joint: bool = False, joint_limit: int = STEP_LIMIT
) -> AttackReport:
    """Attack releases with the core and say what it found; ``joint`` suits small data only."""
    found = attack(loaded.history, loaded.model)
    history = loaded.history
    everything = np.ones(len(history.record), dtype=np.bool_)
    impossible = _impossible_updates(loaded)
    return AttackReport(
        records=len(np.unique(history.record)),
        disclosed_records=len(np.unique(history.record[found.disclosed])),
        total=_figures("all", found, everything),
        releases=list(_by_release(loaded, found)),
        # Where the data contradict the model, the value that is left may be a wrong one.
        first_disclosed=_named(loaded, found.disclosed[found.risk[found.disclosed] > 0]),
        impossible_updates=len(impossible),
        first_impossible_updates=[_update(loaded, int(v)) for v in impossible[:NAMED]],
        joint=_joint(loaded, found, joint_limit) if joint else None,
    )


def _by_release(loaded: ForeignReleases, found: Attack) -> Iterator[ReleaseFigures]:
    release = loaded.history.version_release
    for number, name in loaded.releases.items():
        yield _figures(name, found, release == number)


def _figures(release: str, found: Attack, chosen: BoolArray) -> ReleaseFigures:
    published, left = found.published[chosen], found.left[chosen]
    disclosed = int((left == 1).sum())
    return ReleaseFigures(
        release=release,
        versions=len(left),
        candidates=int(published.sum()),
        pruned=int((published - left).sum()),
        disclosed=disclosed,
        disclosed_share=disclosed / max(len(left), 1),
        contradictory=int((left == 0).sum()),
        risk=RiskFigures.of(found.risk[chosen]),
    )


def _joint(loaded: ForeignReleases, found: Attack, limit: int) -> JointFigures:
    joint: JointRisks = joint_risks(loaded.history, loaded.model, limit)
    beyond = np.flatnonzero((joint.candidates == 1) & (found.left != 1))
    return JointFigures(
        pruned_beyond=int((found.left - joint.candidates).sum()),
        disclosed=int((joint.candidates == 1).sum()),
        disclosed_beyond=len(beyond),
        disclosed_records_beyond=len(np.unique(loaded.history.record[beyond])),
        risen=int((joint.risk > found.risk + _HIGHER).sum()),
        risk=RiskFigures.of(joint.risk),
        first_disclosed_beyond=_named(loaded, beyond),
    )


def _named(loaded: ForeignReleases, versions: IntArray) -> list[Disclosed]:
    """Name the first few records that some versions belong to."""
    history = loaded.history
    sizes = candidates(history.rows).values.lengths
    _, first, counts = np.unique(history.record[versions], return_index=True, return_counts=True)
    return [
        Disclosed(
            record=loaded.records[history.record[version]],
            release=loaded.releases[int(history.version_release[version])],
            value=loaded.model.labels[history.value[version]],
            candidates=int(sizes[history.group[version]]),
            versions=int(count),
        )
        for version, count in zip(versions[first[:NAMED]], counts, strict=False)
    ]


def _impossible_updates(loaded: ForeignReleases) -> IntArray:
    """Return the versions whose value the model does not let follow the one before."""
    history = loaded.history
    later = np.flatnonzero(~history.is_first)
    gaps = history.gap[later]
    possible = np.ones(len(later), dtype=np.bool_)
    for gap in np.unique(gaps):
        rows = later[gaps == gap]
        reach = loaded.model.reach(int(gap))
        possible[gaps == gap] = reach[history.value[rows - 1], history.value[rows]]
    return later[~possible]


def _update(loaded: ForeignReleases, version: int) -> ImpossibleUpdate:
    history, labels = loaded.history, loaded.model.labels
    return ImpossibleUpdate(
        record=loaded.records[history.record[version]],
        release=loaded.releases[int(history.version_release[version])],
        old_value=labels[history.value[version - 1]],
        new_value=labels[history.value[version]],
    )
