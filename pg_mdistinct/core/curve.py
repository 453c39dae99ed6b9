"""Put points of space into an order in which neighbours come close to each other."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pg_mdistinct.core.arrays import IntArray
from pg_mdistinct.core.compiled import kernel

MOST_BITS = 60


def along_curve(
    position: npt.NDArray[np.float32], rng: np.random.Generator | None = None
) -> IntArray:
    """Return each point's place on a curve through the unit cube, a Z-order.

    Every such curve tears some neighbours apart; a random shift makes it tear others each time.
    """
    attributes = position.shape[1]
    shift = np.zeros(attributes, dtype=np.float32)
    if rng is not None:
        shift += rng.random(attributes, dtype=np.float32)
    bits = min(6, MOST_BITS // max(attributes, 1))
    place: IntArray = _interleaved(position, shift, bits)
    return place


@kernel(nogil=True)
def _interleaved(position, shift, bits):  # type: ignore[no-untyped-def]
    """Return the digits of all coordinates in turn, the highest ones first."""
    records, attributes = position.shape
    place = np.zeros(records, dtype=np.int64)
    apart = np.empty(1 << bits, dtype=np.int64)
    scale = np.float32(2 ** (bits - 1) - 0.5)
    for a in range(attributes):
        for cell in range(len(apart)):
            apart[cell] = 0
            for bit in range(bits):
                apart[cell] |= (cell >> bit & 1) << (attributes * (bit + 1) - 1 - a)
        for i in range(records):
            place[i] |= apart[int((position[i, a] + shift[a]) * scale)]
    return place
