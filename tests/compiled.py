"""Keeps what Numba has compiled from one test run to the next.

Compiling takes longer than most of the suite, and a throwaway server starts without any of it. The
installer keeps the compiled code of a package whose sources have not changed, so it is enough to
put the former folder back before it runs.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import pg_mdistinct
from tests.fix_server import Server


@contextmanager
def kept(server: Server, config: pytest.Config) -> Iterator[None]:
    """Restores the compiled code before the block and saves it after; only on our own server."""
    restore(server, config)
    yield
    saved = _saved(config)
    if server.data is not None and saved is not None:
        _copy(_code(server.data), saved)


def restore(server: Server, config: pytest.Config) -> None:
    """Puts the compiled code where the installer will find it."""
    saved = _saved(config)
    if server.data is not None and saved is not None and saved.is_dir():
        code = _code(server.data)
        _copy(saved, code)
        _give(code.parent, like=server.data)


def _saved(config: pytest.Config) -> Path | None:
    cache = getattr(config, "cache", None)
    return cache and cache.mkdir("mdistinct-compiled") / pg_mdistinct.__version__


def _code(data: Path) -> Path:
    return data / "pg_mdistinct" / pg_mdistinct.__version__


def _copy(source: Path, target: Path) -> None:
    # copytree keeps the time stamps, by which Numba knows its own.
    target.parent.mkdir(mode=0o700, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix=".new-", dir=target.parent))
    shutil.copytree(source, fresh, dirs_exist_ok=True)
    shutil.rmtree(target, ignore_errors=True)
    fresh.rename(target)


def _give(folder: Path, *, like: Path) -> None:
    owner = like.stat()
    for path in (folder, *folder.rglob("*")):
        os.chown(path, owner.st_uid, owner.st_gid)
