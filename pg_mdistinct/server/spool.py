"""The part of the audit trail that outlives a rollback: lines of JSON in a file beside the data."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

FOLDER = "pg_mdistinct_audit"

Line = dict[str, Any]


class Spool:
    """The file of one database; every session of the server may write to it at any time.

    A server process works in the data directory, so that is where the relative path leads.
    """

    def __init__(self, database: int, root: Path = Path()) -> None:
        self._path = root / FOLDER / f"{database}.jsonl"

    def append(self, line: Mapping[str, Any], *, for_good: bool = True) -> None:
        """Add a line, for good: it is on the disk before the call goes on."""
        # A newline on either side: what a crash has torn off spoils no line but its own.
        data = f"\n{json.dumps(line)}\n".encode()
        self._path.parent.mkdir(mode=0o700, exist_ok=True)
        with self._locked(os.O_WRONLY | os.O_APPEND | os.O_CREAT) as file:
            if os.write(file, data) < len(data):
                raise OSError("there is no room left for it")
            if for_good:
                os.fsync(file)

    def read(self) -> list[Line]:
        """Return all lines, oldest first."""
        try:
            return list(_parsed(self._path.read_text(encoding="utf-8")))
        except FileNotFoundError:
            return []

    def size(self) -> int:
        """Return the length of the file in bytes."""
        return self._path.stat().st_size

    def forget(self, calls: Collection[str]) -> None:
        """Take the lines of these calls out, in one step: a crash leaves all of them or none."""
        with self._locked(os.O_RDWR) as file:
            left = [line for line in self.read() if line["call"] not in calls]
            if not left:
                os.ftruncate(file, 0)
                return
            fresh = self._path.with_suffix(".new")
            with fresh.open("w", encoding="utf-8") as copy:
                copy.writelines(f"{json.dumps(line)}\n" for line in left)
                copy.flush()
                os.fchmod(copy.fileno(), 0o600)
                os.fsync(copy.fileno())
            fresh.replace(self._path)

    @contextmanager
    def _locked(self, flags: int) -> Iterator[int]:
        """Open the file that has the name now, and keep others from writing to it."""
        while True:
            file = os.open(self._path, flags, 0o600)
            fcntl.flock(file, fcntl.LOCK_EX)
            if self._is_current(file):
                break
            # Somebody has put another file in its place while we waited.
            os.close(file)
        try:
            yield file
        finally:
            os.close(file)

    def _is_current(self, file: int) -> bool:
        try:
            return bool(os.path.samestat(os.fstat(file), self._path.stat()))
        except FileNotFoundError:
            return False


def this_process() -> dict[str, int | None]:
    """Return what tells this process from all others, also from a later one of the same number."""
    return {"pid": os.getpid(), "since": _start_of(os.getpid())}


def is_alive(process: Mapping[str, Any]) -> bool:
    """Tell whether a process that ``this_process`` has described is still there."""
    try:
        os.kill(process["pid"], 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return bool(_start_of(process["pid"]) == process["since"])


def _start_of(pid: int) -> int | None:
    """Return when a process started, in ticks since the machine did; None where nobody says."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The name of the program, in brackets, may hold blanks.
    return int(stat.rpartition(")")[2].split()[19])


def _parsed(text: str) -> Iterator[Line]:
    for line in text.split("\n"):
        try:
            parsed = json.loads(line)
        except ValueError:
            continue
        if isinstance(parsed, dict) and "call" in parsed:
            yield parsed
