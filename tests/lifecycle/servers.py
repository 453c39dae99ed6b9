"""Servers of one's own that come and go within a test, and PostgreSQL's programs for them."""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pg_mdistinct.embedded import EmbeddedServer
from pg_mdistinct.embedded.account import account_for
from pg_mdistinct.embedded.installation import find_installation
from tests import compiled
from tests.fix_server import Server


def new_home() -> Path:
    """Return a place for a server that nobody else has."""
    return Path(tempfile.gettempdir()) / f"mdistinct-own-{secrets.token_hex(4)}"


@contextmanager
def own_server(config: pytest.Config) -> Iterator[EmbeddedServer]:
    """Start a server without the plugin; installing it there compiles nothing."""
    embedded = EmbeddedServer(new_home(), throwaway=True)
    try:
        embedded.start()
        compiled.restore(Server(embedded.dsn("postgres"), embedded.home / "data"), config)
        yield embedded
    finally:
        embedded.stop()


def run(data: Path, program: str, *arguments: str) -> str:
    """Run a program of PostgreSQL as the account that owns a data folder; return its output."""
    found = find_installation(int((data / "PG_VERSION").read_text()))
    done = account_for(data).run(
        found.program(program), *arguments, cwd=Path("/"), env={"PATH": "/usr/bin:/bin"}
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
