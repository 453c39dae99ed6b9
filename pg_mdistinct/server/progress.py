"""Progress of long work: a word now and then, and a chance to cancel it."""

from __future__ import annotations

import time
from types import TracebackType

from pg_mdistinct.server.plpython import Plpy, run

QUIET_SECONDS = 2.0
BREATH_SECONDS = 0.2
NAME = "mdistinct"


class Progress:
    """Called by the core with a phase and a share between 0 and 1.

    The caller gets notices. Others see phase and share, and nothing else, in the application_name
    of the session (see the view mdistinct.progress), which it has again what it was in the end.
    """

    def __init__(self, plpy: Plpy) -> None:
        self._plpy = plpy
        self._told = self._breathed = time.monotonic()
        self._former: str | None = None

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        # A failure rolls back, and that changes the name back too.
        if kind is None and self._former is not None:
            self._show(self._former)

    def __call__(self, phase: str, share: float) -> None:
        """Let PostgreSQL look for a cancel request, and tell the client if it has waited long."""
        now = time.monotonic()
        if now - self._breathed >= BREATH_SECONDS:
            self._breathed = now
            if self._former is None:
                name = "pg_catalog.current_setting('application_name')"
                self._former = str(self._plpy.execute(f"SELECT {name} AS name")[0]["name"])
            # A statement is a chance to be cancelled.
            self._show(f"{NAME}: {phase} {share:.0%}")
        if now - self._told >= QUIET_SECONDS:
            self._told = now
            self._plpy.notice(f"{phase}: {share:.0%}")

    def _show(self, name: str) -> None:
        run(
            self._plpy,
            "SELECT pg_catalog.set_config('application_name', $1, true)",
            ["text"],
            [name],
        )
