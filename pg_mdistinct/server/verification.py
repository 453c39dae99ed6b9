"""Checks everything that was ever published of a dataset against the principle."""

from __future__ import annotations

from collections.abc import Iterator

from pg_mdistinct.core.verify import find_violations
from pg_mdistinct.server import catalog, reading, updates
from pg_mdistinct.server.audit import audited
from pg_mdistinct.server.catalog import Dataset
from pg_mdistinct.server.errors import entry_point
from pg_mdistinct.server.history import read_history
from pg_mdistinct.server.plpython import Plpy, run
from pg_mdistinct.server.progress import Progress
from pg_mdistinct.server.relations import relations_of


@entry_point
@audited("verify")
def verify(plpy: Plpy, dataset: str) -> list[tuple[object, ...]]:
    """Return one row for each violation; none: the principle holds.

    Looks at what was published and who was where, at nothing that a publication works with.
    """
    found = catalog.find(plpy, dataset)
    model = updates.read_model(plpy, found)
    with Progress(plpy) as progress:
        stored = read_history(plpy, found, model.labels, progress=progress)
        history = stored.history
        m = _m_by_release(plpy, dataset)
        per_group = [m.get(release, found.m) for release in history.release.tolist()]
        return [
            (
                int(history.release[violation.group]),
                int(history.gid[violation.group]),
                None if violation.version is None else stored.record_id(violation.version),
                violation.rule,
                violation.detail,
            )
            for violation in find_violations(history, model, per_group, found.variant, progress)
        ] + list(_values_outside_their_group(plpy, found, progress))


def _values_outside_their_group(
    plpy: Plpy, dataset: Dataset, progress: Progress
) -> Iterator[tuple[object, ...]]:
    """Find records whose own QI value is not inside what their group shows of it."""
    names = relations_of(plpy, dataset.name)
    columns = list(zip(dataset.qi_columns, reading.qi_types(plpy, dataset), strict=True))
    # One release at a time: each is a partition, and there is something to tell meanwhile.
    for release in range(1, dataset.last_release + 1):
        for i, (name, qi_type) in enumerate(columns, start=1):
            done = (release - 1) * len(columns) + i - 1
            progress("compare values", done / (dataset.last_release * len(columns)))
            yield from (
                (row["release"], row["gid"], row["record_id"], "generalized value", row["detail"])
                for row in run(
                    plpy,
                    "SELECT v.release, v.gid, v.record_id,"
                    " pg_catalog.format('the record''s own value of %I is outside its group', $1)"
                    f" AS detail FROM {names.placed('record_id', f'q{i}')} AS v"
                    f" JOIN {names.groups} AS g ON g.release = v.release AND g.gid = v.gid"
                    f" WHERE v.release = {release} AND g.release = {release}"
                    f" AND NOT {qi_type.contains.format(f'g.q{i}', f'v.q{i}')}",
                    ["text"],
                    [name],
                )
            )


def _m_by_release(plpy: Plpy, dataset: str) -> dict[int, int]:
    rows = run(
        plpy,
        "SELECT r.release, r.m FROM mdistinct.releases AS r WHERE r.dataset = $1",
        ["name"],
        [dataset],
    )
    return {row["release"]: row["m"] for row in rows}
