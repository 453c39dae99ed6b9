"""Fills the placeholders of the SQL files.

`@LOAD@` becomes `sql/load.py.in`, the lines that every PL/Python body starts with; in it, and
anywhere else, `@CODE@` is the server code's folder (a Python literal), `@VERSION@` the version,
`@REPAIR@` what puts missing code there, and `@MODULES@` the modules of `pg_mdistinct.server` that
the file's text calls.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pg_mdistinct.install.errors import InstallError


@dataclass(frozen=True)
class Rendering:
    """What the placeholders stand for."""

    code: str
    version: str
    load: str
    modules: Sequence[str]
    repair: str = "pg-mdistinct install --dsn DSN"


def render(path: Path, rendering: Rendering) -> str:
    """The text of an SQL file as the server is to execute it."""
    text = path.read_text(encoding="utf-8")
    if "@LOAD@" in text:
        modules = _called_modules(path, text, rendering.modules)
        text = text.replace("@LOAD@", rendering.load.strip("\n"))
        text = text.replace("@MODULES@", ", ".join(modules))
    text = text.replace("@CODE@", repr(rendering.code)).replace("@VERSION@", rendering.version)
    text = text.replace("@REPAIR@", rendering.repair)
    if leftover := re.search(r"@[A-Z_]+@", text):
        raise InstallError(
            f"{path.name} uses the unknown placeholder {leftover[0]}",
            hint="The known ones are @LOAD@, @CODE@ and @VERSION@.",
        )
    return text


def _called_modules(path: Path, text: str, modules: Sequence[str]) -> list[str]:
    called = [module for module in modules if re.search(rf"(?<![\w.]){module}\.\w", text)]
    if not called:
        raise InstallError(
            f"{path.name} uses @LOAD@ but calls no module of pg_mdistinct.server",
            hint="The body of the function should be one call, such as publication.publish(plpy).",
        )
    return called
