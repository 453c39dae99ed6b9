"""Judges a changed update model by the releases that are out already.

An adversary who learns the model of today applies it to everything that was ever published. So a
model may change as long as past releases stay m-Distinct under it: no candidate that a record was
published with may become impossible in hindsight. New values and new updates never do that, a
smaller choice of updates may.
"""

from __future__ import annotations

import numpy as np

from pg_mdistinct.core import errors
from pg_mdistinct.core.errors import MdistinctError
from pg_mdistinct.core.history import History
from pg_mdistinct.core.model import UpdateModel
from pg_mdistinct.core.verify import find_violations
from pg_mdistinct.server.catalog import Dataset
from pg_mdistinct.server.errors import counted

_OVERLAP = "disjoint first group"


def check(dataset: Dataset, history: History, model: UpdateModel) -> None:
    """Refuse a model under which the releases so far would not be what they were published as."""
    _refuse_contradiction(dataset, history, model)
    # How many values a group needs does not depend on the model.
    any_size = np.zeros(len(history.release), dtype=np.int64)
    overlapping, excluded = set(), set()
    for violation in find_violations(history, model, any_size.tolist(), dataset.variant):
        if violation.rule == _OVERLAP:
            overlapping.add(violation.version)
        elif violation.version is not None:
            excluded.add(violation.version)
    if excluded:
        raise MdistinctError(
            f'the update model of dataset "{dataset.name}" was changed: it rules out values that '
            f"{counted(len(excluded), 'version')} of past releases were published with",
            hint="Allow the updates again that were taken away, with a small probability if need "
            "be: an update may be made unlikely, but not undone.",
            sqlstate=errors.MODEL_BREAKS_HISTORY,
        )
    if overlapping:
        raise MdistinctError(
            f'the update model of dataset "{dataset.name}" was changed: possible updates overlap '
            f"now in the first groups of {counted(len(overlapping), 'record')}",
            hint="m-distinct* promises that they do not, and the groups are published: take the "
            "new updates back that two values of one group have in common.",
            sqlstate=errors.MODEL_BREAKS_HISTORY,
        )


def _refuse_contradiction(dataset: Dataset, history: History, model: UpdateModel) -> None:
    """Refuse a model under which what was published could not have happened.

    All risks would be 0 then, and say nothing.
    """
    later = np.flatnonzero(~history.is_first)
    gap = history.gap[later]
    impossible = 0
    for steps in np.unique(gap).tolist():
        versions = later[gap == steps]
        legal = model.reach(steps)[history.value[versions - 1], history.value[versions]]
        impossible += int((~legal).sum())
    if impossible:
        raise MdistinctError(
            f'the update model of dataset "{dataset.name}" was changed: it calls '
            f"{counted(impossible, 'update')} impossible that past releases contain",
            hint="Allow these updates again; an update may be made unlikely, but not undone.",
            sqlstate=errors.IMPOSSIBLE_UPDATE,
        )
