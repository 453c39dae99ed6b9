"""Products of matrices, without BLAS.

Where memory runs out, OpenBLAS asks for its buffer again and again, for ever, and nothing but the
end of the process stops it. Update models are small and mostly zeros, so it is not missed.
"""

from __future__ import annotations

import numpy as np

from pg_mdistinct.core.compiled import kernel


@kernel()
def product(first, second):  # type: ignore[no-untyped-def]
    """Return the product of two matrices of numbers."""
    result = np.zeros((first.shape[0], second.shape[1]))
    for i in range(first.shape[0]):
        for k in range(first.shape[1]):
            if first[i, k] != 0.0:
                for j in range(second.shape[1]):
                    result[i, j] += first[i, k] * second[k, j]
    return result


@kernel()
def joined(first, second):  # type: ignore[no-untyped-def]
    """Return the pairs that a pair of the first and a pair of the second relation connect."""
    result = np.zeros((first.shape[0], second.shape[1]), dtype=np.bool_)
    for i in range(first.shape[0]):
        for k in range(first.shape[1]):
            if first[i, k]:
                for j in range(second.shape[1]):
                    result[i, j] |= second[k, j]
    return result
