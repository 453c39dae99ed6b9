"""Publishes something tiny, so that all is compiled when installing, never when publishing."""

from __future__ import annotations

import compileall
from pathlib import Path

import numpy as np

import pg_mdistinct
from pg_mdistinct.core.arrays import BoolArray, FloatArray, IntArray, Ragged
from pg_mdistinct.core.flow import Network
from pg_mdistinct.core.history import sorted_history
from pg_mdistinct.core.knowledge import recall
from pg_mdistinct.core.model import M_DISTINCT, UpdateModel
from pg_mdistinct.core.publication import Release, plan_release
from pg_mdistinct.core.snapshot import QiColumn, Snapshot
from pg_mdistinct.core.texts import TextIndex, Texts, digits, with_zero_bytes
from pg_mdistinct.core.update_graph import risks
from pg_mdistinct.core.verify import find_violations
from pg_mdistinct.server.errors import entry_point
from pg_mdistinct.server.plpython import Plpy

RECORDS, VALUES, M = 60, 8, 3


@entry_point
def compile_core(plpy: Plpy) -> None:
    """Run every kernel: publish twice under models of different kinds, and verify."""
    # Python does not keep what it compiles where PYTHONDONTWRITEBYTECODE is set; nothing can be
    # done where the folder is not the server's own.
    compileall.compile_dir(Path(pg_mdistinct.__file__).parent, quiet=2)
    apart = np.arange(VALUES) // 4
    TextIndex(Texts.of("abc"), 0).find(Texts.of("cd"))
    with_zero_bytes(b"a, b", b", ")
    Texts.of("abc").take(np.array([2, 0])).joined()
    digits(np.arange(VALUES), ",")
    # Asked for where a bucket needs more groups than it has at first, which may not happen below.
    network = Network(2)
    network.add(np.array([0]), np.array([1]), np.array([1]))
    network.reachable(0)
    for reach in (apart[:, None] == apart, _chain()):
        model = UpdateModel(_equally_likely(reach), np.ones(VALUES, bool), "abcdefgh")
        # For records that were away.
        model.reach(2)
        model.power(2)
        _publish_twice(model)


def _chain() -> BoolArray:
    """Let each value stay or become the next one: reach sets that overlap."""
    return (np.eye(VALUES) + np.eye(VALUES, k=1)) > 0


def _equally_likely(reach: BoolArray) -> FloatArray:
    shares: FloatArray = reach / reach.sum(axis=1, keepdims=True)
    return shares


def _publish_twice(model: UpdateModel) -> None:
    rng = np.random.default_rng(0)
    nobody = np.full(RECORDS, -1, dtype=np.int64)
    snapshots = [_snapshot(rng, rng.integers(VALUES, size=RECORDS), nobody, Ragged.of([]), nobody)]
    releases = [plan_release(snapshots[0], model, M, M_DISTINCT, rng)]
    before = snapshots[0].value
    after = np.array([rng.choice(np.flatnonzero(model.reach()[value])) for value in before])
    # A few records are new, so that they meet those with a history.
    came_from = np.where(np.arange(RECORDS) < RECORDS - 10, releases[0].group, -1)
    last_value = np.where(came_from >= 0, before, -1)
    snapshots.append(_snapshot(rng, after, came_from, releases[0].candidates, last_value))
    releases.append(plan_release(snapshots[1], model, M, M_DISTINCT, rng))
    _verify(model, snapshots, releases)


def _snapshot(
    rng: np.random.Generator,
    value: IntArray,
    last_group: IntArray,
    last_candidates: Ragged,
    last_value: IntArray,
) -> Snapshot:
    spread = np.arange(VALUES, dtype=np.float64)
    return Snapshot(
        value=value,
        qi=tuple(
            QiColumn(rng.integers(VALUES, size=RECORDS), spread, is_set) for is_set in (False, True)
        ),
        last_group=last_group,
        gap=(last_group >= 0).astype(np.int64),
        last_candidates=last_candidates,
        last_value=last_value,
    )


def _verify(model: UpdateModel, snapshots: list[Snapshot], releases: list[Release]) -> None:
    sizes = [len(release.counterfeits) for release in releases]
    lengths = np.concatenate([release.candidates.lengths for release in releases])
    newcomers = snapshots[1].last_group < 0
    returned = np.where(newcomers, RECORDS, 0) + np.arange(RECORDS)
    history = sorted_history(
        release=np.repeat([1, 2], sizes),
        gid=np.concatenate([np.arange(size) + 1 for size in sizes]),
        rows=Ragged(
            np.concatenate(([0], np.cumsum(lengths))),
            np.concatenate([release.candidates.items for release in releases]),
        ),
        counterfeits=np.concatenate([release.counterfeits for release in releases]),
        record=np.concatenate([np.arange(RECORDS), returned]),
        group=np.concatenate([releases[0].group, sizes[0] + releases[1].group]),
        value=np.concatenate([snapshot.value for snapshot in snapshots]),
    )
    risks(history, model)
    recall(history, model)
    if any(find_violations(history, model, [M] * len(history.release), M_DISTINCT)):
        raise AssertionError("the core does not keep its own principle on this machine")
