"""m-Distinct republication of dynamic tables, inside PostgreSQL.

Importing the package needs the standard library alone: the interpreter inside the server imports it
too, and has no psycopg.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"
__all__ = ["Client", "__version__"]


def __getattr__(name: str) -> Any:
    """Imports `Client` when it is first asked for."""
    if name == "Client":
        return import_module("pg_mdistinct.client").Client
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
