"""Check a whole release history against the principle, from what was published alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from pg_mdistinct.core.arrays import BoolArray, IntArray
from pg_mdistinct.core.compiled import kernel, kernel_part
from pg_mdistinct.core.history import History
from pg_mdistinct.core.model import M_DISTINCT_STAR, UpdateModel
from pg_mdistinct.core.update_graph import Progress, beliefs_in_parts

CHUNK = 100_000


@dataclass(frozen=True)
class Violation:
    """One breach: a group (row of the history) and, where it is about a version, which one."""

    group: int
    version: int | None
    rule: str
    detail: str


def find_violations(
    history: History,
    model: UpdateModel,
    m: Sequence[int],
    variant: str,
    progress: Progress = lambda phase, share: None,
) -> Iterator[Violation]:
    """Go through everything that m-Distinct promises; ``m`` is given per group.

    The last rule is the adversary's own: no candidate of any version may be ruled out.
    """
    yield from _groups_that_are_not_m_unique(history, np.asarray(m))
    yield from _wrong_counterfeit_counts(history)
    yield from _values_not_in_their_group(history, model)
    yield from _records_twice_in_a_release(history)
    yield from _illegal_updates(history, model, progress)
    if variant == M_DISTINCT_STAR:
        yield from _first_groups_that_overlap(history, model)
    yield from _pruned_candidates(history, model, progress)


def _groups_that_are_not_m_unique(history: History, m: IntArray) -> Iterator[Violation]:
    lengths = history.rows.lengths
    for group in np.flatnonzero(lengths < m):
        yield Violation(
            int(group), None, "m-unique", f"{lengths[group]} rows, at least {m[group]} needed"
        )
    group_of_item = history.rows.row_of_item
    order = np.lexsort((history.rows.items, group_of_item))
    same = (np.diff(group_of_item[order]) == 0) & (np.diff(history.rows.items[order]) == 0)
    for repeated in np.unique(group_of_item[order][1:][same]):
        yield Violation(int(repeated), None, "m-unique", "a sensitive value occurs twice")


def _wrong_counterfeit_counts(history: History) -> Iterator[Violation]:
    members = np.bincount(history.group, minlength=len(history.rows))
    extra = history.rows.lengths - members
    for group in np.flatnonzero(extra != history.counterfeits):
        yield Violation(
            int(group),
            None,
            "counterfeit count",
            f"{history.rows.lengths[group]} rows and {members[group]} members, "
            f"but {history.counterfeits[group]} counterfeits announced",
        )


def _values_not_in_their_group(history: History, model: UpdateModel) -> Iterator[Violation]:
    present = np.zeros((len(history.rows), len(model)), dtype=np.bool_)
    present[history.rows.row_of_item, history.rows.items] = True
    told = np.flatnonzero(history.value >= 0)
    absent = told[~present[history.group[told], history.value[told]]]
    for version in absent:
        yield Violation(
            int(history.group[version]),
            int(version),
            "own value",
            "the record's sensitive value is not among its group's",
        )


def _records_twice_in_a_release(history: History) -> Iterator[Violation]:
    for version in np.flatnonzero(~history.is_first & (history.gap == 0)):
        yield Violation(
            int(history.group[version]),
            int(version),
            "one group a release",
            "the record is in more than one group of this release",
        )


def _illegal_updates(
    history: History, model: UpdateModel, progress: Progress
) -> Iterator[Violation]:
    """Compare every version with the one before: the definition, and the one-to-one matching."""
    later = np.flatnonzero(~history.is_first & (history.gap > 0))
    gaps = history.gap[later]
    done = 0
    for gap in np.unique(gaps):
        versions = later[gaps == gap]
        for chunk in np.array_split(versions, len(versions) // CHUNK + 1):
            before = history.rows.take(history.group[chunk - 1])
            after = history.rows.take(history.group[chunk])
            legal, matched = _compare(
                before.offsets, before.items, after.offsets, after.items, model.reach(int(gap))
            )
            done += len(chunk)
            progress("compare releases", done / len(later))
            yield from _breaches(history, chunk[~legal], "legal update instance")
            yield from _breaches(history, chunk[legal & ~matched], "one-to-one matching")


def _breaches(history: History, versions: IntArray, rule: str) -> Iterator[Violation]:
    for version in versions:
        before = history.release[history.group[version - 1]]
        yield Violation(
            int(history.group[version]),
            int(version),
            rule,
            f"the candidates do not follow from those of release {before}",
        )


@kernel()
def _compare(  # type: ignore[no-untyped-def]
    before_offsets, before, after_offsets, after, reach
) -> tuple[BoolArray, BoolArray]:
    """Tell for each pair of groups whether it is a legal update instance, and fully matched."""
    pairs = len(before_offsets) - 1
    legal = np.zeros(pairs, dtype=np.bool_)
    matched = np.zeros(pairs, dtype=np.bool_)
    for pair in range(pairs):
        old = before[before_offsets[pair] : before_offsets[pair + 1]]
        new = after[after_offsets[pair] : after_offsets[pair + 1]]
        size = len(old)
        if size != len(new):
            continue
        covered = True
        for a in range(size):
            onward, back = False, False
            for b in range(size):
                onward = onward or reach[old[a], new[b]]
                back = back or reach[old[b], new[a]]
            covered = covered and onward and back
        legal[pair] = covered
        owner = np.full(size, -1, dtype=np.int64)
        found = 0
        for a in range(size):
            if _claim(a, old, new, reach, owner, np.zeros(size, dtype=np.bool_)):
                found += 1
        matched[pair] = found == size
    return legal, matched


@kernel_part
def _claim(a, old, new, reach, owner, tried):  # type: ignore[no-untyped-def]
    """Match one old candidate with a new one, moving others along an augmenting path."""
    for b in range(len(new)):
        if reach[old[a], new[b]] and not tried[b]:
            tried[b] = True
            if owner[b] < 0 or _claim(owner[b], old, new, reach, owner, tried):
                owner[b] = a
                return True
    return False


def _first_groups_that_overlap(history: History, model: UpdateModel) -> Iterator[Violation]:
    reach = model.reach(1).astype(np.int64)
    first = np.flatnonzero(history.is_first)
    for group in np.unique(history.group[first]):
        if (reach[history.rows.row(int(group))].sum(axis=0) > 1).any():
            for version in first[history.group[first] == group]:
                yield Violation(
                    int(group),
                    int(version),
                    "disjoint first group",
                    "possible updates of two values of the record's first group overlap",
                )


def _pruned_candidates(
    history: History, model: UpdateModel, progress: Progress
) -> Iterator[Violation]:
    for chunk, found in beliefs_in_parts(history, model, progress):
        pruned = np.bincount(found.nodes.row_of_item[~found.alive], minlength=len(found.nodes))
        for row in np.flatnonzero(pruned):
            version = chunk.start + int(row)
            yield Violation(
                int(history.group[version]),
                version,
                "pruned candidate",
                f"an adversary can rule out {pruned[row]} of {found.nodes.lengths[row]} values",
            )
