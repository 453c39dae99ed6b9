"""Products without BLAS are the products that there are."""

from __future__ import annotations

import numpy as np
import pytest

from pg_mdistinct.core.model import UpdateModel
from pg_mdistinct.core.products import joined, product


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("size", [1, 2, 7, 30])
def test_products_are_those_of_numpy(size: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    first, second = rng.random((2, size, size)) * (rng.random((2, size, size)) < 0.4)
    np.testing.assert_allclose(product(first, second), first @ second, atol=1e-15)
    connected = joined(first > 0, second > 0)
    np.testing.assert_array_equal(connected, (first > 0).astype(int) @ (second > 0).astype(int) > 0)


@pytest.mark.parametrize("steps", range(1, 8))
def test_a_model_takes_as_many_steps_as_it_is_told(steps: int) -> None:
    rng = np.random.default_rng(steps)
    chain = np.triu(np.tril(rng.random((9, 9)) + 0.1, 1))
    chain /= chain.sum(axis=1, keepdims=True)
    model = UpdateModel(chain, np.ones(9, dtype=np.bool_), "abcdefghi")
    power = np.linalg.matrix_power(chain, steps)
    np.testing.assert_allclose(model.power(steps), power, atol=1e-15)
    np.testing.assert_array_equal(model.reach(steps), power > 0)
