"""m-Distinct republication of dynamic tables, inside PostgreSQL.

Importing the package needs the standard library alone: the interpreter inside the server imports it
too, and has no psycopg.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pg_mdistinct.client import Client

__version__ = "0.2.0"
__all__ = ["Client", "__version__"]


def __getattr__(name: str) -> Any:
    """Imports `Client` when it is first asked for."""
    if name == "Client":
        from pg_mdistinct.client import Client

        return Client
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
