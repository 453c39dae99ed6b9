"""Balance a bucket with counterfeits: values drawn at random among the legal ones."""

from __future__ import annotations

import numpy as np

from pg_mdistinct.core.arrays import FloatArray, IntArray
from pg_mdistinct.core.buckets import Bucket, BucketNetwork, Placement
from pg_mdistinct.core.values import values_of


def balance(
    bucket: Bucket, popularity: FloatArray, rng: np.random.Generator
) -> tuple[Placement, IntArray]:
    """Fill every hole of the bucket; return where rows stand, and the counterfeits by value.

    Values are drawn in proportion to how common they are among real records: a counterfeit that
    is rarer than its neighbours would give itself away, one that can be predicted could be
    subtracted. Where drawing alone gets stuck because the last fitting values are used up, rows
    are rerouted.
    """
    values = np.array(list(values_of(bucket.fitting)), dtype=np.int64)
    supply = bucket.counts[values]
    rng.shuffle(order := np.arange(len(values)))
    values, supply = values[order], supply[order]
    flow = BucketNetwork(bucket, values, supply, rng)
    flow.augment()
    if bucket.holes:
        drawn = _draw(bucket, flow, supply, popularity[values], rng)
        flow.network.widen(flow.supply, drawn)
        missing = bucket.holes - flow.augment()
        if missing:
            flow.network.widen(flow.supply, bucket.groups - supply - drawn)
            flow.augment()
    placement = flow.placement()
    placed = np.bincount(placement.value, weights=placement.rows, minlength=len(bucket.counts))
    return placement, placed.astype(np.int64) - bucket.counts


def _draw(
    bucket: Bucket,
    flow: BucketNetwork,
    supply: IntArray,
    weight: FloatArray,
    rng: np.random.Generator,
) -> IntArray:
    """Draw values for the holes of each entry type in turn, none beyond once a group."""
    standing = flow.network.flow(flow.entries)
    missing = flow.multiplicity * bucket.groups - standing
    drawn = np.zeros(len(supply), dtype=np.int64)
    for entry_type in rng.permutation(len(missing)):
        fitting = flow.cell_value[flow.cell_type == entry_type]
        while missing[entry_type] > 0:
            room = bucket.groups - supply[fitting] - drawn[fitting]
            chance = weight[fitting] * (room > 0)
            if not chance.any():
                break
            taken = rng.multinomial(missing[entry_type], chance / chance.sum())
            taken = np.minimum(taken, room)
            drawn[fitting] += taken
            missing[entry_type] -= taken.sum()
    return drawn
