"""Checks everything that was ever published of a dataset against the principle."""

from __future__ import annotations

from pg_mdistinct.core.verify import find_violations
from pg_mdistinct.server import catalog, updates
from pg_mdistinct.server.errors import entry_point
from pg_mdistinct.server.history import read_history
from pg_mdistinct.server.plpython import Plpy, run


@entry_point
def verify(plpy: Plpy, dataset: str) -> list[tuple[object, ...]]:
    """Return one row for each violation; none: the principle holds."""
    found = catalog.find(plpy, dataset)
    model = updates.read_model(plpy, found)
    stored = read_history(plpy, found, len(model))
    history = stored.history
    m = _m_by_release(plpy, dataset)
    violations = list(
        find_violations(history, model, [m[n] for n in history.release.tolist()], found.variant)
    )
    names = stored.record_ids(plpy, found, [v.version for v in violations if v.version is not None])
    return [
        (
            int(history.release[violation.group]),
            int(history.gid[violation.group]),
            None if violation.version is None else names[violation.version],
            violation.rule,
            violation.detail,
        )
        for violation in violations
    ]


def _m_by_release(plpy: Plpy, dataset: str) -> dict[int, int]:
    rows = run(
        plpy,
        "SELECT r.release, r.m FROM mdistinct.releases AS r WHERE r.dataset = $1",
        ["name"],
        [dataset],
    )
    return {row["release"]: row["m"] for row in rows}
