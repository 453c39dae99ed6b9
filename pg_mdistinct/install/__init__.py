"""Puts the plugin into a database, brings it up to date, takes it out again."""

from __future__ import annotations

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
