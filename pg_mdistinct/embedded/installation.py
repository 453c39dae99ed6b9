"""Finds the PostgreSQL programs of this machine that come with PL/Python."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pg_mdistinct.embedded.errors import EmbeddedServerError

OLDEST_MAJOR = 14
_DEBIAN_PROGRAMS = Path("/usr/lib/postgresql")
_DEBIAN_SHARE = Path("/usr/share/postgresql")


@dataclass(frozen=True)
class Installation:
    """One installed PostgreSQL server."""

    major: int
    bindir: Path

    def program(self, name: str) -> str:
        """The full path of one of its programs."""
        return str(self.bindir / name)

    def has_library(self, name: str) -> bool:
        """Whether a library can be loaded into the server by its name."""
        pg_config = self.bindir / "pg_config"
        asked = _output(str(pg_config), "--pkglibdir") if pg_config.exists() else ""
        folder = Path(asked) if asked else self.bindir.parent / "lib"
        return (folder / f"{name}.so").is_file()


def find_installation(major: int | None = None) -> Installation:
    """The newest server that has PL/Python, or the one of that major version."""
    found = [each for each in _installations() if major in (None, each.major)]
    if found:
        return max(found, key=lambda each: each.major)
    wanted = f"PostgreSQL {major}" if major else f"PostgreSQL {OLDEST_MAJOR} or newer"
    package = str(major) if major else "N"
    raise EmbeddedServerError(
        f"{wanted} with PL/Python is not installed",
        f"install the Debian packages postgresql-{package} and postgresql-plpython3-{package}",
    )


def _installations() -> Iterator[Installation]:
    for bindir in _program_folders():
        major = _major_version(bindir)
        if major >= OLDEST_MAJOR and _has_plpython(bindir, major):
            yield Installation(major, bindir)


def _program_folders() -> Iterator[Path]:
    yield from _DEBIAN_PROGRAMS.glob("*/bin")
    pg_config = shutil.which("pg_config")
    if pg_config:
        yield Path(_output(pg_config, "--bindir"))


def _major_version(bindir: Path) -> int:
    """The server's major version, 0 where there is no server (pg_config may come alone)."""
    postgres = bindir / "postgres"
    if not postgres.exists():
        return 0
    match = re.search(r"\(PostgreSQL\) (\d+)", _output(str(postgres), "--version"))
    return int(match[1]) if match else 0


def _has_plpython(bindir: Path, major: int) -> bool:
    # Some Debian releases ship pg_config with the development files only.
    pg_config = bindir / "pg_config"
    share = Path(_output(str(pg_config), "--sharedir")) if pg_config.exists() else None
    folder = share or _DEBIAN_SHARE / str(major)
    return (folder / "extension" / "plpython3u.control").is_file()


def _output(*command: str) -> str:
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    return result.stdout.strip()
