"""Thousands of small random histories, published by the core and judged by the oracle.

PG_MDISTINCT_HISTORIES says how many (default 5000); a longer run takes other seeds too.
"""

from __future__ import annotations

import os

import numpy as np
import pytest
from hypothesis import given, settings

from pg_mdistinct.core import errors
from pg_mdistinct.core.errors import MdistinctError
from pg_mdistinct.core.model import UpdateModel
from tests.core_history import CoreHistory
from tests.strategies import MODEL_KINDS, HistorySpec, histories, random_history

HISTORIES = int(os.environ.get("PG_MDISTINCT_HISTORIES", "5000"))
BATCHES = 20


def check_model(spec: HistorySpec) -> None:
    known = np.ones(len(spec.model.labels), dtype=np.bool_)
    UpdateModel(spec.model.transition, known, spec.model.labels).check(spec.m, spec.variant)


def problems_of(spec: HistorySpec, seed: int) -> list[str]:
    check_model(spec)
    return CoreHistory.run(spec, seed).violations()


@pytest.mark.parametrize("batch", range(BATCHES))
def test_histories_that_obey_their_model_are_published_without_violation(batch: int) -> None:
    seeds = range(batch, HISTORIES, BATCHES)
    broken = {seed: found for seed in seeds if (found := problems_of(random_history(seed), seed))}
    assert broken == {}


def test_the_random_histories_cover_every_kind_of_model() -> None:
    kinds = {random_history(seed).model.kind for seed in range(200)}
    assert kinds == set(MODEL_KINDS)


@pytest.mark.parametrize("batch", range(4))
def test_hostile_models_are_refused_or_published_for_good(batch: int) -> None:
    """Whatever the check lets through can be published to the end; what it refuses it explains."""
    refusals = []
    for seed in range(batch, 800, 4):
        spec = random_history(seed, hostile=True)
        try:
            check_model(spec)
        except MdistinctError as error:
            refusals.append((error, spec.model.labels))
        else:
            assert CoreHistory.run(spec, seed).violations() == []
    assert 0 < len(refusals) < 200
    for refusal, labels in refusals:
        assert refusal.sqlstate == errors.NO_LEGAL_RELEASE
        assert any(f'"{label}"' in refusal.message for label in labels)


@settings(max_examples=200)
@given(histories())
def test_property_every_history_is_published_without_violation(spec: HistorySpec) -> None:
    assert problems_of(spec, 0) == []
