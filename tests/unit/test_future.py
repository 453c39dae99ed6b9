"""Models are refused exactly where trying everything finds no way to publish for ever."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from pg_mdistinct.core.errors import MdistinctError
from pg_mdistinct.core.model import UpdateModel
from tests.oracle.future import publishable_values
from tests.strategies import ModelSpec, random_model


def accepted(model: ModelSpec, m: int, variant: str) -> bool:
    known = np.ones(len(model.labels), dtype=np.bool_)
    try:
        UpdateModel(model.transition, known, model.labels).check(m, variant)
    except MdistinctError:
        return False
    return True


def small_models(count: int, *, hostile: bool) -> list[ModelSpec]:
    rng = Random(7)
    drawn = (random_model(rng, hostile=hostile) for _ in range(3 * count))
    return [model for model in drawn if len(model.labels) <= 6][:count]


@pytest.mark.parametrize("variant", ["m-distinct", "m-distinct*"])
@pytest.mark.parametrize("hostile", [False, True])
def test_a_model_is_accepted_if_every_value_can_be_published_for_ever(
    variant: str, hostile: bool
) -> None:
    verdicts = set()
    for model in small_models(60, hostile=hostile):
        for m in range(2, min(4, len(model.labels)) + 1):
            expected = publishable_values(model.by_label, m, variant) == set(model.labels)
            assert accepted(model, m, variant) is expected, (model, m)
            verdicts.add(expected)
    assert verdicts == ({True} if (variant, hostile) == ("m-distinct", False) else {True, False})
