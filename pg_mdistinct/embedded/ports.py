"""Free TCP ports on the loopback interface."""

from __future__ import annotations

import socket

_LOOPBACK = "127.0.0.1"


def free_port(preferred: int | None = None) -> int:
    """The preferred port if nobody has it, else any free one."""
    return _bound_port(preferred or 0) or _bound_port(0) or 0


def _bound_port(port: int) -> int | None:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # As PostgreSQL does: a port in TIME_WAIT is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((_LOOPBACK, port))
        except OSError:
            return None
        bound: int = probe.getsockname()[1]
        return bound
