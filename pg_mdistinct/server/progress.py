"""Progress of a long publication: a word now and then, and a chance to cancel it."""

from __future__ import annotations

import time

from pg_mdistinct.server.plpython import Plpy

QUIET_SECONDS = 2.0
BREATH_SECONDS = 0.2


class Progress:
    """Called by the core with a phase and a share between 0 and 1."""

    def __init__(self, plpy: Plpy) -> None:
        self._plpy = plpy
        self._told = self._breathed = time.monotonic()

    def __call__(self, phase: str, share: float) -> None:
        """Let PostgreSQL look for a cancel request, and tell the client if it has waited long."""
        now = time.monotonic()
        if now - self._breathed >= BREATH_SECONDS:
            self._breathed = now
            self._plpy.execute("SELECT 1")
        if now - self._told >= QUIET_SECONDS:
            self._told = now
            self._plpy.notice(f"{phase}: {share:.0%}")
