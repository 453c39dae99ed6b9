"""Who called, and how much he may see in an error message."""

from __future__ import annotations

from pg_mdistinct.server.plpython import Plpy

# Inside a SECURITY DEFINER function current_user is its owner; the caller is the role that was
# set, or else the one that logged in.
CALLER = (
    "CASE WHEN pg_catalog.current_setting('role') OPERATOR(pg_catalog.=) 'none' THEN session_user "
    "ELSE pg_catalog.current_setting('role')::pg_catalog.name END"
)


def name(plpy: Plpy) -> str:
    """Return the caller's role."""
    return str(plpy.execute(f"SELECT {CALLER} AS caller")[0]["caller"])


def sees_microdata(plpy: Plpy) -> bool:
    """Tell whether messages to the caller may name records and their values."""
    row = plpy.execute(
        f"SELECT pg_catalog.pg_has_role({CALLER}, 'mdistinct_admin', 'MEMBER') AS is_admin"
    )[0]
    return bool(row["is_admin"])
