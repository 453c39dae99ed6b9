"""One start or stop at a time, across processes."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pg_mdistinct.embedded.account import Account
from pg_mdistinct.embedded.errors import EmbeddedServerError
from pg_mdistinct.embedded.places import make_home

_PATIENCE = 180.0


@contextmanager
def exclusive(path: Path, account: Account) -> Iterator[None]:
    """Holds the lock file at `path` for as long as the block runs."""
    descriptor = _acquire(path, account)
    try:
        yield
    finally:
        os.close(descriptor)


def _acquire(path: Path, account: Account) -> int:
    deadline = time.monotonic() + _PATIENCE
    while True:
        # A throwaway server takes its home along when it stops, which may be just now.
        make_home(path.parent, account)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        if _try_lock(descriptor) and _is_still_there(path, descriptor):
            account.give(path)
            return descriptor
        os.close(descriptor)
        if time.monotonic() > deadline:
            raise EmbeddedServerError(
                f"somebody else has been starting or stopping this server for {_PATIENCE:.0f} s",
                f"see which process holds {path}",
            )
        time.sleep(0.05)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_still_there(path: Path, descriptor: int) -> bool:
    """Whether the file was not deleted before we had its lock."""
    try:
        return path.stat().st_ino == os.fstat(descriptor).st_ino
    except FileNotFoundError:
        return False
