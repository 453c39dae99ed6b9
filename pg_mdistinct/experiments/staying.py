"""What happens to the risk when values mostly stay what they are.

The paper takes all possible updates for equally likely, although it lets 5,000 of 20,000 records
change in a release, and ever smaller shares after that. Here records change as often as the
adversary's model says: the same reach sets, other probabilities.
"""

from __future__ import annotations

import numpy as np

from pg_mdistinct.core.arrays import FloatArray
from pg_mdistinct.core.attack import attack
from pg_mdistinct.core.history import History
from pg_mdistinct.core.model import UpdateModel
from pg_mdistinct.experiments.publisher import Publisher
from pg_mdistinct.experiments.registry import Chart, Experiment, Outcome, Progress, Setting, Table
from pg_mdistinct.workload import Workload

M = 4
D = 10
RELEASES = 10
STAYING = (0.1, 0.5, 0.75, 0.9, 0.97)
"""How likely a value stays; the first is what equal probabilities mean at d = 10."""

ALMOST_SURE = 0.9


def workload(setting: Setting, staying: float) -> Workload:
    """Return records as many of which change as values do not stay; a tenth is replaced."""
    records, replaced = setting.size(20_000), setting.size(2_000)
    return Workload(
        d=D,
        deletions=replaced,
        insertions=replaced,
        updates=round((1 - staying) * (records - replaced)),
        initial=records,
        seed=setting.seed,
    )


def model(workload: Workload, staying: float) -> UpdateModel:
    """Return the model: a value stays, or becomes any other of its class equally likely."""
    labels, equal = workload.model()
    others: FloatArray = (equal > 0).astype(np.float64) - np.eye(len(labels))
    transition = others / others.sum(axis=1, keepdims=True) * (1 - staying)
    transition += staying * np.eye(len(labels))
    return UpdateModel(transition, np.ones(len(labels), dtype=np.bool_), labels)


def publish(setting: Setting, staying: float) -> History:
    """Publish m-Distinct releases."""
    people = workload(setting, staying)
    publisher = Publisher(model(people, staying), M, rng=setting.rng("staying", staying))
    for snapshot in people.releases(RELEASES):
        publisher.publish(snapshot)
    return publisher.history()


def versus_time(setting: Setting, progress: Progress) -> Outcome:
    """Attack after every release, knowing how likely values stay."""
    rows = []
    for turn, staying in enumerate(STAYING):
        history = publish(setting, staying)
        known = model(workload(setting, staying), staying)
        for releases in range(1, RELEASES + 1):
            progress(f"{staying:.0%} stay", (turn + releases / RELEASES) / len(STAYING))
            found = attack(history.until(releases), known)
            risk = found.risk
            above = float((risk > 1 / M + 1e-9).mean())
            sure = float((risk >= ALMOST_SURE).mean())
            rows.append(
                (
                    f"{staying:.0%} stay",
                    releases,
                    float(risk.mean()),
                    float(risk.max()),
                    above,
                    sure,
                    len(found.disclosed),
                )
            )
    columns = (
        "values",
        "releases",
        "mean_risk",
        "max_risk",
        "above_1/m",
        "almost_sure",
        "disclosed",
    )
    table = Table("staying", columns, tuple(rows))
    chart = Chart(
        name="staying",
        table=table,
        x="releases",
        y="mean_risk",
        x_label="releases",
        y_label="mean risk of all versions, m = 4",
        by="values",
        percent=True,
    )
    return Outcome((table,), (chart,))


EXPERIMENTS = (
    Experiment(
        "staying",
        "Risk when values mostly stay",
        "All updates that are possible are equally likely; m-Distinct then leaves every version at "
        "least m candidates that cannot be told apart.",
        versus_time,
    ),
)
