"""Group the new records that no bucket has room for.

A record's signature is for ever, so the choice is made here. Signatures come from a small
*balanced* family: j reach sets, each m / j times. Balanced signatures leave the adversary with
equally many paths through every candidate, hence a risk of 1/m under equal probabilities, and
being few they make full buckets, hence tight groups. What does not fit the family is grouped
freely, m different values at a time; what is not m-eligible is filled up with counterfeits.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from pg_mdistinct.core.arrays import IntArray
from pg_mdistinct.core.buckets import FIRST_TIME, Bucket
from pg_mdistinct.core.model import M_DISTINCT_STAR, UpdateModel
from pg_mdistinct.core.signature import Signature
from pg_mdistinct.core.values import ValueSet, disjoint_company, value_set

IN_USE_BONUS = 2.0


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


def partition_first_time(
    counts: IntArray,
    model: UpdateModel,
    m: int,
    variant: str,
    in_use: Collection[Signature],
    rng: np.random.Generator,
) -> list[Bucket]:
    """Put all these records, given by value, into buckets of groups of at least m."""
    types = value_types(model)
    if variant == M_DISTINCT_STAR:
        templates = _disjoint_templates(counts, model, m, types)
    else:
        templates = _partition(counts, model, m, types, in_use, rng)
    buckets: dict[Signature, Bucket] = {}
    for template in templates:
        entries = types.signature(template.types)
        bucket = buckets.setdefault(entries, Bucket(entries, FIRST_TIME, np.zeros_like(counts)))
        bucket.counts += template.taken
    return [bucket for bucket in buckets.values() if bucket.counts.any()]


def _partition(
    counts: IntArray,
    model: UpdateModel,
    m: int,
    types: ValueTypes,
    in_use: Collection[Signature],
    rng: np.random.Generator,
) -> list[Template]:
    """Make groups of m, some a row larger where m does not divide the number of records."""
    total, groups = int(counts.sum()), int(counts.sum()) // m
    left_over = total - groups * m
    if counts.max(initial=0) > groups or (left_over and model.largest_free_group <= m):
        return _partition_with_counterfeits(counts, model, m, types, in_use, rng)
    extras = _most_frequent(counts, left_over)
    templates = _peel(counts - np.bincount(extras, minlength=len(counts)), groups, m, types, in_use)
    lonely = [v for v in extras if not _enlarge(templates, v, types, model.largest_free_group)]
    if lonely:
        rest = np.bincount(lonely, minlength=len(counts)).astype(np.int64)
        templates += _partition_with_counterfeits(rest, model, m, types, in_use, rng)
    return templates


def _partition_with_counterfeits(
    counts: IntArray,
    model: UpdateModel,
    m: int,
    types: ValueTypes,
    in_use: Collection[Signature],
    rng: np.random.Generator,
) -> list[Template]:
    """Make the counts m-eligible by imagined rows, group all, and keep the real ones.

    The holes that remain are given their values later, together with those of other buckets.
    """
    groups = max(int(counts.max(initial=0)), -(-int(counts.sum()) // m))
    padding = np.zeros_like(counts)
    missing = groups * m - int(counts.sum())
    while missing:
        room = np.where(model.known, groups - counts - padding, 0)
        chance = (counts + 1.0) * (room > 0)
        drawn = np.minimum(rng.multinomial(missing, chance / chance.sum()), room)
        padding += drawn
        missing -= int(drawn.sum())
    templates = _peel(counts + padding, groups, m, types, in_use)
    real = counts.copy()
    for template in templates:
        template.taken = np.minimum(template.taken, real)
        real -= template.taken
    return templates


def _most_frequent(counts: IntArray, how_many: int) -> list[int]:
    """Choose values to set aside, each time the one that is most frequent by then."""
    left = counts.copy()
    chosen = []
    for _ in range(how_many):
        value = int(np.argmax(left))
        left[value] -= 1
        chosen.append(value)
    return chosen


def _peel(
    counts: IntArray, groups: int, m: int, types: ValueTypes, in_use: Collection[Signature]
) -> list[Template]:
    """Take off as many groups of one template as keep the rest m-eligible, again and again."""
    left = counts.copy()
    templates = []
    while groups:
        template = _best_balanced(left, groups, m, types, in_use)
        if template is None:
            template = _most_frequent_values(left, groups, m, types)
        left -= template.taken
        groups -= template.groups
        templates.append(template)
    return templates


def _best_balanced(
    left: IntArray, groups: int, m: int, types: ValueTypes, in_use: Collection[Signature]
) -> Template | None:
    """Return the balanced template that places the most records, those in use first."""
    best, best_score = None, 0.0
    totals = np.array([left[values].sum() for values in types.members])
    for parts in (j for j in range(1, m + 1) if m % j == 0):
        chosen = _types_for(left, groups, parts, m // parts, types, totals)
        if chosen is None:
            continue
        most = _most_groups(left, groups, chosen, m // parts, types)
        signature = types.signature(chosen * (m // parts))
        score = most * (IN_USE_BONUS if signature in in_use else 1.0) / parts**2
        if score > best_score:
            best_score = score
            best = Template(chosen * (m // parts), most, np.zeros_like(left))
            for t in chosen:
                values = types.members[t]
                best.taken[values] = _take(left[values], most, m // parts, groups)
    return best


def _types_for(
    left: IntArray, groups: int, parts: int, each: int, types: ValueTypes, totals: IntArray
) -> list[int] | None:
    """Choose the types of a template: those that cannot wait, then the fullest ones.

    A value that is as frequent as there are groups left has to be in every one of them.
    """
    urgent, other = [], []
    for t in np.argsort(-totals, kind="stable"):
        counts = left[types.members[t]]
        critical = int((counts == groups).sum())
        if critical > each or (critical and (counts > 0).sum() < each):
            return None
        if critical:
            urgent.append(int(t))
        elif (counts > 0).sum() >= each:
            other.append(int(t))
    if len(urgent) > parts or len(urgent) + len(other) < parts:
        return None
    return urgent + other[: parts - len(urgent)]


def _most_groups(
    left: IntArray, groups: int, chosen: list[int], each: int, types: ValueTypes
) -> int:
    """Return how many groups of a template can be taken off with the rest still m-eligible."""
    outside = np.delete(left, np.concatenate([types.members[t] for t in chosen]))
    most = groups - int(outside.max(initial=0))
    for t in chosen:
        most = min(most, int(left[types.members[t]].sum()) // each)
    while most > 0 and not all(
        _can_take(left[types.members[t]], most, each, groups) for t in chosen
    ):
        most = min(most - 1, most * 7 // 8)
    return most


def _can_take(counts: IntArray, taken: int, each: int, groups: int) -> bool:
    lowest = np.maximum(counts - (groups - taken), 0).sum()
    return bool(lowest <= taken * each <= np.minimum(counts, taken).sum())


def _take(counts: IntArray, taken: int, each: int, groups: int) -> IntArray:
    """Choose the rows of one type: what has to go now, then in proportion to what is there."""
    amount: IntArray = np.maximum(counts - (groups - taken), 0)
    room = np.minimum(counts, taken) - amount
    need = taken * each - int(amount.sum())
    share = need * room // max(int(room.sum()), 1)
    amount += share
    room -= share
    need -= int(share.sum())
    for i in np.argsort(-room, kind="stable")[:need]:
        amount[i] += 1
    return amount


def _most_frequent_values(left: IntArray, groups: int, m: int, types: ValueTypes) -> Template:
    """Return groups of the m most frequent values: always possible while m-eligible."""
    order = np.argsort(-left, kind="stable")
    chosen, others = order[:m], order[m:]
    most = min(int(left[chosen].min()), groups - int(left[others].max(initial=0)))
    taken = np.zeros_like(left)
    taken[chosen] = most
    return Template([int(types.of_value[v]) for v in chosen], most, taken)


def _enlarge(templates: list[Template], extra: int, types: ValueTypes, largest: int) -> bool:
    """Add one record to a group that has not got its value; tell whether there was one.

    Signatures whose most frequent types still make up m rows are preferred: they keep the
    adversary at 1/m.
    """
    extra_type = int(types.of_value[extra])

    def preference(template: Template) -> tuple[bool, int, int]:
        highest = max(template.types.count(t) for t in template.types)
        unbalanced = template.types.count(extra_type) >= highest
        return (unbalanced, len(template.types), -template.groups)

    for template in sorted(templates, key=preference):
        if template.groups == 0 or len(template.types) >= largest:
            continue
        group = _one_group_without(template, extra, types)
        if group is not None:
            template.groups -= 1
            template.taken[group] -= 1
            taken = np.zeros_like(template.taken)
            taken[[*group, extra]] = 1
            templates.append(Template([*template.types, extra_type], 1, taken))
            return True
    return False


def _one_group_without(template: Template, value: int, types: ValueTypes) -> list[int] | None:
    """Pick the values of one group, the most frequent first; None if it needs the given one."""
    if template.taken[value] == template.groups:
        return None
    group: list[int] = []
    for t in set(template.types):
        candidates = [int(v) for v in types.members[t] if v != value and template.taken[v]]
        candidates.sort(key=lambda v: -int(template.taken[v]))
        chosen = candidates[: template.types.count(t)]
        if len(chosen) < template.types.count(t):
            return None
        group += chosen
    return group


def _disjoint_templates(
    counts: IntArray, model: UpdateModel, m: int, types: ValueTypes
) -> list[Template]:
    """Group for m-distinct*: m types with pairwise disjoint reach sets, the fullest first."""
    reach = model.reach_sets(1)
    left = counts.copy()
    templates = []
    while left.any():
        totals = np.array([left[values].sum() for values in types.members])
        order = np.argsort(-totals, kind="stable")
        first_of_type = [int(types.members[t][0]) for t in order]
        company = disjoint_company(reach, first_of_type[0], m, first_of_type)
        assert company is not None, "a checked model has disjoint company for every value"
        chosen = [int(types.of_value[v]) for v in company]
        present = [t for t in chosen if totals[t]]
        groups_left = max(int(totals.max()), -(-int(totals.sum()) // m))
        outside = int(np.delete(totals, chosen).max(initial=0))
        groups = max(1, min(int(totals[present].min()), groups_left - outside))
        taken = np.zeros_like(left)
        for t in present:
            values = types.members[t]
            taken[values] = _take(left[values], groups, 1, groups + int(left[values].max()))
        left -= taken
        templates.append(Template(chosen, groups, taken))
    return templates
