"""The configuration files of the embedded server."""

from __future__ import annotations

import re
from pathlib import Path

from pg_mdistinct.embedded.places import Places

SETTINGS_FILE = "pg_mdistinct.conf"
DATABASE = "mdistinct"

ACCESS = """\
# The socket lies in a folder that only its owner can enter.
local all all trust
host all all 127.0.0.1/32 scram-sha-256
"""

# A crash may lose everything, which is what makes it quick.
_THROWAWAY = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}


# Jobs run in background workers, which need no way to connect.
_SCHEDULER = {
    "shared_preload_libraries": "pg_cron",
    "cron.database_name": DATABASE,
    "cron.use_background_workers": "on",
}


def render_settings(places: Places, port: int, *, throwaway: bool, scheduler: bool = False) -> str:
    """The settings file, which is written anew at every start."""
    settings = {
        "cluster_name": places.cluster_name,
        "listen_addresses": "127.0.0.1",
        "port": str(port),
        "unix_socket_directories": _list_item(str(places.sockets)),
        "unix_socket_permissions": "0700",
        "password_encryption": "scram-sha-256",
        **(_THROWAWAY if throwaway else {}),
        **(_SCHEDULER if scheduler else {}),
    }
    lines = [f"{name} = {_quoted(value)}" for name, value in settings.items()]
    return "\n".join(["# Written at every start; put your own settings elsewhere.", *lines, ""])


def last_port(data: Path) -> int | None:
    """The port of the previous start, which people may have noted down."""
    try:
        text = (data / SETTINGS_FILE).read_text()
    except FileNotFoundError:
        return None
    match = re.search(r"^port = '(\d+)'$", text, re.MULTILINE)
    return int(match[1]) if match else None


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "''")
    return f"'{escaped}'"


def _list_item(value: str) -> str:
    """Protects a comma in a value of a list setting."""
    escaped = value.replace('"', '""')
    return f'"{escaped}"'
