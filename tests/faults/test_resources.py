"""A disk that is full, and a backend that gets no more memory."""

from __future__ import annotations

import os
import secrets
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from pg_mdistinct.embedded import EmbeddedServer
from tests.faults.victim import (
    Victim,
    change,
    expect_principle,
    expect_whole,
    last_release,
    make_ward,
    publish,
)
from tests.integration.cases import Connection

pytestmark = [pytest.mark.embedded, pytest.mark.slow]

DISK = "320m"
KIB, MIB = 2**10, 2**20
RECORDS = 2000
LIMIT_MEMORY = """
DO LANGUAGE plpython3u $$
import resource
with open("/proc/self/statm") as file:
    used = int(file.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + {0}, used + {0}))
$$
"""


@pytest.fixture(scope="module")
def disk() -> Iterator[Path]:
    """A small file system of one's own, or an ordinary folder where none can be mounted."""
    folder = Path(tempfile.gettempdir()) / f"mdistinct-disk-{secrets.token_hex(4)}"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK},mode=755", "tmpfs", str(folder)]
    try:
        subprocess.run(mount, capture_output=True, check=False)
        yield folder
    finally:
        if folder.is_mount():
            subprocess.run(["umount", str(folder)], check=True)
        folder.rmdir()


@pytest.fixture(scope="module")
def victim(template: str, disk: Path, pytestconfig: pytest.Config) -> Iterator[Victim]:
    embedded = EmbeddedServer(disk / "server", throwaway=True)
    try:
        yield Victim(embedded, pytestconfig)
    finally:
        embedded.stop()


def attempt(db: Connection, name: str) -> str | None:
    """Publish; return the SQLSTATE of what went wrong, empty where the session was lost."""
    try:
        publish(db, name)
    except psycopg.Error as error:
        return error.sqlstate or ""
    return None


def expect_all_or_nothing(db: Connection, name: str, before: int, *, done: bool) -> None:
    """See that the release is there or not, and that the next one needs no repair."""
    assert last_release(db, name) == before + done
    expect_whole(db, name)
    publish(db, name)


def test_a_disk_that_is_full(victim: Victim, disk: Path) -> None:
    if not disk.is_mount():
        pytest.skip("a small file system cannot be mounted here")
    with victim.connect() as db:
        make_ward(db, "crammed", RECORDS)
        before = publish(db, "crammed")
    filler, states = disk / "filler", set()
    for number, left in enumerate((16 * KIB, 256 * KIB, 512 * KIB, MIB)):
        with victim.connect() as db:
            change(db, "crammed", number)
            db.execute("CHECKPOINT")
            with filler.open("wb") as file:
                room = os.statvfs(disk)
                os.posix_fallocate(file.fileno(), 0, room.f_bavail * room.f_frsize - left)
            state = attempt(db, "crammed")
            filler.unlink()
        states.add(state)
        # Where the log of changes itself found no room the server has stopped.
        victim.start_again()
        with victim.connect() as db:
            expect_all_or_nothing(db, "crammed", before, done=state is None)
            before = last_release(db, "crammed")
    assert "53100" in states
    with victim.connect() as db:
        expect_principle(db)


def test_a_backend_without_memory(victim: Victim) -> None:
    with victim.connect() as db:
        make_ward(db, "poor", RECORDS)
        before = publish(db, "poor")
    states, done = set(), False
    for number, more in enumerate((0, 1, 4, 16, 2, 8, 3, 6, 12, 5, 10, 7)):
        # How much is free already differs: go on until it was the publication that found no room.
        if number >= 4 and "53200" in states:
            break
        with victim.connect() as db:
            # The code is loaded by this, so that it is the publication that finds no room.
            expect_all_or_nothing(db, "poor", before, done=done)
            change(db, "poor", number)
            before = last_release(db, "poor")
            db.execute(LIMIT_MEMORY.format(more * MIB))
            state = attempt(db, "poor")
            done = state is None
            states.add(state)
    # Nobody sees a traceback; where even an error finds no room PostgreSQL ends the session.
    assert "53200" in states <= {"53200", "", None}
    with victim.connect() as db:
        expect_all_or_nothing(db, "poor", before, done=done)
        expect_principle(db)
