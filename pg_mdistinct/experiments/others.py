"""Side by side with what people use today: anonypy and anonypyx, measured by pycanon too.

All tools get the same snapshots. None of the others knows of releases before, which is the point:
each of their tables is 4-diverse, and pycanon certifies it.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from pg_mdistinct.core.arrays import IntArray
from pg_mdistinct.core.attack import attack
from pg_mdistinct.core.history import History
from pg_mdistinct.experiments.boxes import Boxes, boxes_of_groups, boxes_of_release, ncp
from pg_mdistinct.experiments.publisher import Publisher
from pg_mdistinct.experiments.queries import median_error
from pg_mdistinct.experiments.records import Recorder, workload_model
from pg_mdistinct.experiments.registry import (
    Cell,
    Chart,
    Experiment,
    Outcome,
    Progress,
    Setting,
    Table,
)
from pg_mdistinct.workload import QI_COLUMNS, SnapshotArray, Workload

M = 4
RELEASES = 10
SENSITIVE = "occupation"


@dataclass(frozen=True)
class Published:
    """All releases of a tool, the last one as it is shown, and the seconds that each took."""

    history: History
    boxes: Boxes
    seconds: Sequence[float]


def workload(setting: Setting) -> Workload:
    """Return a tenth of the paper's workload: the other tools take minutes for the whole."""
    return Workload(
        initial=setting.size(2_000),
        insertions=setting.size(500),
        deletions=setting.size(200),
        updates=setting.size(500),
        seed=setting.seed,
    )


def publish_ourselves(snapshots: Sequence[SnapshotArray], setting: Setting) -> Published:
    """Publish m-Distinct releases with the core."""
    publisher = Publisher(workload_model(workload(setting)), M, rng=setting.rng("others"))
    seconds = []
    for people in snapshots:
        started = time.process_time()
        release = publisher.publish(people)
        seconds.append(time.process_time() - started)
    return Published(publisher.history(), boxes_of_release(people, release), seconds)


def publish_with_anonypy(snapshots: Sequence[SnapshotArray]) -> Published:
    """Publish 4-diverse tables with anonypy, in the two steps that its Preserver takes."""
    anonypy = importlib.import_module("anonypy.anonypy")
    mondrian = importlib.import_module("anonypy.mondrian")

    def partition(frame: Any) -> Any:
        parts = mondrian.Mondrian(frame, list(QI_COLUMNS), SENSITIVE).partition(k=M, l=M)
        anonypy.anonymize(frame, parts, list(QI_COLUMNS), SENSITIVE)
        return parts

    return _publish(snapshots, partition)


def publish_with_anonypyx(snapshots: Sequence[SnapshotArray]) -> Published:
    """Publish 4-diverse tables with anonypyx, in the two steps that its Anonymiser takes."""
    anonypyx = importlib.import_module("anonypyx")
    generalisation = importlib.import_module("anonypyx.generalisation")

    def partition(frame: Any) -> Any:
        anonymiser = anonypyx.Anonymiser(
            frame, k=M, l=M, feature_columns=list(QI_COLUMNS), sensitive_column=SENSITIVE
        )
        parts = anonymiser.algorithm.partition(anonymiser.parameters)
        shown = generalisation.MachineReadable.create_for_data(frame, list(QI_COLUMNS))
        shown.generalise(frame, parts)
        return parts

    return _publish(snapshots, partition)


def _publish(snapshots: Sequence[SnapshotArray], partition: Callable[[Any], Any]) -> Published:
    """Publish every snapshot by itself; parts are indexes of a data frame."""
    recorder, seconds = Recorder(), []
    for people in snapshots:
        frame = _frame({name: people[name] for name in (*QI_COLUMNS, SENSITIVE)})
        started = time.process_time()
        parts = partition(frame)
        seconds.append(time.process_time() - started)
        group = _groups(parts, len(people))
        boxes = boxes_of_groups(people, group)
        recorder.add(people["id"], group, people[SENSITIVE], boxes.rows, boxes.counterfeits)
    return Published(recorder.history(), boxes, seconds)


def _groups(parts: Any, records: int) -> IntArray:
    group = np.full(records, -1, dtype=np.int64)
    for number, part in enumerate(parts):
        group[np.asarray(part)] = number
    if (group < 0).any():
        raise ValueError("some record is in no group")
    return group


def _frame(columns: dict[str, Any]) -> Any:
    """Return a data frame as the others want it: sensitive values are categories."""
    pandas = importlib.import_module("pandas")
    frame = pandas.DataFrame(columns)
    frame[SENSITIVE] = frame[SENSITIVE].astype(str).astype("category")
    return frame


def measured_by_pycanon(boxes: Boxes) -> tuple[int, int]:
    """Return k and ℓ of a release's table, as somebody else's program sees it."""
    pycanon = importlib.import_module("pycanon.anonymity")
    row = boxes.rows.row_of_item
    shown = {
        name: np.array([f"{a}-{b}" for a, b in zip(low[row], high[row], strict=True)])
        for name, low, high in zip(QI_COLUMNS, boxes.low, boxes.high, strict=True)
    }
    frame = _frame(shown | {SENSITIVE: boxes.rows.items})
    names = list(QI_COLUMNS)
    return int(pycanon.k_anonymity(frame, names)), int(
        pycanon.l_diversity(frame, names, [SENSITIVE])
    )


COLUMNS = (
    "tool",
    "records",
    "seconds",
    "seconds_all_releases",
    "ncp",
    "median_error",
    "pycanon_k",
    "pycanon_l",
    "disclosed",
    "mean_risk",
)
"""Processor seconds, records, NCP, error, k and ℓ are those of the last release; the attack is on
all of them."""


def side_by_side(setting: Setting, progress: Progress) -> Outcome:
    """Publish the same snapshots with all tools, and attack what they publish."""
    model = workload_model(workload(setting))
    snapshots = list(workload(setting).releases(RELEASES))
    # Whatever has to be compiled or loaded is, before anything is timed.
    publish_ourselves(snapshots[:2], setting)
    tools: dict[str, Callable[[Sequence[SnapshotArray]], Published]] = {
        "anonypy": publish_with_anonypy,
        "anonypyx": publish_with_anonypyx,
        "pg_mdistinct": partial(publish_ourselves, setting=setting),
    }
    rows: list[tuple[Cell, ...]] = []
    for turn, (name, publish) in enumerate(tools.items()):
        progress(name, turn / len(tools))
        published = publish(snapshots)
        found = attack(published.history, model)
        rows.append(
            (
                name,
                len(snapshots[-1]),
                published.seconds[-1],
                sum(published.seconds),
                ncp(snapshots[-1], published.boxes),
                median_error(snapshots[-1], published.boxes, setting.rng("queries", RELEASES)),
                *measured_by_pycanon(published.boxes),
                len(found.disclosed) / len(found.left),
                float(found.risk.mean()),
            )
        )
    table = Table("others", COLUMNS, tuple(rows))
    chart = Chart(
        name="others",
        table=table,
        x="tool",
        y="disclosed",
        x_label="tool",
        y_label="values disclosed after 10 releases",
        bars=True,
        percent=True,
    )
    return Outcome((table,), (chart,))


EXPERIMENTS = (
    Experiment(
        "others",
        "Side by side with other tools",
        "Existing methods cannot deal with values that change.",
        side_by_side,
        needs=("anonypy", "anonypyx", "pycanon"),
    ),
)
