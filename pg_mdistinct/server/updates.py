"""The update model of a dataset: what users declare, and what the core gets of it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pg_mdistinct.core.errors import MdistinctError
from pg_mdistinct.core.model import M_INVARIANCE, UpdateModel
from pg_mdistinct.server import catalog, source
from pg_mdistinct.server.audit import audited
from pg_mdistinct.server.catalog import Dataset
from pg_mdistinct.server.errors import bad_parameter, entry_point, require
from pg_mdistinct.server.plpython import Plpy, run
from pg_mdistinct.server.relations import relations_of

SUM_TOLERANCE = 1e-6
NO_MODEL = "55000"
MOST_VALUES = 2000
"""Under m-invariance nobody declares values: a column of free texts would take all memory."""

NewValues = Mapping[str, float | None]
"""What a value may become, with probabilities or without."""


@entry_point
@audited("allow_update", writes=True)
def allow(
    plpy: Plpy,
    dataset: str,
    old_value: str,
    new_values: Sequence[Any],
    probabilities: Sequence[Any] | None,
) -> None:
    """Declare what one value may become; a running publication is waited for.

    The model as a whole is not judged here: one under construction is incomplete.
    """
    require(dataset=dataset, old_value=old_value, new_values=new_values)
    found = catalog.lock(plpy, dataset, wait=True)
    refuse_unchanging(found)
    if not new_values:
        raise bad_parameter(
            f'"{old_value}" would have no value to become',
            "Name at least one; a value that never changes becomes itself.",
        )
    if probabilities is None:
        probabilities = [None] * len(new_values)
    if len(probabilities) != len(new_values):
        raise bad_parameter(
            f'"{old_value}" has {len(new_values)} new values, but {len(probabilities)} '
            "probabilities",
            "Give one probability for each new value, or none at all.",
        )
    _store(
        plpy, found, [(old_value, *pair) for pair in zip(new_values, probabilities, strict=True)]
    )


@entry_point
@audited("load_updates")
def load(plpy: Plpy, dataset: str, table: str) -> int:
    """Read a table of updates with the caller's rights and hand its rows over."""
    require(dataset=dataset, source=table)
    oid = source.oid_of(plpy, table)
    columns = source.columns_of(plpy, oid)
    for name in ("old_value", "new_value"):
        if name not in columns:
            raise bad_parameter(
                f'column "{name}" of {table} does not exist',
                "A table of updates has the columns old_value, new_value and, if need be, "
                "probability.",
                "42703",
            )
    probability = "u.probability" if "probability" in columns else "NULL"
    rows = list(
        plpy.execute(
            "SELECT u.old_value::text AS old_value, u.new_value::text AS new_value,"
            f" {probability}::float8 AS probability FROM {source.quoted_name(plpy, oid)} AS u"
        )
    )
    run(
        plpy,
        "SELECT mdistinct.replace_updates($1, $2, $3, $4)",
        ["name", "text[]", "text[]", "float8[]"],
        [dataset, *([row[c] for row in rows] for c in ("old_value", "new_value", "probability"))],
    )
    return len(rows)


@entry_point
@audited("load_updates", writes=True)
def replace(
    plpy: Plpy,
    dataset: str,
    old_values: Sequence[Any],
    new_values: Sequence[Any],
    probabilities: Sequence[Any],
) -> None:
    """Replace the rows of all the old values that are given, and judge the whole model."""
    require(
        dataset=dataset,
        old_values=old_values,
        new_values=new_values,
        probabilities=probabilities,
    )
    found = catalog.lock(plpy, dataset, wait=True)
    refuse_unchanging(found)
    if not old_values:
        raise bad_parameter("there are no updates to load", "Fill the table first.")
    _store(plpy, found, list(zip(old_values, new_values, probabilities, strict=True)))
    read_model(plpy, found).check(found.m, found.variant)


def read_model(plpy: Plpy, dataset: Dataset) -> UpdateModel:
    """Return the model over the codes of the dataset's value dictionary.

    A value without a row of its own stays what it is; under m-invariance all do, and every value
    that ever occurred is known.
    """
    domain = relations_of(plpy, dataset.name).domain
    labels = [row["label"] for row in plpy.execute(f"SELECT label FROM {domain} ORDER BY code")]
    if dataset.variant == M_INVARIANCE:
        return UpdateModel.unchanging(labels)
    transition = np.zeros((len(labels), len(labels)))
    known = np.zeros(len(labels), dtype=np.bool_)
    for row in run(
        plpy,
        "SELECT o.code AS old, n.code AS new, u.probability FROM mdistinct.updates AS u"
        f" JOIN {domain} AS o ON o.label = u.old_value JOIN {domain} AS n ON n.label = u.new_value"
        " WHERE u.dataset = $1",
        ["name"],
        [dataset.name],
    ):
        transition[row["old"], row["new"]] = row["probability"]
        known[[row["old"], row["new"]]] = True
    stays = np.flatnonzero(transition.sum(axis=1) == 0)
    transition[stays, stays] = 1.0
    return UpdateModel(transition, known, labels)


