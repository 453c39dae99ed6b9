"""Real panels: what ℓ-diversity gives away there, what risk remains otherwise, and what that costs.

The paper had no data with real updates of values, and took all possible updates for equally likely.
Here possible updates are those that were seen, and everything is attacked twice: by an adversary
who takes them for equally likely, and by one who knows how likely they were.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from pg_mdistinct.core.attack import attack
from pg_mdistinct.core.errors import MdistinctError
from pg_mdistinct.core.history import History
from pg_mdistinct.core.model import M_DISTINCT, M_DISTINCT_STAR, M_INVARIANCE, UpdateModel
from pg_mdistinct.experiments import panels_data
from pg_mdistinct.experiments.baselines import BASELINES, EXACT, MONDRIAN_DISTINCT
from pg_mdistinct.experiments.boxes import Boxes, boxes_of_groups, boxes_of_release, ncp
from pg_mdistinct.experiments.invariance import in_signature
from pg_mdistinct.experiments.panels_data import Panel
from pg_mdistinct.experiments.publisher import Publisher
from pg_mdistinct.experiments.queries import median_error
from pg_mdistinct.experiments.registry import (
    Cell,
    Chart,
    Experiment,
    Outcome,
    Progress,
    Setting,
    Table,
)
from pg_mdistinct.workload import SnapshotArray

SIZES = (2, 3, 4, 6)
"""The values of ℓ and m, as far as a panel has as many sensitive values."""

ALMOST_SURE = 0.9


@dataclass(frozen=True)
class Published:
    """All releases of a panel, and who and what is shown in each of them."""

    history: History
    shown: list[tuple[SnapshotArray, Boxes]]

    @property
    def records(self) -> int:
        """Return how many versions of real records were published."""
        return len(self.history.record)

    def mean(self, measure: Callable[[SnapshotArray, Boxes], float]) -> float:
        """Return the mean of a measure over all releases, larger ones counting more."""
        weights = [len(people) for people, _ in self.shown]
        return float(np.average([measure(*one) for one in self.shown], weights=weights))


def publish_diverse(panel: Panel, size: int, rng: np.random.Generator, *, groups: str) -> Published:
    """Publish every snapshot by itself."""
    history = BASELINES[groups](panel.snapshots, size, rng)
    shown = []
    for number, people in enumerate(panel.snapshots, start=1):
        versions = np.flatnonzero(history.version_release == number)
        order = np.argsort(people["id"])
        place = np.searchsorted(people["id"], history.record[versions], sorter=order)
        kept = people[order[place]]
        group = np.unique(history.group[versions], return_inverse=True)[1].reshape(-1)
        shown.append((kept, boxes_of_groups(kept, group)))
    return Published(history, shown)


def publish_distinct(panel: Panel, m: int, rng: np.random.Generator, *, variant: str) -> Published:
    """Publish with the core; records that m-Invariance cannot take are left out."""
    fixed = variant == M_INVARIANCE
    model = UpdateModel.unchanging(panel.labels) if fixed else panel.learned_model()
    publisher = Publisher(model, m, variant, rng)
    shown = []
    for people in panel.snapshots:
        kept = people[in_signature(publisher.snapshot(people))] if fixed else people
        shown.append((kept, boxes_of_release(kept, publisher.publish(kept))))
    return Published(publisher.history(), shown)


METHODS: dict[str, Callable[[Panel, int, np.random.Generator], Published]] = {
    "ℓ-diverse, exact groups": partial(publish_diverse, groups=EXACT),
    "ℓ-diverse, Mondrian": partial(publish_diverse, groups=MONDRIAN_DISTINCT),
    M_INVARIANCE: partial(publish_distinct, variant=M_INVARIANCE),
    M_DISTINCT: partial(publish_distinct, variant=M_DISTINCT),
    M_DISTINCT_STAR: partial(publish_distinct, variant=M_DISTINCT_STAR),
}

COLUMNS = (
    "method",
    "m",
    "left_out",
    "candidates",
    "counterfeits_a_group",
    "ncp",
    "median_error",
    "disclosed",
    "narrowed",
    "disclosed_by_ends",
    "equal_mean_risk",
    "equal_max_risk",
    "learned_mean_risk",
    "learned_max_risk",
    "almost_sure",
    "refused",
)
"""``candidates`` are those that a value was published among, on average. ``disclosed`` and
``narrowed`` are shares of published values: those with one candidate left, and those with fewer
than were published; ``disclosed_by_ends`` is the first share if it is also known after which values
nobody comes again. ``almost_sure`` is the share of values that an adversary who knows the learned
model guesses with a probability of at least 0.9."""


def figures(panel: Panel, method: str, m: int, setting: Setting) -> tuple[Cell, ...]:
    """Publish a panel in one way, attack it, and return a row of the table."""
    try:
        published = METHODS[method](panel, m, setting.rng("panel", panel.name, method, m))
    except MdistinctError as error:
        return (method, m, *[None] * (len(COLUMNS) - 3), error.message)
    history = published.history
    rng = setting.rng("queries", panel.name)
    equal = attack(history, panel.equal_model())
    learned = attack(history, panel.learned_model())
    ends = attack(history, panel.model_with_ends())
    return (
        method,
        m,
        1 - published.records / sum(map(len, panel.snapshots)),
        float(equal.published.mean()),
        float(history.counterfeits.mean()),
        published.mean(ncp),
        published.mean(partial(median_error, rng=rng, domains=panel.domains)),
        len(equal.disclosed) / len(equal.left),
        float((equal.left < equal.published).mean()),
        len(ends.disclosed) / len(ends.left),
        float(equal.risk.mean()),
        float(equal.risk.max()),
        float(learned.risk.mean()),
        float(learned.risk.max()),
        float((learned.risk >= ALMOST_SURE).mean()),
        None,
    )


@dataclass(frozen=True)
class Comparison:
    """A panel that is published in all ways, for some sizes."""

    name: str
    title: str
    load: Callable[[Setting], Panel]
    sizes: tuple[int, ...] = SIZES

    def run(self, setting: Setting, progress: Progress) -> Outcome:
        """Make the table of all ways and sizes."""
        progress("reading", 0.0)
        panel = self.load(setting)
        todo = [(m, method) for m in self.sizes if m <= len(panel.labels) for method in METHODS]
        rows = []
        for turn, (m, method) in enumerate(todo):
            progress(f"{method}, m = {m}", turn / len(todo))
            rows.append(figures(panel, method, m, setting))
        table = Table(self.name, COLUMNS, tuple(rows))
        return Outcome((table,), tuple(_charts(self.name, table)))


def _charts(name: str, table: Table) -> Iterator[Chart]:
    risk, error = "mean risk under the learned model", "median error of counts"
    for column, words in (("learned_mean_risk", risk), ("median_error", error)):
        yield Chart(
            name=f"{name}-{'risk' if 'risk' in column else 'error'}",
            table=table,
            x="m",
            y=column,
            x_label="ℓ or m",
            y_label=words,
            by="method",
            bars=True,
            percent=True,
        )


PANELS = (
    Comparison(
        "panel-time-use",
        "Real people with the paper's updates, in place of OCC",
        panels_data.time_use,
        (2, 4, 6),
    ),
    Comparison(
        "panel-work",
        "Work status in the General Social Survey",
        partial(panels_data.social_survey, "wrkstat"),
    ),
    Comparison(
        "panel-health",
        "Health in the General Social Survey",
        partial(panels_data.social_survey, "health"),
    ),
    Comparison(
        "panel-marital",
        "Marital status in the General Social Survey",
        partial(panels_data.social_survey, "marital"),
    ),
    Comparison(
        "panel-cognition",
        "States of cognition, some of which are never left again",
        panels_data.cognition,
    ),
    Comparison(
        "panel-cognition-ends",
        "The same if those who have come to an end stay in the table",
        panels_data.cognition_with_ends,
    ),
    Comparison(
        "panel-transplants",
        "Stages of a disease of transplanted hearts",
        panels_data.transplants,
    ),
)

OVERVIEW = (
    "panel",
    "people",
    "releases",
    "values_published",
    "sensitive_values",
    "changed",
    "largest_share",
    "possible_updates",
    "largest_m_without_counterfeits",
    "largest_m_distinct_star",
)


def overview(setting: Setting, progress: Progress) -> Outcome:
    """Describe the panels, and how large m can be."""
    rows = []
    for turn, compared in enumerate(PANELS):
        progress("reading", turn / len(PANELS))
        panel = compared.load(setting)
        model = panel.learned_model()
        rows.append(
            (
                panel.name,
                len(np.unique(np.concatenate([people["id"] for people in panel.snapshots]))),
                len(panel.snapshots),
                sum(map(len, panel.snapshots)),
                len(panel.labels),
                panel.changed,
                panel.largest_share,
                int(model.reach(1).sum()),
                int(1 / panel.largest_share),
                largest_m(model, M_DISTINCT_STAR),
            )
        )
    return Outcome((Table("panels", OVERVIEW, tuple(rows)),))


def largest_m(model: UpdateModel, variant: str) -> int | None:
    """Return the largest m that a model admits under a variant; None if there is none."""
    for m in range(len(model), 1, -1):
        try:
            model.check(m, variant)
        except MdistinctError:
            continue
        return m
    return None


EXPERIMENTS = (
    Experiment(
        "panels",
        "The panels",
        "The paper generates updates, since no data that it knows of contain any.",
        overview,
    ),
    *(
        Experiment(
            compared.name,
            compared.title,
            "ℓ-diversity discloses values over time, m-Distinct none; m-Distinct* bounds the risk "
            "by 1/m.",
            compared.run,
        )
        for compared in PANELS
    ),
)
