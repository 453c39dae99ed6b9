"""Regions and the order of neighbours."""

from __future__ import annotations

import numpy as np

from pg_mdistinct.core.curve import along_curve
from pg_mdistinct.core.regions import CUTS, FEWEST, regions


def test_space_is_cut_where_the_values_differ() -> None:
    rng = np.random.default_rng(1)
    position = rng.random((20_000, 3)).astype(np.float32)
    position[:, 1] = position[:, 1] > 0.4
    value = rng.integers(0, 3, 20_000) + 3 * position[:, 1].astype(np.int64)
    region = regions(position, value)
    assert len(np.unique(region)) == 2**CUTS
    for number in np.unique(region):
        inside = region == number
        assert np.ptp(position[inside, 1]) == 0.0
        assert inside.sum() >= FEWEST
    for first in range(0, 2**CUTS, 2):
        # What the last cut has parted is next to each other in all other respects.
        pair = position[(region == first) | (region == first + 1)]
        assert np.ptp(pair, axis=0).sum() < 1.5


def test_a_few_records_stay_together() -> None:
    position = np.random.default_rng(2).random((100, 2)).astype(np.float32)
    assert not regions(position, np.zeros(100, dtype=np.int64)).any()
    assert len(regions(position[:0], np.zeros(0, dtype=np.int64))) == 0
    assert not regions(position[:, :0], np.zeros(100, dtype=np.int64)).any()


def test_neighbours_on_the_curve_are_neighbours_in_space() -> None:
    rng = np.random.default_rng(3)
    position = rng.random((3_000, 4)).astype(np.float32)
    along = position[np.argsort(along_curve(position, rng))]
    apart = np.abs(np.diff(along, axis=0)).sum(axis=1).mean()
    at_random = np.abs(np.diff(position, axis=0)).sum(axis=1).mean()
    assert apart < 0.5 * at_random


def test_many_attributes_fit_into_one_number() -> None:
    rng = np.random.default_rng(4)
    position = rng.random((50, 25)).astype(np.float32)
    assert (along_curve(position, rng) >= 0).all()
    assert along_curve(position[:, :0], rng).tolist() == [0] * 50
