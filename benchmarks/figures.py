"""A figure that was measured, and what it should be."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """Held where the value is at most the bar, or at least it; without a bar it is a report."""

    what: str
    value: float
    bar: float | None = None
    aim: float | None = None
    at_least: bool = False

    @property
    def held(self) -> bool | None:
        """Tell whether the bar is held; None if there is none."""
        if self.bar is None:
            return None
        return self.value >= self.bar if self.at_least else self.value <= self.bar

    @property
    def sign(self) -> str:
        """Return how value and bar compare if all is well."""
        return "≥" if self.at_least else "≤"
