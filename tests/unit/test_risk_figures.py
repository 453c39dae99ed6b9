from __future__ import annotations

import numpy as np

from pg_mdistinct.cli.risk_charts import histogram, quantiles
from pg_mdistinct.risk_figures import RiskFigures


def test_figures() -> None:
    figures = RiskFigures.of(np.array([0.5, 0.5, 0.25, 1.0]))
    assert (figures.versions, figures.mean, figures.max) == (4, 0.5625, 1.0)
    assert figures.quantiles["0"] == 0.25
    assert figures.quantiles["0.5"] == 0.5
    assert figures.quantiles["0.99"] == 1.0
    assert figures.histogram == [0, 0, 1, 0, 2, 0, 0, 0, 0, 1]


def test_bins_hold_their_upper_end_whatever_the_rounding() -> None:
    almost = np.nextafter(0.5, 1)
    assert RiskFigures.of(np.array([almost, 0.0, 1 / 3 * 3])).histogram[4] == 1
    assert RiskFigures.of(np.array([0.0])).histogram[0] == 1


def test_nothing_has_no_risk() -> None:
    figures = RiskFigures.of(np.empty(0))
    assert (figures.versions, figures.max, sum(figures.histogram)) == (0, 0.0, 0)
    assert histogram(figures).plain == ""
    assert quantiles(figures).plain == ""


def test_histogram_leaves_empty_ends_out_and_shows_the_smallest_bar() -> None:
    figures = RiskFigures.of(np.array([0.25] + [0.45] * 999))
    lines = histogram(figures).plain.splitlines()
    assert len(lines) == 3
    assert lines[0].endswith("▏")
    assert lines[1].endswith("0.0% ")
    assert lines[2].count("█") == 40
