"""A private PostgreSQL with PL/Python, for the demo, for tests and for trying things out.

It needs the standard library alone and never touches the system's own clusters.
"""

from __future__ import annotations

from pg_mdistinct.embedded.cluster import SUPERUSER
from pg_mdistinct.embedded.errors import EmbeddedServerError
from pg_mdistinct.embedded.server import EmbeddedServer, ServerStatus
from pg_mdistinct.embedded.settings import DATABASE

__all__ = ["DATABASE", "SUPERUSER", "EmbeddedServer", "EmbeddedServerError", "ServerStatus"]
