"""Keeps a dataset's bound on the risk: a release that would break it is not published."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pg_mdistinct.core import errors
from pg_mdistinct.core.errors import MdistinctError
from pg_mdistinct.core.history import History
from pg_mdistinct.core.model import UpdateModel
from pg_mdistinct.core.update_graph import risks
from pg_mdistinct.server.catalog import Dataset
from pg_mdistinct.server.errors import counted
from pg_mdistinct.server.history import PlannedRelease, read_history
from pg_mdistinct.server.plpython import Plpy

TOLERANCE = 1e-9
"""Risks are sums of products of floats: a bound of 1/3 must admit three equal candidates."""


def keep(
    plpy: Plpy,
    dataset: Dataset,
    model: UpdateModel,
    max_risk: float | None,
    planned: PlannedRelease,
) -> None:
    """Refuse a release that would lift the risk of any version above the dataset's bound."""
    if dataset.max_risk is None or max_risk is None or max_risk <= dataset.max_risk + TOLERANCE:
        return
    history = read_history(plpy, dataset, model.labels, planned=planned).history
    rows = by_release(history, model, dataset.max_risk, dataset.last_release + 1)
    broken = [row for row in rows if row[5]]
    versions = sum(row[5] for row in broken)
    if not versions:
        return
    raise MdistinctError(
        f"{counted(versions, 'version')} would have a risk above max_risk = {dataset.max_risk:g}: "
        f"up to {max_risk:.6g}, from release {broken[0][0]} on",
        hint="mdistinct_preview_risk shows what the release would do to earlier ones. Publish it "
        "under a dataset with a larger m or max_risk, or correct the update model.",
        detail="; ".join(
            f"release {row[0]}: {counted(row[5], 'version')}, up to {row[3]:.6g}" for row in broken
        ),
        sqlstate=errors.RISK_TOO_HIGH,
    )


def by_release(
    history: History, model: UpdateModel, max_risk: float | None, last: int
) -> Iterator[tuple[int, int, float | None, float, int, int]]:
    """Compare the risks before and after the release with number ``last``, release by release.

    Yields release, versions, largest risk before (None for that release itself) and after,
    and how many versions have a higher risk than before, and one above the bound.
    """
    release = history.version_release
    after = risks(history, model).risk
    earlier = release < last
    before = np.full(len(after), -np.inf)
    before[earlier] = risks(history.until(last - 1), model).risk
    for number in np.unique(release).tolist():
        rows = release == number
        yield (
            number,
            int(rows.sum()),
            float(before[rows].max()) if number < last else None,
            float(after[rows].max()),
            int((after[rows & earlier] > before[rows & earlier] + TOLERANCE).sum()),
            0 if max_risk is None else int((after[rows] > max_risk + TOLERANCE).sum()),
        )
