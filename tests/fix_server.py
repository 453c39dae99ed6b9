"""One throwaway PostgreSQL for the whole test run, shared by all of its workers."""

from __future__ import annotations

import os
import secrets
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from pg_mdistinct.embedded import EmbeddedServer

DSN_VARIABLE = "PG_MDISTINCT_TEST_DSN"
_HOME = pytest.StashKey[Path]()


@dataclass(frozen=True)
class Server:
    """A running server: the run's own, or the one that $PG_MDISTINCT_TEST_DSN names."""

    maintenance_dsn: str
    data: Path | None
    """Its data folder, where that is ours to look into."""

    def dsn(self, dbname: str, **options: str) -> str:
        """The DSN of one of its databases, as superuser unless `user` says otherwise."""
        return make_conninfo(self.maintenance_dsn, dbname=dbname, **options)

    def maintenance(self) -> psycopg.Connection[Any]:
        """A connection for CREATE DATABASE and the like."""
        return psycopg.connect(self.maintenance_dsn, autocommit=True)


def pytest_configure(config: pytest.Config) -> None:
    # The controller chooses the place and tells its workers; a run without workers is both.
    workerinput = getattr(config, "workerinput", {})
    chosen = workerinput.get("server_home") or _new_home()
    config.stash[_HOME] = Path(chosen)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    node.workerinput["server_home"] = str(node.config.stash[_HOME])


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput") and config.stash[_HOME].exists():
        EmbeddedServer(config.stash[_HOME], throwaway=True).stop()


@pytest.fixture(scope="session")
def server(pytestconfig: pytest.Config) -> Server:
    """The server that every test database lives on."""
    if dsn := os.environ.get(DSN_VARIABLE):
        return Server(dsn, data=None)
    home = pytestconfig.stash[_HOME]
    embedded = EmbeddedServer(home, throwaway=True)
    embedded.start()
    return Server(embedded.dsn("postgres"), data=embedded.home / "data")


@pytest.fixture(scope="module")
def own_server() -> Iterator[Server]:
    """A server of one's own, for tests that change what belongs to the whole cluster."""
    embedded = EmbeddedServer(Path(_new_home()), throwaway=True)
    embedded.start()
    try:
        yield Server(embedded.dsn("postgres"), data=embedded.home / "data")
    finally:
        embedded.stop()


def _new_home() -> str:
    return f"{tempfile.gettempdir()}/mdistinct-test-{secrets.token_hex(4)}"
