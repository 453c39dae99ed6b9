"""For people who test their own code against the plugin: a container, and pytest fixtures.

Needs `pip install 'pg-mdistinct[testcontainers]'`, a Docker engine and the image (see docker/). In
a `conftest.py`:

    from pg_mdistinct.testing import hospital, mdistinct_container

Then a test that takes `mdistinct_container` gets the running server, and one that takes `hospital`
the DSN of a database of its own in which the hospital of the paper has been published once. The
image is $PG_MDISTINCT_IMAGE, else `pg-mdistinct:15`.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Mapping
from typing import Any, cast

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo
from testcontainers.core.container import DockerContainer
from testcontainers.core.waiting_utils import WaitStrategy, WaitStrategyTarget

from pg_mdistinct import Client
from pg_mdistinct.demo import hospital as demo
from pg_mdistinct.install import install

IMAGE_VARIABLE = "PG_MDISTINCT_IMAGE"
DEFAULT_IMAGE = "pg-mdistinct:15"
_PORT = 5432
_LOOPBACK = ("localhost", "127.0.0.1")
# A database that is thrown away need not survive a crash.
_FAST = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
# On a processor of another kind than the image was built on, the first start compiles.
_PATIENCE = 180


class MdistinctContainer(DockerContainer):
    """A throwaway PostgreSQL with the plugin in its default database.

    On a local engine its port is open on the loopback interface alone. `settings` are those of
    postgresql.conf.
    """

    def __init__(
        self,
        image: str | None = None,
        *,
        username: str = "postgres",
        password: str | None = None,
        dbname: str = "mdistinct",
        settings: Mapping[str, str] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(image or default_image(), **options)
        self.username = username
        self.password = password or secrets.token_urlsafe()
        self.dbname = dbname
        self.with_envs(POSTGRES_USER=username, POSTGRES_PASSWORD=self.password, POSTGRES_DB=dbname)
        chosen = {**_FAST, **(settings or {})}
        self.with_command(["postgres", *(f"--{name}={chosen[name]}" for name in chosen)])
        self.waiting_for(self._wait())

    def dsn(self, dbname: str | None = None, **options: str) -> str:
        """How to connect as the superuser: to the default database, or to another one."""
        defaults: dict[str, Any] = {
            "host": self.get_container_host_ip(),
            "port": self.get_exposed_port(_PORT),
            "user": self.username,
            "password": self.password,
            "dbname": dbname or self.dbname,
        }
        return make_conninfo(**{**defaults, **options})

    def start_again(self) -> None:
        """Starts the stopped container, with its data; the port is a new one."""
        self.get_wrapped_container().start()
        self._wait().wait_until_ready(self)

    def _wait(self) -> WaitStrategy:
        return _Answers().with_startup_timeout(_PATIENCE).with_poll_interval(0.2)

    def _configure(self) -> None:
        local = self.get_docker_client().host() in _LOOPBACK
        # The engine takes an address here, too, though the declared type knows ports only.
        cast(dict[str, Any], self.ports)[str(_PORT)] = ("127.0.0.1", None) if local else None


class _Answers(WaitStrategy):
    """Waits until the server takes connections from outside, which it does when it is complete."""

    def wait_until_ready(self, container: WaitStrategyTarget) -> None:
        assert isinstance(container, MdistinctContainer)
        if not self._poll(lambda: _connects(container), [psycopg.OperationalError]):
            raise TimeoutError(f"{container.image} did not become ready in {_PATIENCE} s")


def default_image() -> str:
    """The image that $PG_MDISTINCT_IMAGE names, else the one of Debian 12."""
    return os.environ.get(IMAGE_VARIABLE, DEFAULT_IMAGE)


@pytest.fixture(scope="session")
def mdistinct_container() -> Iterator[MdistinctContainer]:
    """A running server for the whole session."""
    with MdistinctContainer() as container:
        yield container


@pytest.fixture
def hospital(mdistinct_container: MdistinctContainer) -> Iterator[str]:
    """The DSN of a new database with the plugin and one release of the dataset `hospital`."""
    name = f"hospital_{secrets.token_hex(6)}"
    quoted = sql.Identifier(name)
    with psycopg.connect(mdistinct_container.dsn("postgres"), autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {} TEMPLATE template0").format(quoted))
        dsn = mdistinct_container.dsn(name)
        install(dsn, on_message=lambda _: None)
        publish_hospital(dsn)
        yield dsn
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(quoted))


def publish_hospital(dsn: str) -> None:
    """Makes the table of the paper in a database with the plugin, and publishes it once."""
    with psycopg.connect(dsn) as connection, connection.cursor() as cursor:
        cursor.execute(
            "CREATE TABLE public.hospital (name text PRIMARY KEY, zip int, hours int, disease text)"
        )
        cursor.executemany("INSERT INTO public.hospital VALUES (%s, %s, %s, %s)", demo.SNAPSHOTS[0])
    with Client(dsn) as client:
        client.register("hospital", "public.hospital", "name", ["zip", "hours"], "disease", m=2)
        client.load_updates("hospital", demo.UPDATES)
        client.publish("hospital")


def _connects(container: MdistinctContainer) -> bool:
    container.reload()
    if container.status == "exited":
        raise StopIteration
    psycopg.connect(container.dsn(), connect_timeout=5).close()
    return True
