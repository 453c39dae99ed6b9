"""Build hook: carries sql/ and migrations/ inside the wheel."""

from __future__ import annotations

from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ResourcesHook(BuildHookInterface[Any]):
    """Adds the resource folders to real wheels only.

    A plain force-include would also copy them into site-packages for an editable install, where
    they would grow stale beside the checkout that the code really reads.
    """

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Maps the two folders to their place inside the package."""
        if version == "standard":
            for folder in ("sql", "migrations"):
                build_data["force_include"][folder] = f"pg_mdistinct/_resources/{folder}"
