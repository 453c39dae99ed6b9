"""Range counts over a part θ of every domain, answered from a release: the paper's query error.

Only so many ranges of a given width fit into a domain. So all answers there can be are computed at
once, as products of matrices, and queries drawn at random look theirs up.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

import numpy as np

from pg_mdistinct.core.arrays import FloatArray, IntArray
from pg_mdistinct.experiments.boxes import Boxes
from pg_mdistinct.workload import EDUCATIONS, MARITAL, OCCUPATIONS, OLDEST, SnapshotArray

Domains = Mapping[str, tuple[int, int]]
"""The lowest and the highest value of each QI column and, last, of the sensitive one."""

DOMAINS: Domains = {
    "age": (1, OLDEST),
    "gender": (0, 1),
    "marital": (0, len(MARITAL) - 1),
    "education": (0, EDUCATIONS - 1),
    "occupation": (0, OCCUPATIONS - 1),
}
QUERIES = 10_000


def median_error(
    people: SnapshotArray,
    boxes: Boxes,
    rng: np.random.Generator,
    theta: float = 0.5,
    queries: int = QUERIES,
    domains: Domains = DOMAINS,
) -> float:
    """Return the median of |R* − R| / R* over random queries; those with R* = 0 do not count."""
    asked = [rng.integers(len(_starts(domain, theta)), size=queries) for domain in domains.values()]
    estimate = estimates(boxes, theta, domains)[tuple(asked)]
    truth = counts(people, theta, domains)[tuple(asked)]
    seen = estimate > 0
    return float(np.median(np.abs(estimate - truth)[seen] / estimate[seen]))


def estimates(boxes: Boxes, theta: float, domains: Domains = DOMAINS) -> FloatArray:
    """Return the estimated count R* of every query, by where its range starts in each domain.

    Records lie evenly within what their group shows, and have each of its values alike.
    """
    age, gender, marital, education = (
        _shares(low, high, _starts(domain, theta), _width(domain, theta))
        for domain, low, high in zip(domains.values(), boxes.low, boxes.high, strict=False)
    )
    occupation = (_value_shares(boxes, theta, domains["occupation"]) * boxes.records).T
    by_group = np.ascontiguousarray(age.T)
    found = np.empty([len(_starts(domain, theta)) for domain in domains.values()])
    for i, j, k in product(range(len(gender)), range(len(marital)), range(len(education))):
        share = gender[i] * marital[j] * education[k]
        within = np.flatnonzero(share)
        covered = occupation[within] * share[within, None]
        found[:, i, j, k] = by_group[within].T @ covered
    return found


def counts(people: SnapshotArray, theta: float, domains: Domains = DOMAINS) -> IntArray:
    """Return the true count R of every query, by where its range starts in each domain."""
    sizes = [high - low + 1 for low, high in domains.values()]
    place = [people[name] - low for name, (low, _) in domains.items()]
    cells = np.bincount(np.ravel_multi_index(place, sizes), minlength=int(np.prod(sizes)))
    found = cells.reshape(sizes)
    for axis, domain in enumerate(domains.values()):
        found = _window_sums(found, axis, _width(domain, theta))
    return found


def _window_sums(cells: IntArray, axis: int, width: int) -> IntArray:
    """Add up all runs of so many cells along an axis."""
    before = np.insert(np.cumsum(cells, axis=axis), 0, 0, axis=axis)
    last = before.shape[axis]
    return np.take(before, range(width, last), axis) - np.take(before, range(last - width), axis)


def _width(domain: tuple[int, int], theta: float) -> int:
    low, high = domain
    return max(round(theta * (high - low + 1)), 1)


def _starts(domain: tuple[int, int], theta: float) -> IntArray:
    """Return where ranges that cover a part θ of a domain may start."""
    low, high = domain
    return np.arange(low, high - _width(domain, theta) + 2)


def _shares(low: IntArray, high: IntArray, starts: IntArray, width: int) -> FloatArray:
    """Return, by start and group, the part of a group's range that a query covers."""
    first = starts[:, None]
    common = np.minimum(high, first + width - 1) - np.maximum(low, first) + 1
    share: FloatArray = np.maximum(common, 0) / (high - low + 1)
    return share


def _value_shares(boxes: Boxes, theta: float, domain: tuple[int, int]) -> FloatArray:
    """Return, by start and group, the part of a group's rows whose value a query asks for."""
    values = domain[1] + 1
    cells = np.bincount(
        boxes.rows.row_of_item * values + boxes.rows.items, minlength=len(boxes.rows) * values
    )
    standing = cells.reshape(len(boxes.rows), values).T
    share: FloatArray = _window_sums(standing, 0, _width(domain, theta)) / boxes.rows.lengths
    return share
