"""Real panels as snapshots: files that are no part of the project, read where somebody has them.

Panels are put into the columns of the workload, whatever these are called there: four whole numbers
as quasi-identifiers and the code of a sensitive value. Values of quasi-identifiers that have an
order keep it.
"""

from __future__ import annotations

import csv
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

import pg_mdistinct
from pg_mdistinct.core.learning import Counts, learned
from pg_mdistinct.core.model import UpdateModel
from pg_mdistinct.experiments.queries import Domains
from pg_mdistinct.experiments.registry import Setting, Skipped
from pg_mdistinct.workload import MARITAL, QI_COLUMNS, SNAPSHOT, SnapshotArray, Workload

VARIABLE = "PG_MDISTINCT_DATA"
BESIDE = Path(pg_mdistinct.__file__).parents[2] / "shared" / "data"
"""Where data are looked for unless the variable names a folder."""

Row = Mapping[str, str]


class Observation(NamedTuple):
    """Somebody in one release: four quasi-identifiers and the value, None where nobody knows it."""

    person: str
    release: int
    qi: tuple[int, int, int, int]
    value: str | None


@dataclass(frozen=True)
class Panel:
    """Snapshots of a panel, the texts of its sensitive values, and how often which followed which.

    A moment at which somebody's value is not known counts as a moment: what came before and after
    it are no neighbours.
    """

    name: str
    labels: tuple[str, ...]
    snapshots: tuple[SnapshotArray, ...]
    counts: Counts

    @property
    def domains(self) -> Domains:
        """Return the lowest and highest value of every column."""
        everybody = np.concatenate(self.snapshots)
        found = {n: (int(everybody[n].min()), int(everybody[n].max())) for n in QI_COLUMNS}
        return {**found, "occupation": (0, len(self.labels) - 1)}

    @property
    def largest_share(self) -> float:
        """Return the largest share of one value in any release: groups of m want at most 1/m."""
        return max(
            float(np.bincount(people["occupation"]).max()) / len(people)
            for people in self.snapshots
        )

    @property
    def changed(self) -> float:
        """Return the share of neighbouring values that differ."""
        stayed = sum(count for (old, new), count in self.counts.seen.items() if old == new)
        return 1 - stayed / sum(self.counts.seen.values())

    def learned_model(self) -> UpdateModel:
        """Return the model that the project's own estimator makes of the panel."""
        rows = learned(self.counts)
        transition = np.array(
            [[rows[old].get(new, 0.0) for new in self.labels] for old in self.labels]
        )
        return UpdateModel(transition, np.ones(len(self.labels), dtype=np.bool_), self.labels)

    def model_with_ends(self) -> UpdateModel:
        """Return the learned model of who also knows after which values nobody was seen again.

        A value that leads nowhere cannot have been that of somebody who is there again. No model
        of the project says so, since values may always stay what they are.
        """
        model = self.learned_model()
        followed = [self.counts.observations(label) > 0 for label in self.labels]
        ending = model.transition * np.array(followed)[:, None]
        return UpdateModel(ending, model.known, self.labels)

    def equal_model(self) -> UpdateModel:
        """Return the same possible updates, equally likely as in the paper."""
        possible = self.learned_model()
        reach = possible.reach(1).astype(np.float64)
        return UpdateModel(reach / reach.sum(axis=1, keepdims=True), possible.known, self.labels)


def folder() -> Path:
    """Return where the data are, if they are anywhere."""
    return Path(os.environ.get(VARIABLE) or BESIDE)


