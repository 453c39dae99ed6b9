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
    cache = getattr(config, "cache", None)
    if server.data is None or cache is None:
        yield
        return
    saved = cache.mkdir("mdistinct-compiled") / pg_mdistinct.__version__
    code = server.data / "pg_mdistinct" / pg_mdistinct.__version__
    if saved.is_dir():
        _copy(saved, code)
        _give(code.parent, like=server.data)
    yield
    _copy(code, saved)


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
