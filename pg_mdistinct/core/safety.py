"""Which candidates a record may be published with and never get stuck.

Only models in which some values cannot stay what they are need this. A state is a candidate set
with the record's own value in it. The record's value changes as it likes within the model; the
publisher then chooses the next candidates: one from each reach set, all different, the record's
new value among them. A state is safe if the publisher can go on for ever.

A gap of k releases needs no states of its own: k safe steps taken one after the other are a legal
k-step update too.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import comb

from pg_mdistinct.core.values import (
    ValueSet,
    representatives,
    stay_disjoint,
    value_set,
    values_of,
)

EXACT_LIMIT = 1500
ORDERS_TRIED = 32


class Safety:
    """Safe states of groups of ``size`` values; new records only meet ``known`` ones.

    ``others`` are values that the model no longer mentions but old candidates still have. Solved
    exactly, as the greatest set of states that can be kept up, where the candidate sets
    can be listed. Larger domains look one release ahead: a state that this calls safe may still
    turn out to be a dead end later, and is then reported by the publication that meets it.
    """

    def __init__(
        self, reach: Sequence[ValueSet], known: Sequence[int], size: int, others: ValueSet = 0
    ) -> None:
        self.reach = reach
        self.known = value_set(known)
        self.values = list(values_of(self.known | others))
        self.size = size
        largest = max(comb(len(self.values), i) for i in range(size + 1))
        self.is_exact = largest <= EXACT_LIMIT
        self._kept: dict[ValueSet, ValueSet] = self._solve() if self.is_exact else {}

    def is_safe(self, candidates: ValueSet, value: int) -> bool:
        """Tell whether a record with this value may be published with these candidates."""
        if not self.is_exact and candidates not in self._kept:
            self._kept[candidates] = self._one_step_ahead(candidates)
        return bool(self._kept.get(candidates, 0) >> value & 1)

    def companies(self, value: int, *, disjoint: bool) -> list[ValueSet]:
        """Return the candidate sets that a new record with this value may be published with.

        Larger domains offer a few of them, found greedily, instead of all.
        """
        sets = self._kept if self.is_exact else self._some_sets_with(value)
        return [
            candidates
            for candidates in sets
            if not candidates & ~self.known
            and self.is_safe(candidates, value)
            and (not disjoint or stay_disjoint((1 << v for v in values_of(candidates)), self.reach))
        ]

    def successors(self, entries: Sequence[ValueSet], value: int) -> list[ValueSet]:
        """Return the safe candidate sets with one value from each entry, ``value`` among them."""
        found = images(entries) if self.is_exact else self._some_images(entries, value)
        return [
            candidates
            for candidates in found
            if candidates >> value & 1 and self.is_safe(candidates, value)
        ]

    def _some_images(self, entries: Sequence[ValueSet], value: int) -> set[ValueSet]:
        """Choose from the entries in many ways: values that may stay first, from all beginnings."""
        staying = [v for v in self.values if self.reach[v] >> v & 1]
        moving = [v for v in self.values if not self.reach[v] >> v & 1]
        found = set()
        for turn in range(ORDERS_TRIED):
            start = turn * max(len(staying) // ORDERS_TRIED, 1)
            order = staying[start:] + staying[:start] + moving[turn:] + moving[:turn]
            chosen = representatives(entries, value, order)
            if chosen is not None:
                found.add(value_set(chosen))
        return found

    def _solve(self) -> dict[ValueSet, ValueSet]:
        """Drop states that some update leads out of, until none is left to drop."""
        kept = {value_set(c): value_set(c) for c in combinations(self.values, self.size)}
        following = {c: images([self.reach[v] for v in values_of(c)]) for c in kept}
        changed = True
        while changed:
            changed = False
            for candidates, safe in kept.items():
                if not safe:
                    continue
                reachable = 0
                for after in following[candidates]:
                    reachable |= kept.get(after, 0)
                still = value_set(v for v in values_of(safe) if not self.reach[v] & ~reachable)
                if still != safe:
                    kept[candidates] = still
                    changed = True
        return kept

    def _one_step_ahead(self, candidates: ValueSet) -> ValueSet:
        entries = [self.reach[value] for value in values_of(candidates)]
        goes_on = value_set(
            after
            for after in self.values
            if any(entry >> after & 1 for entry in entries)
            and representatives(entries, after) is not None
        )
        return value_set(v for v in values_of(candidates) if not self.reach[v] & ~goes_on)

    def _some_sets_with(self, value: int) -> list[ValueSet]:
        """Try windows of the other values, those with the fewest reach sets in common first."""
        others = sorted(
            (other for other in values_of(self.known) if other != value),
            key=lambda other: (self.reach[other] & self.reach[value]).bit_count(),
        )
        windows = range(len(others) - self.size + 2)
        return [value_set([value, *others[i : i + self.size - 1]]) for i in windows]


def images(entries: Sequence[ValueSet]) -> set[ValueSet]:
    """Return every set that has one value from each entry, all different."""
    found = {0}
    for entry in entries:
        found = {chosen | 1 << value for chosen in found for value in values_of(entry & ~chosen)}
    return found
