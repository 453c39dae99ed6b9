"""The files that make the plugin: the server's Python code, and the SQL of its state.

Needs the standard library alone, for the extension is built where nothing else may be installed.
"""

from __future__ import annotations

from pathlib import Path

import pg_mdistinct
from pg_mdistinct import resources

_PACKAGE = Path(pg_mdistinct.__file__).parent
_PARTS = ("core", "server")
_FIRST_OF_OWNER = "10"


def server_files() -> dict[str, str]:
    """The files that the server needs, by their path below the version's folder."""
    paths = [_PACKAGE / "__init__.py"]
    for part in _PARTS:
        paths += sorted((_PACKAGE / part).rglob("*.py"))
    return {
        path.relative_to(_PACKAGE.parent).as_posix(): path.read_text(encoding="utf-8")
        for path in paths
    }


def server_file(name: str) -> Path:
    """Where the file is here that `server_files` gives this name."""
    return _PACKAGE.parent / name


def server_modules() -> tuple[str, ...]:
    """The modules of `pg_mdistinct.server` that a function's body may call."""
    stems = (path.stem for path in (_PACKAGE / "server").glob("*.py"))
    return tuple(sorted(stem for stem in stems if not stem.startswith("_")))


def revisions() -> list[str]:
    """All revisions, oldest first: the numbers that the names of their files begin with."""
    versions = (resources.migrations_dir() / "versions").glob("[0-9]*_*.py")
    return sorted(path.name.partition("_")[0] for path in versions)


def schema_files(revision: str) -> list[Path]:
    """The schema files of a revision: its frozen ones where a later revision has changed them."""
    frozen = resources.migrations_dir() / "frozen" / revision
    folder = frozen if frozen.is_dir() else resources.sql_dir() / "schema"
    return sorted(folder.glob("*.sql"))


def step_files(former: str, revision: str) -> list[Path]:
    """What leads from one revision to the next: a step of its own, then the files that are new."""
    step = resources.migrations_dir() / "steps" / f"{revision}.sql"
    had = {path.name for path in schema_files(former)}
    new = [path for path in schema_files(revision) if path.name not in had]
    return [*([step] if step.is_file() else []), *new]


def runs_as_owner(path: Path) -> bool:
    """Whether a schema file runs as mdistinct_owner, who thereby owns what it makes."""
    return path.parent.name != "steps" and path.name >= _FIRST_OF_OWNER
