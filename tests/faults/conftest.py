"""A server of one's own to break, with the plugin and a small dataset in it."""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from pg_mdistinct.embedded import EmbeddedServer
from tests.faults.victim import Victim


@pytest.fixture(scope="module")
def victim(template: str, pytestconfig: pytest.Config) -> Iterator[Victim]:
    """The template comes first, so that what Numba compiles is there to be copied."""
    home = Path(tempfile.gettempdir()) / f"mdistinct-victim-{secrets.token_hex(4)}"
    embedded = EmbeddedServer(home, throwaway=True)
    try:
        yield Victim(embedded, pytestconfig)
    finally:
        embedded.stop()
