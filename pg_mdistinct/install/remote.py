"""Runs the functions of `on_server` inside the server, through the SQL connection.

That works for a server in a container or on another machine as well as for a local one.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from pg_mdistinct.install import on_server
from pg_mdistinct.install.errors import InstallError

# A temporary function: gone with the session, and nobody else can call it.
_CREATE = """
CREATE OR REPLACE FUNCTION pg_temp.mdistinct_on_server(source text, name text, arguments text)
RETURNS text LANGUAGE plpython3u VOLATILE AS $python$
import json
namespace = {"__name__": "mdistinct_on_server"}
exec(source, namespace)
return json.dumps(namespace[name](**json.loads(arguments)))
$python$
"""
_CALL = sql.SQL("SELECT pg_temp.mdistinct_on_server(%s, %s, %s)")
_DROP = "DROP FUNCTION pg_temp.mdistinct_on_server(text, text, text)"


def call(connection: psycopg.Connection[Any], name: str, **arguments: object) -> Any:
    """Calls one function of `on_server` by name; its arguments and result travel as JSON."""
    source = Path(on_server.__file__).read_text(encoding="utf-8")
    connection.execute(_CREATE)
    try:
        row = connection.execute(_CALL, (source, name, json.dumps(arguments))).fetchone()
    except psycopg.errors.ExternalRoutineException as error:
        raise InstallError(
            f"the server could not run {name}: {error.diag.message_primary}",
            hint="See that the server's data directory has room and is writable for its OS user.",
        ) from error
    connection.execute(_DROP)
    assert row is not None
    return json.loads(row[0])
