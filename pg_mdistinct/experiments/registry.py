"""What an experiment is: a claim, and a function that makes the tables and charts to judge it by.

Each module named in `FAMILIES` has a tuple ``EXPERIMENTS``; `experiments` gathers them in order.
Everything an experiment finds is in its tables, and a chart is nothing but columns of a table, so
figures can be drawn again from the files that were written.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from zlib import crc32

import numpy as np

from pg_mdistinct.workload import Workload

FAMILIES: tuple[str, ...] = (
    "disclosure",
    "invariance",
    "accuracy",
    "counterfeit_counts",
    "cost",
    "bound",
    "staying",
    "others",
    "panels",
)
"""Modules of this package, in the order in which their experiments are run and told of."""

RELEASES = 20
"""How often the paper publishes."""

Cell = str | int | float | None
"""None stands for what cannot be: the table says why in another column."""

Progress = Callable[[str, float], None]
"""Is told what is being done, and which share of the experiment is done."""


class Skipped(Exception):  # noqa: N818 - no error: the reason why an experiment cannot be run here
    """Says what an experiment lacks that is no part of the project."""


@dataclass(frozen=True)
class Setting:
    """How large experiments are, and where their randomness comes from; 1 is the paper's scale."""

    scale: float = 1.0
    seed: int = 2008

    def __post_init__(self) -> None:
        if not 0 < self.scale <= 1:
            raise ValueError(f"scale must be above 0 and at most 1, not {self.scale}")

    def size(self, records: int) -> int:
        """Return how many records stand for so many of the paper's."""
        return max(round(records * self.scale), 1)

    def workload(self, d: int = 10, deletions: int = 2_000) -> Workload:
        """Return the paper's workload: 20,000 records at first, 5,000 new ones a release."""
        return Workload(
            d=d,
            deletions=self.size(deletions),
            seed=self.seed,
            initial=self.size(20_000),
            insertions=self.size(5_000),
            updates=self.size(5_000),
        )

    def rng(self, *names: object) -> np.random.Generator:
        """Return randomness that depends on the seed and on what it is for, and on nothing else."""
        return np.random.default_rng([self.seed, crc32(repr(names).encode())])


@dataclass(frozen=True)
class Table:
    """Rows under column names; written as ``<name>.csv``."""

    name: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]

    def __post_init__(self) -> None:
        if any(len(row) != len(self.columns) for row in self.rows):
            raise ValueError(f"table {self.name}: every row needs {len(self.columns)} cells")

    def column(self, name: str) -> list[Cell]:
        """Return one column."""
        place = self.columns.index(name)
        return [row[place] for row in self.rows]


@dataclass(frozen=True)
class Chart:
    """Lines (or bars) over columns of a table; written as ``<name>.svg``.

    ``by`` is the column that tells lines apart, None for a single line; rows whose ``y`` is None
    are left out. ``x_label`` and ``y_label`` are for people, with units.
    """

    name: str
    table: Table
    x: str
    y: str
    x_label: str
    y_label: str
    by: str | None = None
    bars: bool = False
    percent: bool = False
    log: bool = False


@dataclass(frozen=True)
class Outcome:
    """All that an experiment found."""

    tables: tuple[Table, ...]
    charts: tuple[Chart, ...] = ()


@dataclass(frozen=True)
class Experiment:
    """One question to the paper, or about it.

    ``claim`` is what the paper says, in words; ``needs`` are modules of the optional extra
    ``experiments`` without which it cannot run.
    """

    name: str
    title: str
    claim: str
    run: Callable[[Setting, Progress], Outcome]
    needs: tuple[str, ...] = ()


def experiments() -> dict[str, Experiment]:
    """Return all experiments by name, in the order of the paper."""
    found: dict[str, Experiment] = {}
    for family in FAMILIES:
        for experiment in import_module(f"pg_mdistinct.experiments.{family}").EXPERIMENTS:
            if experiment.name in found:
                raise ValueError(f"two experiments are called {experiment.name}")
            found[experiment.name] = experiment
    return found
