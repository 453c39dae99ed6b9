"""The server's log, for those who have to find out why it did not start."""

from __future__ import annotations

from pg_mdistinct.embedded.account import Account
from pg_mdistinct.embedded.places import Places

_SIZE_LIMIT = 10_000_000
_LINES_SHOWN = 20


def prepare_log(places: Places, account: Account) -> int:
    """Makes sure that the server can write its log; returns where the next entries begin."""
    if places.log.exists() and places.log.stat().st_size > _SIZE_LIMIT:
        places.log.replace(places.old_log)
    places.log.touch(mode=0o600)
    account.give(places.log)
    return places.log.stat().st_size


def log_since(places: Places, begin: int) -> str:
    """All that was logged since that position."""
    return places.log.read_bytes()[begin:].decode(errors="replace")


def log_tail(places: Places) -> str:
    """The last lines, for an error message."""
    return "\n".join(log_since(places, 0).splitlines()[-_LINES_SHOWN:])
