"""Where the bound 1/m of m-Distinct* needs more than the paper says, and what lies outside it.

The proof lets every feasible path weigh the same. With disjoint reach sets there are m parallel
ones, but they weigh the same only if every step of each is as likely as that of the others: equal
probabilities, and as many of them. Each history here keeps to the paper's definitions, and shows
one record after every release.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pg_mdistinct.core.arrays import FloatArray, Ragged
from pg_mdistinct.core.attack import attack
from pg_mdistinct.core.history import History
from pg_mdistinct.core.model import UpdateModel
from pg_mdistinct.experiments.records import Recorder
from pg_mdistinct.experiments.registry import Chart, Experiment, Outcome, Progress, Setting, Table

RELEASES = 6


@dataclass(frozen=True)
class Case:
    """A model, and the group that the record is in after any number of releases.

    ``group`` gets the number of a release and of all of them; the record's value is 0 throughout.
    """

    name: str
    m: int
    transition: FloatArray
    group: Callable[[int, int], tuple[int, ...]]

    def model(self) -> UpdateModel:
        """Return the update model."""
        size = len(self.transition)
        return UpdateModel(self.transition, np.ones(size, dtype=np.bool_), tuple("abcdefgh"[:size]))

    def history(self, releases: int) -> History:
        """Return the releases of the record's group; the others in it are counterfeits here."""
        recorder = Recorder()
        nobody = np.zeros(1, dtype=np.int64)
        for release in range(1, releases + 1):
            rows = self.group(release, releases)
            fakes = np.array([len(rows) - 1])
            recorder.add(nobody, nobody, nobody, Ragged.of([rows]), fakes)
        return recorder.history()


def classes(*parts: FloatArray) -> FloatArray:
    """Return the model in which every value stays within its class."""
    size = sum(map(len, parts))
    transition, first = np.zeros((size, size)), 0
    for part in parts:
        transition[first : first + len(part), first : first + len(part)] = part
        first += len(part)
    return transition


def equally_likely(size: int) -> FloatArray:
    """Return a class in which all updates are equally likely."""
    return np.full((size, size), 1.0 / size)


def _alternating(release: int, releases: int) -> tuple[int, ...]:
    """Value 0 all the time, beside it now 2 and now 3."""
    return (0, 2 + (release + 1) % 2)


def _lopsided(release: int, releases: int) -> tuple[int, ...]:
    """Three values of the record's class and one other; in the last release the reverse."""
    return (0, 4, 5, 6) if release == releases else (0, 1, 2, 4)


RELUCTANT = np.array([[0.9, 0.1], [0.1, 0.9]])
CASES = (
    Case(
        "m-distinct*, classes alike",
        2,
        classes(equally_likely(2), equally_likely(2)),
        _alternating,
    ),
    Case(
        "m-distinct*, unequal probabilities",
        2,
        classes(equally_likely(2), RELUCTANT),
        _alternating,
    ),
    Case(
        "m-distinct*, equal probabilities, unequal classes",
        2,
        classes(equally_likely(2), equally_likely(4)),
        _alternating,
    ),
    Case(
        "m-distinct by the letter, equal probabilities",
        4,
        classes(equally_likely(4), equally_likely(4)),
        _lopsided,
    ),
)


def risks_by_release(setting: Setting, progress: Progress) -> Outcome:
    """Attack the record's last version after one release, after two, and so on."""
    rows = []
    for case in CASES:
        for releases in range(1, RELEASES + 1):
            found = attack(case.history(releases), case.model())
            rows.append((case.name, case.m, releases, float(found.risk[-1]), 1 / case.m))
    table = Table("bound", ("case", "m", "releases", "risk", "bound"), tuple(rows))
    chart = Chart(
        name="bound",
        table=table,
        x="releases",
        y="risk",
        x_label="releases",
        y_label="risk of the last version",
        by="case",
        percent=True,
    )
    return Outcome((table,), (chart,))


EXPERIMENTS = (
    Experiment(
        "bound",
        "The bound 1/m, and what it needs",
        "m-Distinct* keeps the republication risk at 1/m, since there are m parallel paths.",
        risks_by_release,
    ),
)
