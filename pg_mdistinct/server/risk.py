"""What an adversary could know: risks of all versions, and one record's update graph."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import numpy as np

from pg_mdistinct.core.errors import MdistinctError
from pg_mdistinct.core.history import History
from pg_mdistinct.core.knowledge import recall
from pg_mdistinct.core.model import UpdateModel
from pg_mdistinct.core.texts import TextIndex, Texts
from pg_mdistinct.core.update_graph import Beliefs, beliefs, edges, risks
from pg_mdistinct.server import catalog, updates
from pg_mdistinct.server.audit import audited
from pg_mdistinct.server.catalog import Dataset
from pg_mdistinct.server.errors import bad_parameter, entry_point, require
from pg_mdistinct.server.history import read_history
from pg_mdistinct.server.packed import joined, literal
from pg_mdistinct.server.plpython import Plpy, Row
from pg_mdistinct.server.progress import Progress


@entry_point
@audited("risk")
def risk(plpy: Plpy, dataset: str, at_release: int | None) -> Row:
    """Return record, release, risk and number of candidates of every version, column by column."""
    found = catalog.find(plpy, dataset)
    model = updates.read_model(plpy, found)
    until = _checked(found, at_release)
    with Progress(plpy) as progress:
        stored = read_history(plpy, found, model.labels, until=until, progress=progress)
        history = stored.history
        known = risks(history, model, progress)
    # Many versions have the same risk: a million floats take longer to send than all the rest.
    places = 8 * np.arange(len(known.risk) + 1)
    bits = Texts(known.risk.tobytes(), places[:-1], places[1:])
    different, risk = TextIndex(bits, secrets.randbits(64)).different()
    record_ids, separator = joined(Texts.of(stored.record_ids).take(history.record))
    return {
        "record_ids": record_ids,
        "separator": separator,
        "releases": literal(history.version_release),
        "different_risks": known.risk[different].tolist(),
        "risks": literal(risk + 1),
        "candidates": literal(known.candidates),
    }


@entry_point
@audited("republication_risk")
def republication_risk(plpy: Plpy, dataset: str) -> float | None:
    """Return the largest risk of any version after any release so far, under the present model."""
    found = catalog.find(plpy, dataset)
    model = updates.read_model(plpy, found)
    with Progress(plpy) as progress:
        history = read_history(plpy, found, model.labels, progress=progress).history
        return recall(history, model, progress).largest_ever if len(history.record) else None


@entry_point
@audited("sug")
def sug(
    plpy: Plpy, dataset: str, record_id: str, true_path: bool | None
) -> list[tuple[object, ...]]:
    """Return nodes and edges of a record's update graph."""
    require(record_id=record_id)
    found = catalog.find(plpy, dataset)
    model = updates.read_model(plpy, found)
    history = read_history(plpy, found, model.labels, record_id=record_id).history
    if not len(history.record):
        raise MdistinctError(
            f'record "{record_id}" was never published in dataset "{dataset}"',
            hint="Give an identifier as the view mdistinct.<dataset>_membership shows it.",
            sqlstate="02000",
        )
    known = beliefs(history, model)
    is_true = known.nodes.items == history.value[known.nodes.row_of_item]
    told = is_true.tolist() if true_path else [None] * len(is_true)
    return [*_nodes(history, model, known, told), *_edges(history, model, known, told)]


def _checked(dataset: Dataset, at_release: int | None) -> int | None:
    if at_release is not None and not 1 <= at_release <= dataset.last_release:
        raise bad_parameter(
            f'dataset "{dataset.name}" has no release {at_release}',
            f"Its releases are 1 to {dataset.last_release}."
            if dataset.last_release
            else "Nothing has been published yet.",
        )
    return at_release


def _nodes(
    history: History, model: UpdateModel, known: Beliefs, told: list[bool | None]
) -> Iterator[tuple[object, ...]]:
    release = history.version_release[known.nodes.row_of_item]
    for node, value in enumerate(known.nodes.items.tolist()):
        yield (
            "node",
            int(release[node]),
            model.labels[value],
            None,
            None,
            float(known.weight[node]),
            float(known.posterior[node]),
            bool(known.alive[node]),
            told[node],
        )


def _edges(
    history: History, model: UpdateModel, known: Beliefs, told: list[bool | None]
) -> Iterator[tuple[object, ...]]:
    release, value = history.version_release, known.nodes.items
    for version in range(1, len(history.record)):
        found = edges(history, model, known, version)
        for i, (before, after) in enumerate(zip(found.before, found.after, strict=True)):
            yield (
                "edge",
                int(release[version - 1]),
                model.labels[value[before]],
                int(release[version]),
                model.labels[value[after]],
                float(found.probability[i]),
                float(found.posterior[i]),
                bool(known.alive[before] and known.alive[after]),
                None if told[before] is None else bool(told[before] and told[after]),
            )
