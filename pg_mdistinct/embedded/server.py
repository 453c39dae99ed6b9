"""The embedded server as an object: start, stop, status, DSN."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from pg_mdistinct.embedded.account import Account, account_for
from pg_mdistinct.embedded.cluster import SUPERUSER, ensure_cluster, server_environment
from pg_mdistinct.embedded.errors import EmbeddedServerError
from pg_mdistinct.embedded.installation import Installation
from pg_mdistinct.embedded.launch import await_ready, launch
from pg_mdistinct.embedded.lock import exclusive
from pg_mdistinct.embedded.log import log_tail
from pg_mdistinct.embedded.places import settle
from pg_mdistinct.embedded.postmaster import Postmaster, end_postmaster, find_postmaster
from pg_mdistinct.embedded.settings import DATABASE

_STOP_PATIENCE = 60.0
# The setting is there where the library is loaded, and names the one database that it serves.
_CREATE_SCHEDULER = """
DO $do$ BEGIN
    IF pg_catalog.current_setting('cron.database_name', true) = pg_catalog.current_database() THEN
        SET client_min_messages = warning;
        CREATE EXTENSION IF NOT EXISTS pg_cron;
    END IF;
END $do$
"""


@dataclass(frozen=True)
class ServerStatus:
    """Whether the server runs, and where it is."""

    running: bool
    home: Path
    throwaway: bool
    dsn: str | None = None
    pid: int | None = None
    port: int | None = None


class EmbeddedServer:
    """A private PostgreSQL with PL/Python.

    Its home is, in this order: the given folder, $PG_MDISTINCT_HOME, `.pg-mdistinct` in the
    checkout, the user's data folder. The superuser and the database for people are both called
    `mdistinct`. People connect through the socket; over TCP (127.0.0.1 alone) the password in the
    home's `pgpass` is asked for.

    A throwaway server is for tests: it trades safety for speed, its home is a new temporary folder
    unless one is given, and `stop` deletes its data.
    """

    def __init__(
        self,
        home: Path | None = None,
        throwaway: bool = False,
        *,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._places = settle(home, throwaway=throwaway)
        self._throwaway = throwaway
        self._say = say

    @property
    def home(self) -> Path:
        """The folder that holds all of this server's files."""
        return self._places.home

    @property
    def log(self) -> Path:
        """The server's log file."""
        return self._places.log

    def start(self) -> str:
        """Starts the server unless it runs, and returns its DSN."""
        with self._alone() as account:
            installation = ensure_cluster(
                self._places, account, self._say, throwaway=self._throwaway
            )
            running = self._running_or_none() or launch(
                self._places, installation, account, self._say
            )
            self._ensure_database(installation, account, running)
        return _dsn(running, DATABASE)

    def stop(self) -> bool:
        """Stops the server, and says whether there was one to stop."""
        if not self.home.exists():
            return False
        with self._alone():
            throwaway = self._places.throwaway.exists()
            stopped = self._shut_down(signal.SIGQUIT if throwaway else signal.SIGINT)
            if throwaway:
                self._delete()
        return stopped

    def restart(self) -> str:
        """Stops and starts the server; unlike after `stop`, a throwaway server keeps its data."""
        with self._alone():
            self._shut_down(signal.SIGINT)
        return self.start()

    def status(self) -> ServerStatus:
        """How things stand; changes nothing."""
        throwaway = self._places.throwaway.exists()
        running = find_postmaster(self._places)
        if running is None or not running.ready:
            return ServerStatus(False, self.home, throwaway)
        dsn = _dsn(running, DATABASE)
        return ServerStatus(True, self.home, throwaway, dsn, running.pid, running.port)

    def dsn(self, dbname: str = DATABASE) -> str:
        """The URL of a database of the running server, through its socket."""
        running = find_postmaster(self._places)
        if running is None or not running.ready:
            raise EmbeddedServerError(f"the server in {self.home} is not running", "start it first")
        return _dsn(running, dbname)

    @contextmanager
    def _alone(self) -> Iterator[Account]:
        account = account_for(self._places.data)
        with exclusive(self._places.lock, account):
            yield account

    def _running_or_none(self) -> Postmaster | None:
        running = find_postmaster(self._places)
        if running is None or running.ready:
            return running
        ready = await_ready(self._places, running.pid)
        if ready is None:
            raise EmbeddedServerError(
                f"the server does not become ready; the end of {self.log}:\n"
                f"{log_tail(self._places)}"
            )
        return ready

    def _ensure_database(
        self, installation: Installation, account: Account, running: Postmaster
    ) -> None:
        """Creates the database for people, which an interrupted first start may have left out."""
        look = f"SELECT 1 FROM pg_catalog.pg_database WHERE datname = '{DATABASE}'"
        if not self._psql(look, installation, account, running):
            self._psql(f"CREATE DATABASE {DATABASE}", installation, account, running)
        self._psql(_CREATE_SCHEDULER, installation, account, running, DATABASE)

    def _psql(
        self,
        statement: str,
        installation: Installation,
        account: Account,
        running: Postmaster,
        dbname: str = "postgres",
    ) -> str:
        result = account.run(
            installation.program("psql"),
            "--no-psqlrc",
            "--quiet",
            "--no-align",
            "--tuples-only",
            f"--dbname={_dsn(running, dbname)}",
            f"--command={statement}",
            cwd=self.home,
            env=server_environment(self._places),
        )
        if result.returncode != 0:
            raise EmbeddedServerError(f"{statement} failed: {result.stderr.strip()}")
        return result.stdout.strip()

    def _shut_down(self, how: signal.Signals) -> bool:
        running = find_postmaster(self._places)
        if running is None:
            return False
        self._say(f"Stopping the server in {self.home}")
        for signal_to_send in (how, signal.SIGQUIT):
            if end_postmaster(running.pid, self._places.data, signal_to_send, _STOP_PATIENCE):
                return True
        raise EmbeddedServerError(f"the server does not stop (process {running.pid})")

    def _delete(self) -> None:
        """Removes what we made, and the home itself if nothing else is in it."""
        places = self._places
        for folder in (places.data, places.unfinished_data, places.sockets, places.cache):
            shutil.rmtree(folder, ignore_errors=True)
        for file in (places.log, places.old_log, places.password, places.throwaway, places.lock):
            file.unlink(missing_ok=True)
        if not any(places.home.iterdir()):
            places.home.rmdir()


def _dsn(running: Postmaster, dbname: str) -> str:
    host = quote(running.sockets, safe="/", errors="surrogateescape")
    return f"postgresql://{SUPERUSER}@/{quote(dbname, safe='')}?host={host}&port={running.port}"
