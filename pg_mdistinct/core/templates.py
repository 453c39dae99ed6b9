"""Templates of first groups: which types of values they take, and how to make them balanced.

A template is balanced if all its types occur equally often in it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, islice

import numpy as np

from pg_mdistinct.core.arrays import IntArray
from pg_mdistinct.core.model import UpdateModel
from pg_mdistinct.core.signature import Signature
from pg_mdistinct.core.values import ValueSet, value_set

FEW_GROUPS = 8
TYPES_TRIED = 8
LENDERS_TRIED = 100
"""Rebalancing tries ways to combine types and groups; what it does not find stays unbalanced."""


@dataclass(frozen=True)
class ValueTypes:
    """Values with the same reach set are of one type; an entry takes any value of its type."""

    members: list[IntArray]
    of_value: IntArray
    sets: list[ValueSet]

    def signature(self, types: Collection[int]) -> Signature:
        """Return the signature with one entry for each of these types."""
        return tuple(sorted(self.sets[t] for t in types))


@dataclass
class Template:
    """Groups of one signature: how many, and how many records of each value they take."""

    types: list[int]
    groups: int
    taken: IntArray


def value_types(model: UpdateModel) -> ValueTypes:
    """Sort the known values by their reach sets."""
    reach = model.reach_sets(1)
    by_reach: dict[ValueSet, list[int]] = {}
    for value in model.known_values:
        by_reach.setdefault(reach[value], []).append(value)
    of_value = np.full(len(model), -1, dtype=np.int64)
    for number, values in enumerate(by_reach.values()):
        of_value[values] = number
    members = [np.array(values, dtype=np.int64) for values in by_reach.values()]
    return ValueTypes(members, of_value, [value_set(values) for values in by_reach.values()])


def one_group(
    template: Template, types: ValueTypes, without: int | None = None
) -> list[int] | None:
    """Pick the values of one group, the most frequent first; None if it needs one to be avoided."""
    if without is not None and template.taken[without] == template.groups:
        return None
    group: list[int] = []
    for t in set(template.types):
        candidates = [int(v) for v in types.members[t] if v != without and template.taken[v]]
        candidates.sort(key=lambda v: -int(template.taken[v]))
        chosen = candidates[: template.types.count(t)]
        if len(chosen) < template.types.count(t):
            return None
        group += chosen
    return group


def rebalanced(
    template: Template, others: Sequence[Template], types: ValueTypes
) -> Iterator[Template]:
    """Yield balanced templates in place of one that is not, borrowing groups from others.

    The last few records seldom come in balanced numbers. Together with a group or two of other
    templates they do: their rows are dealt out again. Where that fails the template stays, and so
    does one with many groups: its values are too skewed for balanced groups.
    """
    while 0 < template.groups <= FEW_GROUPS and not _is_balanced(Counter(template.types)):
        found = _exchange(template, others, types)
        if found is None:
            break
        yield from found
    if template.groups:
        yield template


def _is_balanced(count: Counter[int]) -> bool:
    return len(set(count.values())) == 1


def _exchange(
    template: Template, others: Sequence[Template], types: ValueTypes
) -> list[Template] | None:
    """Take one group off a template, and off one or two others, and make balanced ones of them."""
    lenders = {
        types.signature(other.types): other
        for other in others
        if other.groups and _is_balanced(Counter(other.types))
    }
    size = len(template.types)
    for how_many in (1, 2):
        for lent in islice(combinations(lenders.values(), how_many), LENDERS_TRIED):
            rows = Counter(template.types)
            for lender in lent:
                rows.update(lender.types)
            parts = _balanced_parts(rows, size) if len(rows) <= TYPES_TRIED else None
            if parts is not None:
                dealt = _deal_again((template, *lent), parts, types)
                if dealt is not None:
                    return dealt
    return None


def _balanced_parts(rows: Counter[int], size: int) -> list[list[int]] | None:
    """Cut some rows, counted by type, into balanced templates of a size; None if impossible."""
    types, counts = zip(*rows.most_common(), strict=True)
    parts = _cut(counts, size)
    if parts is None:
        return None
    return [[types[i] for i in part] * (size // len(part)) for part in parts]


@lru_cache(maxsize=LENDERS_TRIED**2)
def _cut(counts: tuple[int, ...], size: int) -> list[tuple[int, ...]] | None:
    """Say which types go together in each template, given their rows, the largest number first.

    Numbers recur although types differ, so most of them have been cut before.
    """
    if not counts:
        return []
    for parts in (j for j in range(1, size + 1) if size % j == 0):
        each = size // parts
        able = [i for i, count in enumerate(counts) if count >= each]
        if 0 not in able:
            continue
        for company in combinations(able[1:], parts - 1):
            together = (0, *company)
            left = {i: n - each * (i in together) for i, n in enumerate(counts)}
            order = sorted((i for i in left if left[i]), key=lambda i: -left[i])
            rest = _cut(tuple(left[i] for i in order), size)
            if rest is not None:
                return [together, *(tuple(order[i] for i in part) for part in rest)]
    return None


def _deal_again(
    sources: tuple[Template, ...], parts: list[list[int]], types: ValueTypes
) -> list[Template] | None:
    """Move one group of each source into new templates, no value twice in any; None if it fails."""
    groups = [one_group(source, types) for source in sources]
    values = [value for group in groups if group is not None for value in group]
    if any(group is None for group in groups):
        return None
    dealt: list[list[int]] = [[] for _ in parts]
    # The most frequent first: they have the fewest places to go to.
    for value in sorted(values, key=lambda v: -values.count(v)):
        own = int(types.of_value[value])
        fitting = [
            i
            for i, part in enumerate(parts)
            if value not in dealt[i]
            and sum(types.of_value[v] == own for v in dealt[i]) < part.count(own)
        ]
        if not fitting:
            return None
        roomiest = max(fitting, key=lambda i: len(parts[i]) - len(dealt[i]))
        dealt[roomiest].append(value)
    for source, group in zip(sources, groups, strict=True):
        source.groups -= 1
        source.taken[group] -= 1
    return [_single(part, group, sources[0]) for part, group in zip(parts, dealt, strict=True)]


def _single(part: list[int], group: list[int], like: Template) -> Template:
    taken = np.zeros_like(like.taken)
    taken[group] = 1
    return Template(part, 1, taken)
