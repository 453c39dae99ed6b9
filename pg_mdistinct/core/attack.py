"""The attack on any release history, whoever published it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pg_mdistinct.core.arrays import FloatArray, IntArray
from pg_mdistinct.core.history import History
from pg_mdistinct.core.model import UpdateModel
from pg_mdistinct.core.update_graph import candidates, risks


@dataclass(frozen=True)
class Attack:
    """What an adversary gets out of a history, version by version.

    ``published`` and ``left`` count the candidates before and after excluding what cannot be;
    a version with one candidate left is disclosed.
    """

    risk: FloatArray
    published: IntArray
    left: IntArray

    @property
    def pruned(self) -> int:
        """Return the number of candidates that were ruled out."""
        return int((self.published - self.left).sum())

    @property
    def disclosed(self) -> IntArray:
        """Return the versions whose value is known for certain."""
        return np.flatnonzero(self.left == 1)

    @property
    def contradictory(self) -> IntArray:
        """Return the versions with no candidate left: the model calls their history impossible."""
        return np.flatnonzero(self.left == 0)


def attack(history: History, model: UpdateModel) -> Attack:
    """Attack every record by its update graph."""
    found = risks(history, model)
    published = candidates(history.rows).values.lengths[history.group]
    return Attack(found.risk, published, found.candidates)