def rows_of(file: str) -> list[dict[str, str]]:
    """Read a file of the folder; without it the experiment cannot be run."""
    path = folder() / file
    if not path.is_file():
        raise Skipped(f"data are absent: ${VARIABLE} names no folder with {file}")
    with path.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def panel_of(name: str, observations: Iterable[Observation], setting: Setting) -> Panel:
    """Put observations into snapshots; of smaller scales some people are left out at random."""
    found = sorted(observations, key=lambda seen: (seen.person, seen.release))
    people = sorted({seen.person for seen in found})
    kept = setting.rng("people", name).permutation(len(people))[: setting.size(len(people))]
    number = {people[place]: i for i, place in enumerate(np.sort(kept).tolist())}
    found = [seen for seen in found if seen.person in number]
    labels = tuple(sorted({seen.value for seen in found if seen.value is not None}))
    code = {label: i for i, label in enumerate(labels)}
    releases: dict[int, list[tuple[int, ...]]] = {}
    for seen in found:
        if seen.value is not None:
            row = (number[seen.person], *seen.qi, code[seen.value])
            releases.setdefault(seen.release, []).append(row)
    snapshots = tuple(np.array(rows, dtype=SNAPSHOT) for _, rows in sorted(releases.items()))
    return Panel(name, labels, snapshots, Counts(_neighbours(found), labels))


def _neighbours(found: Sequence[Observation]) -> Counter[tuple[str, str]]:
    seen: Counter[tuple[str, str]] = Counter()
    for before, after in pairwise(found):
        if before.person == after.person and before.value is not None and after.value is not None:
            seen[before.value, after.value] += 1
    return seen


# --- the General Social Survey -----------------------------------------------------------------

DEGREES = ("Lt High School", "High School", "Junior College", "Bachelor", "Graduate")
RACES = ("White", "Black", "Other")
FIRST_YEAR, YEARS_BETWEEN = 2006, 2


def social_survey(column: str, setting: Setting) -> Panel:
    """Read three panels of three waves that overlap: five releases, with people coming and going.

    Those whose age or degree is unknown are left out of that release.
    """
    known = (row for row in rows_of("gss_panels_long.csv") if row["age"] and row["degree"])
    observations = (
        Observation(
            person=f"{row['panel']} {row['firstid']}",
            release=(int(row["year"]) - FIRST_YEAR) // YEARS_BETWEEN + 1,
            qi=(
                # The oldest are "89 or Older".
                int(row["age"].split()[0]),
                int(row["sex"] == "Male"),
                RACES.index(row["race"]),
                DEGREES.index(row["degree"]),
            ),
            value=row[column] or None,
        )
        for row in known
    )
    return panel_of(f"social survey, {column}", observations, setting)


# --- clinical panels ---------------------------------------------------------------------------


def cognition(setting: Setting) -> Panel:
    """Read states of cognition, visit by visit: some states are never left again."""
    visits = _visits(
        rows_of("brains_cognitive.csv"), "ID", lambda row: float(row["visitno"]), "custate"
    )
    observations = (
        Observation(
            person=row["ID"],
            release=visit,
            qi=(
                int(row["bagec"]),
                int(row["lowed"]),
                next((i for i in (1, 2, 3) if row[f"smk{i}"] == "1"), 0),
                int(row["famhx"]),
            ),
            value=row["custate"],
        )
        for visit, row in visits
    )
    return panel_of("cognition", observations, setting)


def cognition_with_ends(setting: Setting) -> Panel:
    """Return the same panel if those who have come to an end stay in the table as they were."""
    panel = cognition(setting)
    is_end = np.array([panel.counts.observations(label) == 0 for label in panel.labels])
    seen = Counter(panel.counts.seen)
    snapshots = [panel.snapshots[0]]
    for people in panel.snapshots[1:]:
        ended = snapshots[-1][is_end[snapshots[-1]["occupation"]]]
        snapshots.append(np.concatenate([people, ended]))
        labels = [panel.labels[code] for code in ended["occupation"].tolist()]
        seen.update((label, label) for label in labels)
    counts = Counts(seen, panel.labels)
    return Panel("cognition, with ends", panel.labels, tuple(snapshots), counts)


