"""Tells whether a server runs, from its pid file and from the titles of its processes.

A pid alone proves nothing: after a crash it may belong to any other process. Command lines are
readable for everybody, also where root may not look into processes of other accounts (containers).
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pg_mdistinct.embedded.errors import EmbeddedServerError
from pg_mdistinct.embedded.places import Places

_PROC = Path("/proc")
_PID_FILE = "postmaster.pid"
_ORPHANS_LEAVE = 5.0


@dataclass(frozen=True)
class Postmaster:
    """What a running server says about itself in its pid file."""

    pid: int
    port: int
    sockets: str
    ready: bool


def find_postmaster(places: Places) -> Postmaster | None:
    """The running server of that home; None if there is none, whatever its pid file says."""
    try:
        lines = (places.data / _PID_FILE).read_text(errors="surrogateescape").splitlines()
        pid = int(lines[0])
    except (OSError, ValueError, IndexError):
        return None
    if not is_postmaster(pid, places.data):
        return None
    # The file grows line by line while the server starts.
    known = lines + [""] * (8 - len(lines))
    return Postmaster(pid, int(known[3] or 0), known[4], known[7].strip() == "ready")


def is_postmaster(pid: int, data: Path) -> bool:
    """Whether that process is the server of that data folder."""
    return _command_line(pid).endswith(b"\0-D\0" + os.fsencode(data) + b"\0")


def is_gone(pid: int) -> bool:
    """Whether that process has ended; its command line would be empty during an exec as well."""
    try:
        stat = (_PROC / str(pid) / "stat").read_bytes()
    except OSError:
        return True
    # The state follows the name, which stands in parentheses and may hold any character.
    return stat.rpartition(b")")[2].split()[0] in b"ZX"


def end_postmaster(pid: int, data: Path, how: signal.Signals, patience: float) -> bool:
    """Signals the server and waits until it is gone."""
    os.kill(pid, how)
    deadline = time.monotonic() + patience
    while is_postmaster(pid, data):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def clear_stale_files(places: Places) -> None:
    """Removes what a killed server left behind, once none of its processes lives any more.

    PostgreSQL itself gives up if the pid in a lock file belongs to any process of the same account.
    Its second safeguard, the shared memory of surviving backends, is named in the very file that is
    removed here, hence the wait.
    """
    _wait_for_orphans(places)
    (places.data / _PID_FILE).unlink(missing_ok=True)
    if places.sockets.is_dir():
        for leftover in places.sockets.glob(".s.PGSQL.*"):
            leftover.unlink(missing_ok=True)


def _wait_for_orphans(places: Places) -> None:
    # Backends leave by themselves when their postmaster is gone, unless they are busy.
    if _all_gone(places) or _all_gone(places, _ORPHANS_LEAVE):
        return
    for pid in _orphans(places):
        os.kill(pid, signal.SIGQUIT)
    if not _all_gone(places, _ORPHANS_LEAVE):
        pids = ", ".join(map(str, _orphans(places)))
        raise EmbeddedServerError(
            f"processes of a server that was killed are still at work in {places.data}: {pids}",
            "end them, then start the server again",
        )


def _all_gone(places: Places, patience: float = 0.0) -> bool:
    deadline = time.monotonic() + patience
    while any(_orphans(places)):
        if time.monotonic() >= deadline:
            return False
        time.sleep(0.05)
    return True


def _orphans(places: Places) -> Iterator[int]:
    title = b"postgres: " + places.cluster_name.encode() + b":"
    for folder in _PROC.iterdir():
        if folder.name.isdigit() and _command_line(int(folder.name)).startswith(title):
            yield int(folder.name)


def _command_line(pid: int) -> bytes:
    """Empty for a process that is gone, and for a zombie."""
    try:
        return (_PROC / str(pid) / "cmdline").read_bytes()
    except OSError:
        return b""
