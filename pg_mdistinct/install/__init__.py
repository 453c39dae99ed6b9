"""Puts the plugin into a database, brings it up to date, takes it out again.

The names below are imported when they are first asked for: the Docker image installs without
SQLAlchemy and alembic, and must be able to import the rest of this package.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pg_mdistinct.install.commands import InstallReport, install, upgrade
    from pg_mdistinct.install.errors import InstallError, NotReadyError, Problem
    from pg_mdistinct.install.removal import UninstallReport, uninstall

__all__ = [
    "InstallError",
    "InstallReport",
    "NotReadyError",
    "Problem",
    "UninstallReport",
    "install",
    "uninstall",
    "upgrade",
]

_MODULES = {
    "InstallError": "errors",
    "InstallReport": "commands",
    "NotReadyError": "errors",
    "Problem": "errors",
    "UninstallReport": "removal",
    "install": "commands",
    "uninstall": "removal",
    "upgrade": "commands",
}


def __getattr__(name: str) -> Any:
    """Imports the module that has the name."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
