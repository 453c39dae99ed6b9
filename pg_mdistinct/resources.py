"""Finds the files that are not Python, in a checkout and in an installed wheel alike."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def checkout_root() -> Path | None:
    """The root of the checkout that this package was imported from; None in an installed wheel."""
    root = _PACKAGE.parent
    return root if (root / "pyproject.toml").is_file() else None


def sql_dir() -> Path:
    """The folder of the SQL objects' current state."""
    return _folder("sql")


def migrations_dir() -> Path:
    """The folder of the alembic environment."""
    return _folder("migrations")


def _folder(name: str) -> Path:
    # A checkout comes first, so that an edit shows at once.
    base = checkout_root() or _PACKAGE / "_resources"
    folder = base / name
    if not folder.is_dir():
        raise FileNotFoundError(f"pg_mdistinct is incomplete: there is no folder {folder}")
    return folder
