"""Changes what a dataset was registered with, where the guarantee for what is published allows it.

Whatever cannot be changed is refused with the reason: docs/changes.md has the table of both.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from pg_mdistinct.core import errors
from pg_mdistinct.core.errors import MdistinctError
from pg_mdistinct.core.model import M_INVARIANCE
from pg_mdistinct.core.update_graph import risks
from pg_mdistinct.server import catalog, registration, relations, source, updates
from pg_mdistinct.server.audit import audited
from pg_mdistinct.server.bound import TOLERANCE
from pg_mdistinct.server.catalog import Dataset
from pg_mdistinct.server.errors import bad_parameter, counted, entry_point
from pg_mdistinct.server.history import read_history
from pg_mdistinct.server.plpython import Plpy, Row, run, sqlstate_of
from pg_mdistinct.server.qi_types import qi_type_of

_ARGUMENTS = ["name", "oid", "name[]", "int4", "text", "float8"]
_CANNOT_CHANGE = "55000"


@entry_point
@audited("alter")
def alter(
    plpy: Plpy,
    dataset: str,
    relation: str | None,
    qi_columns: Sequence[str] | None,
    m: int | None,
    variant: str | None,
    max_risk: float | None,
) -> Row:
    """Change with the caller's rights: he must be able to read a source that he names.

    The catalog and the tables are changed by ``alter_dataset`` with the rights of the plugin's
    owner, which also removes the functions that read the source where these have to be new.
    """
    oid = None if relation is None else source.oid_of(plpy, relation)
    row = run(
        plpy,
        "SELECT * FROM mdistinct.alter_dataset($1, $2, $3, $4, $5, $6)",
        _ARGUMENTS,
        [dataset, oid, qi_columns, m, variant, max_risk],
    )[0]
    if relation is not None or qi_columns is not None:
        altered = catalog.from_row(row)
        place = source.find(plpy, altered)
        registration.check_readable(plpy, place, altered)
        source.create_reader(plpy, place, altered)
    return row


@entry_point
@audited("alter", writes=True)
def alter_dataset(
    plpy: Plpy,
    dataset: str,
    oid: int | None,
    qi_columns: Sequence[Any] | None,
    m: int | None,
    variant: str | None,
    max_risk: float | None,
) -> Row:
    """Check what is to change against what was published, and change it.

    A running publication is waited for: it ends as it began, and the next one is the first to see
    the change.
    """
    found = catalog.lock(plpy, dataset, wait=True)
    altered = dataclasses.replace(
        found,
        m=found.m if m is None else m,
        variant=found.variant if variant is None else variant,
        max_risk=found.max_risk if max_risk is None else max_risk,
    )
    registration.check_parameters(altered.m, altered.variant, altered.max_risk)
    _check_m(plpy, found, altered.m)
    _check_variant(plpy, found, altered.variant)
    _check_max_risk(plpy, found, altered.max_risk)
    if oid is not None:
        schema, table = source.place_of(plpy, oid)
        altered = dataclasses.replace(altered, source_schema=schema, source_table=table)
    if qi_columns is not None:
        altered = _add_columns(plpy, altered, qi_columns)
    if oid is not None or qi_columns is not None:
        source.check_columns(altered, source.columns_of(plpy, source.find(plpy, altered)))
        relations.drop_readers(plpy, dataset)
    return _store(plpy, altered)


def _check_m(plpy: Plpy, dataset: Dataset, m: int) -> None:
    """Refuse a larger m where somebody was published among fewer values.

    A legal update keeps the number of a record's candidates, so his groups never grow again.
    """
    if m <= dataset.m or not dataset.last_release:
        return
    names = relations.relations_of(plpy, dataset.name)
    row = run(
        plpy,
        "SELECT pg_catalog.count(*) AS records FROM ("
        f"SELECT p.release, p.gid FROM {names.placed()} AS p WHERE p.release = $1"
        f" UNION ALL SELECT a.release, a.gid FROM {names.absent} AS a) AS l"
        f" JOIN {names.groups} AS g ON g.release = l.release AND g.gid = l.gid"
        " WHERE pg_catalog.cardinality(g.candidates) < $2",
        ["int4", "int4"],
        [dataset.last_release, m],
    )[0]
    if row["records"]:
        raise MdistinctError(
            f"m = {m} cannot be kept for {counted(row['records'], 'record')} of dataset "
            f'"{dataset.name}", published among fewer values before',
            hint="The number of a record's candidates never changes. For people who were never "
            "published, register a dataset of their own with the larger m.",
            sqlstate=_CANNOT_CHANGE,
        )


def _check_variant(plpy: Plpy, dataset: Dataset, variant: str) -> None:
    """Refuse a variant that past releases do not keep.

    What was published as m-invariance keeps the others too, under any model that lets values stay:
    the first publication under a model that is declared then makes sure of it.
    """
    if variant == dataset.variant:
        return
    if variant == M_INVARIANCE and updates.has_model(plpy, dataset):
        raise MdistinctError(
            f'dataset "{dataset.name}" has an update model, and m-invariance knows none',
            hint="Register a dataset of its own for m-invariance.",
            sqlstate=_CANNOT_CHANGE,
        )
    if dataset.last_release and dataset.variant != M_INVARIANCE:
        raise MdistinctError(
            f'dataset "{dataset.name}" has been published as {dataset.variant} and stays that',
            hint="The first group of every record decides about the variant, and first groups "
            "are published. max_risk bounds the risk of any variant.",
            sqlstate=_CANNOT_CHANGE,
        )


def _check_max_risk(plpy: Plpy, dataset: Dataset, max_risk: float | None) -> None:
    """Refuse a bound that past releases break already: nothing could be published under it."""
    if max_risk is None or max_risk == dataset.max_risk or not dataset.last_release:
        return
    model = updates.read_model(plpy, dataset)
    history = read_history(plpy, dataset, model.labels).history
    risk = risks(history, model).risk
    above = int(np.count_nonzero(risk > max_risk + TOLERANCE))
    if above:
        raise MdistinctError(
            f"{counted(above, 'version')} of past releases have a risk above max_risk = "
            f"{max_risk:g}: up to {risk.max():.6g}",
            hint="A release cannot be taken back: choose a bound that the history keeps.",
            sqlstate=errors.RISK_TOO_HIGH,
        )


def _add_columns(plpy: Plpy, dataset: Dataset, qi_columns: Sequence[Any]) -> Dataset:
    """Give the tables and views the new columns; past releases have no values of them."""
    registration.check_roles(dataset.id_column, qi_columns, dataset.sensitive_column)
    had = len(dataset.qi_columns)
    if tuple(qi_columns[:had]) != dataset.qi_columns:
        raise bad_parameter(
            f'the columns of dataset "{dataset.name}" begin with '
            + ", ".join(f'"{name}"' for name in dataset.qi_columns),
            "Columns can be added after these; none can be left out or moved, since past releases "
            "have them. A view as the source can give a column one value for everybody.",
        )
    columns = source.columns_of(plpy, source.find(plpy, dataset))
    registration.check_columns(columns, qi_columns, dataset.source)
    new = {name: columns[name] for name in qi_columns[had:]}
    try:
        relations.drop_views(plpy, dataset.name)
    except plpy.SPIError as error:
        if sqlstate_of(error) != "2BP01":
            raise
        raise MdistinctError(
            f'other views read what was published of dataset "{dataset.name}", which gets columns',
            hint="Drop these views, and create them again afterwards.",
            detail=str(error),
            sqlstate="2BP01",
        ) from None
    relations.add_columns(plpy, dataset.name, had, [qi_type_of(c.base) for c in new.values()])
    relations.create_views(plpy, dataset.name, qi_columns, dataset.sensitive_column)
    return dataclasses.replace(
        dataset,
        qi_columns=tuple(qi_columns),
        qi_types=(*dataset.qi_types, *(column.declared for column in new.values())),
    )


def _store(plpy: Plpy, dataset: Dataset) -> Row:
    return run(
        plpy,
        "UPDATE mdistinct.datasets AS d SET source_schema = $2, source_table = $3,"
        " qi_columns = $4, qi_types = $5, m = $6, variant = $7, max_risk = $8"
        " WHERE d.dataset = $1 RETURNING *",
        ["name", "name", "name", "name[]", "text[]", "int4", "text", "float8"],
        [
            dataset.name,
            dataset.source_schema,
            dataset.source_table,
            list(dataset.qi_columns),
            list(dataset.qi_types),
            dataset.m,
            dataset.variant,
            dataset.max_risk,
        ],
    )[0]
