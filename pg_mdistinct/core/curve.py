"""Put points of space into an order in which neighbours come close to each other."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pg_mdistinct.core.arrays import IntArray

MOST_BITS = 60


def along_curve(position: npt.NDArray[np.float32], rng: np.random.Generator) -> IntArray:
    """Return each point's place on a curve through the unit cube, a Z-order.

    Every such curve tears some neighbours apart; a random shift makes it tear others each time.
    """
    attributes = position.shape[1]
    bits = min(6, MOST_BITS // max(attributes, 1))
    shifted = position + rng.random(attributes, dtype=np.float32)
    cell = (shifted * (2 ** (bits - 1) - 0.5)).astype(np.int64)
    place = np.zeros(len(position), dtype=np.int64)
    for bit in range(bits - 1, -1, -1):
        for attribute in range(attributes):
            place = place << 1 | cell[:, attribute] >> bit & 1
    return place