def transplants(setting: Setting) -> Panel:
    """Read stages of a disease of transplanted hearts, visit by visit; the last stage is death.

    The first release is that of second visits: at the first ones all hearts are well.
    """
    rows = rows_of("cav_heart_transplant.csv")
    diagnoses = sorted({row["pdiag"] for row in rows})
    observations = (
        Observation(
            person=row["PTNUM"],
            release=visit,
            qi=(
                int(float(row["age"])),
                int(row["sex"]),
                diagnoses.index(row["pdiag"]),
                int(row["dage"]),
            ),
            value=row["state"],
        )
        for visit, row in _visits(rows, "PTNUM", lambda row: float(row["years"]), "state")
    )
    panel = panel_of("heart transplants", observations, setting)
    return replace(panel, snapshots=panel.snapshots[1:])


MOST_VISITS = 10


def _visits(
    rows: Sequence[Row], person: str, when: Callable[[Row], float], value: str
) -> Iterator[tuple[int, Row]]:
    """Number everybody's visits: everybody's first ones make up the first release, and so on.

    Later visits than the tenth are those of a few people only, and left out.
    """
    count: Counter[str] = Counter()
    for row in sorted((row for row in rows if row[value]), key=when):
        count[row[person]] += 1
        if count[row[person]] <= MOST_VISITS:
            yield count[row[person]], row


# --- the stand-in for OCC ----------------------------------------------------------------------

# Levels of schooling, on the workload's scale from 0 to 16.
_SCHOOLING = {
    "< hs diploma": 6,
    "hs diploma": 8,
    "some college": 9,
    "associate degree": 10,
    "bachelor's degree": 12,
    "master's degree": 13,
    "prof degree": 14,
    "doctoral degree": 15,
}
MOST_RELEASES = 17


@dataclass(frozen=True)
class TimeUse(Workload):
    """The paper's updates of real people: of age, education, marital status and occupation.

    Occupations next to each other in the alphabet have the same kind of work before the slash, so
    classes of ``d`` neighbours are similar occupations.
    """

    everybody: tuple[tuple[int, ...], ...] = ()

    def population(self, rng: np.random.Generator) -> _Drawn:
        """Return the real people, in random order."""
        return _Drawn(self.everybody, rng)


class _Drawn:
    """Real people, each of whom comes once."""

    def __init__(self, everybody: Sequence[tuple[int, ...]], rng: np.random.Generator) -> None:
        self._people = np.array(list(everybody), dtype=SNAPSHOT)[rng.permutation(len(everybody))]
        self._people["id"] = np.arange(len(everybody))
        self._drawn = 0

    def people(self, count: int) -> SnapshotArray:
        """Return the next ones; there are no others when all have been there."""
        self._drawn += count
        return self._people[self._drawn - count : self._drawn].copy()


def time_use(setting: Setting, d: int = 10) -> Panel:
    """Read working adults with one of fifty occupations, and let the paper's updates befall them.

    There are as many releases as there are people for at full scale.
    """
    rows = rows_of("atus_occ50.csv")
    occupations = tuple(sorted({row["occ"] for row in rows}))
    code = {name: i for i, name in enumerate(occupations)}
    everybody = tuple(
        (
            0,
            int(row["age"]),
            int(row["sex"] == "male"),
            MARITAL.index(row["marital"].replace("never ", "never-")),
            _SCHOOLING[row["edu"]],
            code[row["occ"]],
        )
        for row in rows
    )
    workload = TimeUse(**asdict(setting.workload(d)), everybody=everybody)
    snapshots = tuple(workload.releases(MOST_RELEASES))
    seen: Counter[tuple[str, str]] = Counter()
    for before, after in pairwise(snapshots):
        _, old, new = np.intersect1d(before["id"], after["id"], return_indices=True)
        pairs = np.stack([before["occupation"][old], after["occupation"][new]], axis=1)
        seen.update((occupations[a], occupations[b]) for a, b in pairs.tolist())
    return Panel(f"time use, d = {d}", occupations, snapshots, Counts(seen, occupations))
