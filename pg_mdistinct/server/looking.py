"""The phases of a publication one at a time, for looking: nothing is written."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pg_mdistinct.core.publication import Release
from pg_mdistinct.server import bound
from pg_mdistinct.server.audit import audited
from pg_mdistinct.server.errors import entry_point
from pg_mdistinct.server.history import read_history
from pg_mdistinct.server.plpython import Plpy
from pg_mdistinct.server.publication import Prepared, try_out


@entry_point
@audited("create_buckets")
def create_buckets(plpy: Plpy, dataset: str) -> list[tuple[object, ...]]:
    """Return every entry of every bucket, with the records that stand at it."""
    prepared, release, _ = _plan(plpy, dataset)
    labels = prepared.model.labels
    buckets = release.buckets
    widest = max((len(entries) for entries in buckets.entries), default=1)
    entry_of = release.entry(prepared.snapshot.value)
    cells = np.bincount(release.bucket * widest + entry_of, minlength=0)
    records = dict(enumerate(cells.tolist()))
    return [
        (
            bucket + 1,
            buckets.kind[bucket],
            int(buckets.groups[bucket]),
            entry + 1,
            sorted(labels[code] for code in reach.tolist()),
            records.get(bucket * widest + entry, 0),
        )
        for bucket, entries in enumerate(buckets.entries)
        for entry, reach in enumerate(entries)
    ]


@entry_point
@audited("assign_records")
def assign_records(plpy: Plpy, dataset: str) -> list[tuple[object, ...]]:
    """Return the bucket and entry of every record."""
    prepared, release, record_ids = _plan(plpy, dataset)
    values = (prepared.model.labels[code] for code in prepared.snapshot.value.tolist())
    places = _counted_from_one(release.bucket, release.entry(prepared.snapshot.value))
    return [
        (record_id, value, *place)
        for record_id, value, place in zip(record_ids, values, places, strict=True)
    ]


@entry_point
@audited("split_buckets")
def split_buckets(plpy: Plpy, dataset: str) -> list[tuple[object, ...]]:
    """Return the bucket and group of every record."""
    _, release, record_ids = _plan(plpy, dataset)
    places = _counted_from_one(release.bucket, release.group)
    return [(record_id, *place) for record_id, place in zip(record_ids, places, strict=True)]


@entry_point
@audited("preview_risk")
def preview_risk(plpy: Plpy, dataset: str) -> list[tuple[object, ...]]:
    """Return, release by release, what publishing now would do to the risk of its versions."""

    def look(prepared: Prepared) -> list[tuple[object, ...]]:
        found = prepared.dataset
        planned = prepared.planned(prepared.plan(plpy))
        after = read_history(plpy, found, prepared.model.labels, planned=planned).history
        coming = found.last_release + 1
        return list(bound.by_release(after, prepared.model, found.max_risk, coming))

    return try_out(plpy, dataset, look, wait=True)


def _plan(plpy: Plpy, dataset: str) -> tuple[Prepared, Release, list[str]]:
    prepared = try_out(plpy, dataset, lambda prepared: prepared, wait=True)
    return prepared, prepared.plan(plpy), prepared.read.record_ids.decoded()


def _counted_from_one(
    *columns: np.ndarray[tuple[int], np.dtype[np.int64]],
) -> Iterator[tuple[int, ...]]:
    return zip(*((column + 1).tolist() for column in columns), strict=True)
