"""The update model: what a sensitive value may become by the next release, and how likely."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from pg_mdistinct.core import errors
from pg_mdistinct.core.arrays import BoolArray, FloatArray
from pg_mdistinct.core.errors import MdistinctError
from pg_mdistinct.core.products import joined, product
from pg_mdistinct.core.safety import Safety
from pg_mdistinct.core.values import ValueSet, disjoint_company, rows_as_sets, values_of

M_DISTINCT = "m-distinct"
M_DISTINCT_STAR = "m-distinct*"
M_INVARIANCE = "m-invariance"
VARIANTS = (M_DISTINCT, M_DISTINCT_STAR, M_INVARIANCE)


class UpdateModel:
    """Transition probabilities between values 0..V-1; ``reach`` are the pairs above zero.

    The model is any set of pairs: it need not be transitive or symmetric. ``known`` marks the
    values that the current model mentions: only these may be given to counterfeits.
    """

    def __init__(self, transition: FloatArray, known: BoolArray, labels: Sequence[str]) -> None:
        # In one order always, since products are compiled for that.
        self.transition = np.ascontiguousarray(transition, dtype=np.float64)
        self.known = known
        self.labels = labels
        self._reach: dict[int, BoolArray] = {1: self.transition > 0}
        self._powers: dict[int, FloatArray] = {1: self.transition}
        self._reach_sets: dict[int, list[ValueSet]] = {}

    @classmethod
    def unchanging(cls, labels: Sequence[str]) -> UpdateModel:
        """Return the model of m-Invariance: every value stays what it is."""
        return cls(np.eye(len(labels)), np.ones(len(labels), dtype=np.bool_), labels)

    def __len__(self) -> int:
        return len(self.transition)

    def reach(self, steps: int = 1) -> BoolArray:
        """Return the pairs (a, b) for which a may be b after some releases.

        Kept apart from the probabilities, whose products may fall below the smallest float.
        """
        if steps not in self._reach:
            half = self.reach(steps // 2)
            both: BoolArray = joined(half, half)
            self._reach[steps] = joined(both, self.reach(1)) if steps % 2 else both
        return self._reach[steps]

    def power(self, steps: int) -> FloatArray:
        """Return the probability that a is b after some releases."""
        if steps not in self._powers:
            half = self.power(steps // 2)
            both: FloatArray = product(half, half)
            self._powers[steps] = product(both, self.transition) if steps % 2 else both
        return self._powers[steps]

    def reach_sets(self, steps: int = 1) -> list[ValueSet]:
        """Return reach(a) for every value a."""
        if steps not in self._reach_sets:
            self._reach_sets[steps] = rows_as_sets(self.reach(steps))
        return self._reach_sets[steps]

    @cached_property
    def known_values(self) -> list[int]:
        """Return the values that the model mentions."""
        return [int(value) for value in np.flatnonzero(self.known)]

    @cached_property
    def largest_free_group(self) -> int:
        """Return the size up to which any values may be grouped without ever getting stuck.

        A value that may stay what it is always has itself to offer; one that may not needs as
        many values to go to as the group has rows, so that the others cannot take them all.
        """
        reach = self.reach(1)
        must_move = self.known & ~np.diagonal(reach)
        return int(reach[must_move].sum(axis=1).min()) if must_move.any() else len(self)

    def is_free(self, m: int) -> bool:
        """Tell whether groups of m may be formed with no thought of what comes after."""
        return self.largest_free_group >= m

    def check(self, m: int, variant: str) -> None:
        """Refuse a model under which some record could not be published, now or later."""
        known = self.known_values
        if len(known) < m and variant == M_INVARIANCE:
            raise MdistinctError(
                f"m = {m} cannot be met: only {len(known)} sensitive values have ever occurred",
                hint="Every group needs m different sensitive values: choose a smaller m.",
                sqlstate=errors.DOMAIN_TOO_SMALL,
            )
        if len(known) < m:
            raise MdistinctError(
                f"m = {m} cannot be met: the update model knows {len(known)} sensitive values",
                hint="Every group needs m different sensitive values: declare more of them with "
                "mdistinct_allow_update, or register the dataset with a smaller m.",
                sqlstate=errors.DOMAIN_TOO_SMALL,
            )
        safety = None if self.is_free(m) else Safety(self.reach_sets(1), known, m)
        for value in known:
            if variant == M_DISTINCT_STAR:
                self._check_disjoint_company(value, m)
            if safety is not None:
                self._check_future(value, m, variant, safety)

    def _check_disjoint_company(self, value: int, m: int) -> None:
        if disjoint_company(self.reach_sets(1), value, m, self.known_values) is None:
            raise MdistinctError(
                f"m = {m} cannot be met: there are no {m - 1} values whose possible updates "
                f'overlap neither with each other nor with those of "{self.labels[value]}"',
                hint="m-distinct* groups values with disjoint updates only: choose a smaller m, "
                "fewer possible updates, or the variant m-distinct.",
                sqlstate=errors.DOMAIN_TOO_SMALL,
            )

    def _check_future(self, value: int, m: int, variant: str, safety: Safety) -> None:
        disjoint = variant == M_DISTINCT_STAR
        if not safety.companies(value, disjoint=disjoint):
            may_become = ", ".join(
                f'"{self.labels[other]}"' for other in values_of(self.reach_sets(1)[value])
            )
            raise MdistinctError(
                f'the update model leaves no legal release for a record with "{self.labels[value]}"'
                f": it may become {may_become}, and whatever {m - 1} other values it is published "
                "with, some course of updates leaves too few different values for a group",
                hint="Let values stay what they are (add each value to its own list), or allow "
                "more updates, or use a smaller m.",
                sqlstate=errors.NO_LEGAL_RELEASE,
            )
