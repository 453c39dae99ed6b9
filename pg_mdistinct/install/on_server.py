"""What the installer does on the server's own machine.

The source of this module travels through the SQL connection and is run by the server's interpreter
(see `remote`), so it needs the standard library alone, and everything in and out is JSON. Whoever
writes or removes holds `build.lock_cluster`.
"""

from __future__ import annotations

import importlib
import os
import shutil
import sys
import tempfile
from pathlib import Path


def probe(modules: list[str]) -> dict[str, object]:
    """The interpreter's version, and the version of each module (None where it cannot import)."""
    return {
        "version": list(sys.version_info[:3]),
        "modules": {module: _module_version(module) for module in modules},
    }


def write_code(base: str, version: str, files: dict[str, str]) -> bool:
    """Puts the files into the folder of this version, all or nothing; False if they were there."""
    root = Path(base)
    root.mkdir(mode=0o700, exist_ok=True)
    _sweep(root)
    target = root / version
    if _sources(target) == files:
        return False
    fresh = Path(tempfile.mkdtemp(prefix=".new-", dir=root))
    _fill(fresh, files, target)
    if target.exists():
        target.rename(fresh.with_name(fresh.name.replace(".new-", ".old-")))
    fresh.rename(target)
    _sync(root)
    _sweep(root)
    return True


def list_code(base: str) -> list[str]:
    """The versions whose code is there."""
    root = Path(base)
    if not root.is_dir():
        return []
    return sorted(entry.name for entry in root.iterdir() if not entry.name.startswith("."))


def remove_code(base: str, versions: list[str]) -> None:
    """Removes the folders of these versions, and with the last of them the base itself."""
    root = Path(base)
    for version in versions:
        shutil.rmtree(root / version)
    if not list_code(base):
        shutil.rmtree(root)


def _module_version(name: str) -> str | None:
    # A module can fail to import in many ways (a broken library, a wrong NumPy under Numba):
    # for the installer each of them means that it is not usable.
    try:
        module = importlib.import_module(name)
    except Exception:
        return None
    return str(getattr(module, "__version__", "unknown"))


def _sweep(root: Path) -> None:
    # What an interrupted installation left behind, and the folder that was just replaced.
    for pattern in (".new-*", ".old-*"):
        for leftover in root.glob(pattern):
            shutil.rmtree(leftover)


def _sources(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8")
        for path in folder.rglob("*.py")
    }


def _fill(fresh: Path, files: dict[str, str], former: Path) -> None:
    old = _sources(former)
    for package in sorted({os.path.dirname(path) for path in files}):  # noqa: PTH120
        mine = _within(files, package)
        if mine == _within(old, package):
            # Packages come before what they contain: an unchanged one inside a changed one wins.
            # Keeps time stamps and __pycache__, and so what Numba has compiled for this package.
            shutil.copytree(former / package, fresh / package, dirs_exist_ok=True)
        else:
            _write(fresh, mine)
    for folder in (fresh, *(path for path in fresh.rglob("*") if path.is_dir())):
        folder.chmod(0o700)
        _sync(folder)


def _within(files: dict[str, str], package: str) -> dict[str, str]:
    return {path: text for path, text in files.items() if path.startswith(f"{package}/")}


def _write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(descriptor)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
