"""Releases made by any tool, loaded so that the attack of the core can be run on them.

Rows come from a file or from a database, and are put together in one place::

    loaded = foreign.load(foreign.csv_releases("releases.csv"), foreign.csv_model("model.csv"))
    report = foreign.examine(loaded)
"""

from __future__ import annotations

from pg_mdistinct.foreign.csv_files import csv_model, csv_releases
from pg_mdistinct.foreign.database import database_model, database_releases
from pg_mdistinct.foreign.loading import ForeignReleases, load
from pg_mdistinct.foreign.report import AttackReport, JointFigures, examine
from pg_mdistinct.foreign.rows import Columns, ModelRow, ReleaseRow

__all__ = [
    "AttackReport",
    "Columns",
    "ForeignReleases",
    "JointFigures",
    "ModelRow",
    "ReleaseRow",
    "csv_model",
    "csv_releases",
    "database_model",
    "database_releases",
    "examine",
    "load",
]
