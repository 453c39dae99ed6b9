"""Code of others that runs in our session: it may compute what it likes, and leaves no trace."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pg_mdistinct.core.errors import MdistinctError
from pg_mdistinct.server.plpython import Plpy


@contextmanager
def foreign_code(plpy: Plpy) -> Iterator[None]:
    """Run code of the source's owner; refuse what it has done to the session.

    A setting that a function changes for the session outlives the function, and search_path
    decides what our own statements mean. A temporary table comes before one of the same name that
    the caller may mean later.
    """
    before = _session(plpy)
    yield
    # These two statements mean the same on any path.
    path = plpy.execute("SELECT pg_catalog.current_setting('search_path') AS path")[0]["path"]
    plpy.execute("SELECT pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true)")
    after = {**_session(plpy), "the setting search_path": _Kept(path)}
    changed = sorted(name for name in after if after[name].differs_from(before.get(name)))
    if changed:
        raise MdistinctError(
            f"the code behind the source has changed {changed[0]}",
            hint="Functions that the source calls may neither make settings nor leave temporary "
            "tables behind.",
            sqlstate="39000",
        )


@dataclass(frozen=True)
class _Kept:
    """What a session keeps under some name."""

    value: Any
    is_default: bool = False

    def differs_from(self, former: _Kept | None) -> bool:
        """Tell whether somebody has changed it; a library that is loaded brings settings along."""
        return not self.is_default if former is None else self.value != former.value


def _session(plpy: Plpy) -> dict[str, _Kept]:
    """Return what a session keeps that could mislead whoever goes on with it."""
    settings = plpy.execute(
        "SELECT s.name, s.setting, s.source <> 'session' AS is_default"
        " FROM pg_catalog.pg_show_all_settings() AS s"
    )
    temporary = plpy.execute(
        "SELECT pg_catalog.array_agg(t.oid ORDER BY t.oid) AS oids FROM pg_catalog.pg_type AS t"
        " WHERE t.typnamespace = pg_catalog.pg_my_temp_schema()"
    )[0]
    return {
        "the temporary tables of the session": _Kept(temporary["oids"]),
        **{f"the setting {s['name']}": _Kept(s["setting"], s["is_default"]) for s in settings},
    }
