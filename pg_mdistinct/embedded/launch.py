"""Brings the server of a complete data folder up."""

from __future__ import annotations

import time
from collections.abc import Callable

from pg_mdistinct.embedded.account import Account
from pg_mdistinct.embedded.cluster import server_environment
from pg_mdistinct.embedded.errors import EmbeddedServerError
from pg_mdistinct.embedded.installation import Installation
from pg_mdistinct.embedded.log import log_since, log_tail, prepare_log
from pg_mdistinct.embedded.places import Places, make_private_folder, write_private
from pg_mdistinct.embedded.ports import free_port
from pg_mdistinct.embedded.postmaster import (
    Postmaster,
    clear_stale_files,
    find_postmaster,
    is_gone,
)
from pg_mdistinct.embedded.settings import SETTINGS_FILE, last_port, render_settings

_PATIENCE = 120.0
_PORTS_TO_TRY = 10
_PORT_TAKEN = "could not create any TCP/IP sockets"
# The shell lets go of the server, which so outlives us and is nobody's zombie. pg_ctl would do the
# same, but puts paths into a shell command without quoting all that needs it.
_DETACH = 'log=$1; shift; { exec "$@"; } </dev/null >>"$log" 2>&1 & echo $!'


def launch(
    places: Places, installation: Installation, account: Account, say: Callable[[str], None]
) -> Postmaster:
    """Starts the server, on the port that it had before if that is still free."""
    clear_stale_files(places)
    make_private_folder(places.sockets, account)
    port = free_port(last_port(places.data))
    for _ in range(_PORTS_TO_TRY):
        say(f"Starting PostgreSQL {installation.major} on port {port}")
        begin = prepare_log(places, account)
        running = _launch_on(port, places, installation, account)
        if running is not None:
            return running
        if _PORT_TAKEN not in log_since(places, begin):
            break
        # Somebody took the port between our look and the server's.
        port = free_port()
    raise EmbeddedServerError(
        f"the server did not start; the end of {places.log}:\n{log_tail(places)}"
    )


def await_ready(places: Places, pid: int) -> Postmaster | None:
    """Waits for a server that is starting; None if it gives up or takes too long."""
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline and not is_gone(pid):
        running = find_postmaster(places)
        if running is not None and running.ready:
            return running
        time.sleep(0.02)
    return None


def _launch_on(
    port: int, places: Places, installation: Installation, account: Account
) -> Postmaster | None:
    settings = render_settings(
        places,
        port,
        throwaway=places.throwaway.exists(),
        scheduler=installation.has_library("pg_cron"),
    )
    write_private(places.data / SETTINGS_FILE, settings, account)
    detached = account.run(
        "/bin/sh",
        *("-c", _DETACH, "sh", str(places.log)),
        *(installation.program("postgres"), "-D", str(places.data)),
        cwd=places.home,
        env=server_environment(places),
        check=True,
    )
    return await_ready(places, int(detached.stdout))