def refuse_unchanging(dataset: Dataset) -> None:
    """Refuse an update model for a dataset whose variant has none."""
    if dataset.variant == M_INVARIANCE:
        raise MdistinctError(
            f'dataset "{dataset.name}" is published as m-invariance, under which values never '
            "change: it has no update model",
            hint="Where values do change use the variant m-distinct: "
            "mdistinct_alter(dataset, variant => 'm-distinct'), then declare the updates.",
            sqlstate=NO_MODEL,
        )


def has_model(plpy: Plpy, dataset: Dataset) -> bool:
    """Tell whether any update was declared."""
    rows = run(
        plpy,
        "SELECT FROM mdistinct.updates AS u WHERE u.dataset = $1 LIMIT 1",
        ["name"],
        [dataset.name],
    )
    return rows.nrows() > 0


def learn_values(plpy: Plpy, dataset: Dataset, labels: list[str]) -> None:
    """Enter values that occur for the first time: under m-invariance nobody declares them."""
    if len({*_codes(plpy, dataset), *labels}) > MOST_VALUES:
        raise MdistinctError(
            f'sensitive column "{dataset.sensitive_column}" of {dataset.source} has had more than '
            f"{MOST_VALUES} different values",
            hint="Register a view that shows broader ones.",
            sqlstate="54000",
        )
    _learn(plpy, dataset, labels)


def _store(plpy: Plpy, dataset: Dataset, triples: Sequence[tuple[Any, Any, Any]]) -> None:
    """Write rows under the canonical texts of their values, which enter the dictionary."""
    if not all(isinstance(text, str) for old, new, _ in triples for text in (old, new)):
        raise bad_parameter(
            "a value of the update model is NULL or an array",
            "Give old and new values as plain texts.",
            "22004",
        )
    texts = list(dict.fromkeys(text for old, new, _ in triples for text in (old, new)))
    labels = source.labels_of(plpy, dataset, texts)
    rows: dict[str, dict[str, float | None]] = {}
    for old, new, probability in triples:
        row = rows.setdefault(labels[old], {})
        if labels[new] in row:
            raise bad_parameter(
                f'"{labels[old]}" -> "{labels[new]}" is given twice', "Give every update once."
            )
        row[labels[new]] = probability
    normalized = {old: _probabilities(old, row) for old, row in rows.items()}
    _learn(plpy, dataset, list(dict.fromkeys(labels.values())))
    _write(plpy, dataset.name, normalized)


def _probabilities(old_value: str, row: NewValues) -> dict[str, float]:
    """Return probabilities that sum to 1; without any, all new values are equally likely."""
    given = {new: float(p) for new, p in row.items() if p is not None}
    if not given:
        return dict.fromkeys(row, 1 / len(row))
    if len(given) < len(row):
        raise bad_parameter(
            f'some updates of "{old_value}" have a probability and some have none',
            "Give a probability for every new value of an old value, or for none.",
        )
    for new, probability in given.items():
        if not 0 <= probability < math.inf:
            raise bad_parameter(
                f'the probability of "{old_value}" -> "{new}" is {probability}',
                "Probabilities lie between 0 and 1.",
            )
    total = math.fsum(given.values())
    if abs(total - 1) > SUM_TOLERANCE:
        raise bad_parameter(
            f'the probabilities of the updates of "{old_value}" sum to {total:.9g}, not to 1',
            "Give probabilities that sum to 1, or none: then all updates are equally likely.",
        )
    return {new: min(probability / total, 1.0) for new, probability in given.items()}


def _learn(plpy: Plpy, dataset: Dataset, labels: list[str]) -> None:
    """Add values to the dictionary, which only ever grows: old releases refer to it."""
    known = _codes(plpy, dataset)
    new = [label for label in labels if label not in known]
    if not new:
        return
    domain = relations_of(plpy, dataset.name).domain
    # A bare literal is read by the type's input function, never by a cast that somebody defined.
    literals = (plpy.quote_literal(label) for label in new)
    rows = (f"({code}, {text}, {text})" for code, text in enumerate(literals, start=len(known)))
    plpy.execute(f"INSERT INTO {domain} (code, label, value) VALUES {', '.join(rows)}")


def _codes(plpy: Plpy, dataset: Dataset) -> dict[str, int]:
    """Return the dictionary: the code of every value that was ever declared or published."""
    domain = relations_of(plpy, dataset.name).domain
    return {row["label"]: row["code"] for row in plpy.execute(f"SELECT label, code FROM {domain}")}


def _write(plpy: Plpy, dataset: str, rows: Mapping[str, Mapping[str, float]]) -> None:
    triples = [(old, new, p) for old, row in rows.items() for new, p in row.items()]
    run(
        plpy,
        "DELETE FROM mdistinct.updates AS u WHERE u.dataset = $1 AND u.old_value = ANY ($2)",
        ["name", "text[]"],
        [dataset, list(rows)],
    )
    run(
        plpy,
        "INSERT INTO mdistinct.updates (dataset, old_value, new_value, probability)"
        " SELECT $1, t.* FROM unnest($2, $3, $4) AS t",
        ["name", "text[]", "text[]", "float8[]"],
        [dataset, *(list(column) for column in zip(*triples, strict=True))],
    )
