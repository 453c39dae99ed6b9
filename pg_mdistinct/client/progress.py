"""How far a call is: what the server tells while it works."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

# The one place that knows how pg_mdistinct.server.progress puts it.
_TOLD = re.compile(r"(?P<phase>[^:]+): (?P<percent>\d+)%")


@dataclass(frozen=True)
class Progress:
    """A phase, and the share of it that is done, from 0 to 1."""

    phase: str
    share: float

    @classmethod
    def of(cls, message: str) -> Progress | None:
        """Reads a notice; None: it tells something else."""
        found = _TOLD.fullmatch(message)
        return found and cls(found["phase"], int(found["percent"]) / 100)


OnProgress = Callable[[Progress], None]
"""Is called with each `Progress` that the server tells of."""
