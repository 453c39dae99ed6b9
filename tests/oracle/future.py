"""Which records can be published for ever, found by trying all candidate sets.

A game: the record's value changes as the model allows while up to `LONGEST_GAP` releases go by,
then the publisher chooses the next candidates. A state is lost if some change leaves no legal
choice, or only lost ones.
"""

from __future__ import annotations

from itertools import combinations

from tests.oracle.checker import has_one_to_one_update, is_legal_update_instance
from tests.oracle.history import Reach, UpdateModel

LONGEST_GAP = 3

State = tuple[frozenset[str], str]
"""The candidates of a record's last version, and its true value among them."""


def publishable_values(model: UpdateModel, m: int, variant: str) -> set[str]:
    """Values with which a new record can be published now and in every release to come."""
    reach = Reach(model)
    safe = _safe_states(model, m)
    return {
        value
        for candidates, value in safe
        if variant == "m-distinct"
        or all(not reach(a) & reach(b) for a, b in combinations(candidates, 2))
    }


def _safe_states(model: UpdateModel, m: int) -> set[State]:
    groups = [frozenset(group) for group in combinations(sorted(model), m)]
    reach = Reach(model)
    gaps = range(1, LONGEST_GAP + 1)
    following = {
        (old, gap): [new for new in groups if _legal(reach, old, gap, new)]
        for old in groups
        for gap in gaps
    }
    safe = {(group, value) for group in groups for value in group}
    while True:
        lost = {
            (group, value)
            for group, value in safe
            if not all(
                any((new, changed) in safe for new in following[group, gap])
                for gap in gaps
                for changed in reach(value, gap)
            )
        }
        if not lost:
            return safe
        safe -= lost


def _legal(reach: Reach, old: frozenset[str], gap: int, new: frozenset[str]) -> bool:
    signature = tuple(reach(value, gap) for value in old)
    return is_legal_update_instance(new, signature) and has_one_to_one_update(new, signature)
