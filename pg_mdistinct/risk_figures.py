"""How risk is distributed over many versions: the figures that every report shows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pg_mdistinct.core.arrays import FloatArray

QUANTILES = (0.0, 0.25, 0.5, 0.75, 0.9, 0.99, 1.0)
BINS = 10
# Sums of probabilities miss round numbers by a few units of the last place.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class RiskFigures:
    """Mean and maximum, quantiles (share of versions -> risk), and a histogram.

    ``histogram[i]`` counts the versions with a risk above i/10 and up to (i+1)/10; a risk of 0
    is counted in the first bin.
    """

    versions: int
    mean: float
    max: float
    quantiles: dict[str, float]
    histogram: list[int]

    @classmethod
    def of(cls, risk: FloatArray) -> RiskFigures:
        """Summarize the risk of some versions; none at all have no risk."""
        if not len(risk):
            return cls(0, 0.0, 0.0, {}, [0] * BINS)
        # 'higher' gives a risk that some version really has, and never a smaller one.
        levels = np.quantile(risk, QUANTILES, method="higher")
        place = np.ceil(risk * BINS - _ROUNDING).astype(np.int64) - 1
        return cls(
            versions=len(risk),
            mean=float(risk.mean()),
            max=float(risk.max()),
            quantiles={
                f"{share:g}": float(level) for share, level in zip(QUANTILES, levels, strict=True)
            },
            histogram=np.bincount(np.clip(place, 0, BINS - 1), minlength=BINS).tolist(),
        )
