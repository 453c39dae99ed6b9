"""Group the new records that no bucket has room for.

A record's signature is for ever, so the choice is made here. Signatures come from a small
*balanced* family: j reach sets, each m / j times. Balanced signatures leave the adversary with
equally many paths through every candidate, hence a risk of 1/m under equal probabilities, and
being few they make full buckets, hence tight groups. What does not fit the family is grouped
freely, m different values at a time; what is not m-eligible is filled up with counterfeits.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

import numpy as np

from pg_mdistinct.core.arrays import IntArray
from pg_mdistinct.core.buckets import FIRST_TIME, Bucket, fewest_groups
from pg_mdistinct.core.counterfeits import balance
from pg_mdistinct.core.family import Surroundings, choose_groups
from pg_mdistinct.core.model import M_DISTINCT_STAR, UpdateModel
from pg_mdistinct.core.signature import Signature
from pg_mdistinct.core.templates import Template, ValueTypes, one_group, rebalanced, value_types
from pg_mdistinct.core.values import disjoint_company, value_set

IN_USE_BONUS = 2.0


def partition_first_time(
    new: IntArray,
    around: Surroundings,
    model: UpdateModel,
    m: int,
    variant: str,
    rng: np.random.Generator,
    progress: Callable[[float], None] = lambda share: None,
) -> tuple[list[Bucket], dict[Signature, IntArray]]:
    """Put new records, counted by region and value, into buckets of groups of at least m.

    Returns pieces of buckets, several of which may have the same signature, and for signatures
    that had better take their records from certain regions how many of which value from where.
    """
    types = value_types(model)
    counts = new.sum(axis=0)
    preferred: dict[Signature, IntArray] = {}
    if variant == M_DISTINCT_STAR:
        templates = _disjoint_templates(counts, model, m, types)
    else:
        chosen = choose_groups(new, around, m, types, progress)
        preferred = {types.signature(c.types): c.taken for c in chosen}
        templates = [Template(c.types, c.groups, c.taken.sum(axis=0)) for c in chosen]
        used = {*around.groups, *preferred}
        templates = _complete(templates, counts, model, m, types, used, rng)
    pieces = [Bucket(types.signature(t.types), FIRST_TIME, t.taken) for t in templates]
    return [piece for piece in pieces if piece.counts.any()], preferred


def _complete(
    templates: list[Template],
    counts: IntArray,
    model: UpdateModel,
    m: int,
    types: ValueTypes,
    in_use: Collection[Signature],
    rng: np.random.Generator,
) -> list[Template]:
    """Add groups for the records that the templates leave; some get a row more than m.

    That is the case where m does not divide the number of records.
    """
    left = counts - sum((template.taken for template in templates), np.zeros_like(counts))
    extras = _left_over(left, model, m)
    left -= np.bincount(extras, minlength=len(counts))
    padding = _padding(left, model, m, rng)
    templates = templates + _peel(left + padding, m, types, in_use)
    templates = [part for t in templates for part in rebalanced(t, templates, types)]
    lonely = [v for v in extras if not _enlarge(templates, v, types, model.largest_free_group)]
    if lonely:
        templates += _padded(np.bincount(lonely, minlength=len(counts)), model, m, types, rng)
    return _only_real(templates, padding)


def _left_over(counts: IntArray, model: UpdateModel, m: int) -> list[int]:
    """Return the values of the records that are one too many, if larger groups may take them."""
    groups = int(counts.sum()) // m
    if counts.max(initial=0) > max(groups, 1) or model.largest_free_group <= m:
        return []
    return _most_frequent(counts, int(counts.sum()) - groups * m)


def _padding(counts: IntArray, model: UpdateModel, m: int, rng: np.random.Generator) -> IntArray:
    """Return the imagined rows that make records m-eligible: any m different values a group."""
    free = Bucket((value_set(model.known_values),) * m, FIRST_TIME, counts)
    free.groups = fewest_groups(free)
    if not free.holes:
        return np.zeros_like(counts)
    return balance(free, counts.astype(np.float64) + 1.0, rng)[1]


def _padded(
    counts: IntArray, model: UpdateModel, m: int, types: ValueTypes, rng: np.random.Generator
) -> list[Template]:
    """Group a few records with counterfeits only."""
    padding = _padding(counts, model, m, rng)
    return _only_real(_peel(counts + padding, m, types, ()), padding)


def _only_real(templates: list[Template], padding: IntArray) -> list[Template]:
    """Take imagined rows out again: they are holes, which get their values later."""
    imagined = padding.copy()
    for template in reversed(templates):
        out = np.minimum(template.taken, imagined)
        template.taken = template.taken - out
        imagined -= out
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
    left: IntArray, m: int, types: ValueTypes, in_use: Collection[Signature]
) -> list[Template]:
    """Take off as many groups of one template as keep the rest m-eligible, again and again.

    Balanced templates as long as there are any, then free ones.
    """
    templates = []
    used = set(in_use)
    left = left.copy()
    groups = int(left.sum()) // m
    while groups:
        template = _best_balanced(left, groups, m, types, used)
        if template is None:
            template = _most_frequent_values(left, groups, m, types)
        left -= template.taken
        groups -= template.groups
        templates.append(template)
        used.add(types.signature(template.types))
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
        group = one_group(template, types, without=extra)
        if group is not None:
            template.groups -= 1
            template.taken[group] -= 1
            taken = np.zeros_like(template.taken)
            taken[[*group, extra]] = 1
            templates.append(Template([*template.types, extra_type], 1, taken))
            return True
    return False


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
