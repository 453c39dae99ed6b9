"""One throwaway PostgreSQL for the whole test run, shared by all of its workers.

`--server=embedded` (the default) takes PostgreSQL from this machine, `--server=image` a container
of the image that `--image` names; $PG_MDISTINCT_TEST_DSN names a server that runs already.
"""

from __future__ import annotations

import os
import secrets
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from pg_mdistinct.embedded import EmbeddedServer

if TYPE_CHECKING:
    from pg_mdistinct.testing import MdistinctContainer

DSN_VARIABLE = "PG_MDISTINCT_TEST_DSN"
_HOME = pytest.StashKey[Path]()
_CONTAINER = pytest.StashKey["MdistinctContainer"]()
_DSN = pytest.StashKey[str]()
# Nothing but the image itself is fetched or started, and all traffic stays on this machine.
_TESTCONTAINERS = {
    "TESTCONTAINERS_RYUK_DISABLED": "true",
    "TESTCONTAINERS_CONNECTION_MODE": "docker_host",
    "TESTCONTAINERS_HOST_OVERRIDE": "127.0.0.1",
}


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


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("pg_mdistinct")
    group.addoption(
        "--server",
        choices=("embedded", "image"),
        default="embedded",
        help="the server under test: this machine's PostgreSQL, or a container",
    )
    group.addoption("--image", default="pg-mdistinct:15", help="the image for --server=image")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "embedded: is about the embedded server")
    config.addinivalue_line("markers", "image: is about the image, needs --server=image")
    # The controller chooses the place and tells its workers; a run without workers is both.
    workerinput = getattr(config, "workerinput", {})
    chosen = workerinput.get("server_home") or _new_home()
    config.stash[_HOME] = Path(chosen)
    if dsn := workerinput.get("server_dsn") or os.environ.get(DSN_VARIABLE):
        config.stash[_DSN] = dsn


def pytest_sessionstart(session: pytest.Session) -> None:
    config = session.config
    if not _in_image(config):
        return
    os.environ.update({**_TESTCONTAINERS, **os.environ})
    if _DSN not in config.stash and not config.option.collectonly:
        config.stash[_CONTAINER] = new_container(config)
        config.stash[_DSN] = config.stash[_CONTAINER].start().dsn("postgres")


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    node.workerinput["server_home"] = str(node.config.stash[_HOME])
    node.workerinput["server_dsn"] = node.config.stash.get(_DSN, None)


def pytest_unconfigure(config: pytest.Config) -> None:
    if _CONTAINER in config.stash:
        config.stash[_CONTAINER].stop()
    if not hasattr(config, "workerinput") and config.stash[_HOME].exists():
        EmbeddedServer(config.stash[_HOME], throwaway=True).stop()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    unfit, reason = (
        ("embedded", "is about the embedded server")
        if _in_image(config)
        else ("image", "is about the image: run it with --server=image")
    )
    for item in items:
        if item.get_closest_marker(unfit):
            item.add_marker(pytest.mark.skip(reason=reason))


def new_container(config: pytest.Config) -> MdistinctContainer:
    """A container of the image under test; its port is open on the loopback interface alone."""
    # testcontainers is needed for the image only, and reads its settings when it is imported.
    from pg_mdistinct.testing import MdistinctContainer

    container = MdistinctContainer(config.getoption("--image"))
    return container.with_env("POSTGRES_HOST_AUTH_METHOD", "trust")


@pytest.fixture(scope="session")
def server(pytestconfig: pytest.Config) -> Server:
    """The server that every test database lives on."""
    if dsn := pytestconfig.stash.get(_DSN, None):
        return Server(dsn, data=None)
    home = pytestconfig.stash[_HOME]
    embedded = EmbeddedServer(home, throwaway=True)
    embedded.start()
    return Server(embedded.dsn("postgres"), data=embedded.home / "data")


@pytest.fixture(scope="module")
def own_server(pytestconfig: pytest.Config) -> Iterator[Server]:
    """A server of one's own, for tests that change what belongs to the whole cluster."""
    if _in_image(pytestconfig):
        pytest.skip("wants a cluster without the plugin, which the image never is")
    embedded = EmbeddedServer(Path(_new_home()), throwaway=True)
    embedded.start()
    try:
        yield Server(embedded.dsn("postgres"), data=embedded.home / "data")
    finally:
        embedded.stop()


def _in_image(config: pytest.Config) -> bool:
    return bool(config.getoption("--server") == "image")


def _new_home() -> str:
    return f"{tempfile.gettempdir()}/mdistinct-test-{secrets.token_hex(4)}"
