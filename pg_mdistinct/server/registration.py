"""Registers a table or view as a dynamic dataset, and forgets it again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pg_mdistinct.core.errors import MdistinctError
from pg_mdistinct.core.model import VARIANTS
from pg_mdistinct.server import caller, catalog, relations, scheduling, source
from pg_mdistinct.server.audit import audited
from pg_mdistinct.server.errors import bad_parameter, entry_point, require
from pg_mdistinct.server.plpython import Plpy, Row, run
from pg_mdistinct.server.qi_types import qi_type_of
from pg_mdistinct.server.source import Column

RESERVED = ("release", "gid")
_ARGUMENTS = ["name", "oid", "name", "name[]", "name", "int4", "text", "float8"]


@entry_point
@audited("register")
def register(
    plpy: Plpy,
    dataset: str,
    relation: str | None,
    id_column: str,
    qi_columns: Sequence[str],
    sensitive_column: str,
    m: int,
    variant: str,
    max_risk: float | None,
) -> Row:
    """Register with the caller's rights: he must be able to read what he registers.

    The catalog and the tables are made by ``create_dataset`` with the rights of the plugin's owner;
    the functions that read the source belong to the source's owner or to the caller.
    """
    oid = None if relation is None else source.oid_of(plpy, relation)
    row = run(
        plpy,
        "SELECT * FROM mdistinct.create_dataset($1, $2, $3, $4, $5, $6, $7, $8)",
        _ARGUMENTS,
        [dataset, oid, id_column, qi_columns, sensitive_column, m, variant, max_risk],
    )[0]
    assert oid is not None
    registered = catalog.from_row(row)
    check_readable(plpy, oid, registered)
    source.create_reader(plpy, oid, registered)
    return row


@entry_point
@audited("register", writes=True)
def create_dataset(
    plpy: Plpy,
    dataset: str,
    oid: int,
    id_column: str,
    qi_columns: Sequence[str],
    sensitive_column: str,
    m: int,
    variant: str,
    max_risk: float | None,
) -> Row:
    """Check everything that registration is told, write the catalog's row and make the tables."""
    require(
        dataset=dataset,
        source=oid,
        id_column=id_column,
        qi_columns=qi_columns,
        sensitive_column=sensitive_column,
        m=m,
        variant=variant,
    )
    _check_name(dataset)
    check_parameters(m, variant, max_risk)
    check_roles(id_column, qi_columns, sensitive_column)
    schema, relation = source.place_of(plpy, oid)
    columns = source.columns_of(plpy, oid)
    check_columns(columns, (id_column, *qi_columns, sensitive_column), f"{schema}.{relation}")
    values = [
        dataset,
        schema,
        relation,
        id_column,
        columns[id_column].declared,
        list(qi_columns),
        [columns[name].declared for name in qi_columns],
        sensitive_column,
        columns[sensitive_column].declared,
        m,
        variant,
        max_risk,
        caller.name(plpy),
    ]
    row = _insert(plpy, values)
    relations.check_free(plpy, dataset)
    relations.create(
        plpy,
        dataset,
        [qi_type_of(columns[name].base) for name in qi_columns],
        columns[sensitive_column].value_type,
    )
    relations.create_views(plpy, dataset, qi_columns, sensitive_column)
    return row


@entry_point
@audited("drop", writes=True)
def drop(plpy: Plpy, dataset: str) -> None:
    """Forget a dataset and its history; a running publication is waited for."""
    catalog.lock(plpy, dataset, wait=True)
    scheduling.forget(plpy, dataset)
    relations.drop(plpy, dataset)
    run(plpy, "DELETE FROM mdistinct.datasets AS d WHERE d.dataset = $1", ["name"], [dataset])


def _insert(plpy: Plpy, values: Sequence[object]) -> Row:
    rows = run(
        plpy,
        "INSERT INTO mdistinct.datasets (dataset, source_schema, source_table, id_column, id_type,"
        " qi_columns, qi_types, sensitive_column, sensitive_type, m, variant, max_risk,"
        " registered_by)"
        " VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)"
        " ON CONFLICT DO NOTHING RETURNING *",
        [
            *["name"] * 4,
            "text",
            "name[]",
            "text[]",
            "name",
            "text",
            "int4",
            "text",
            "float8",
            "name",
        ],
        values,
    )
    if not rows.nrows():
        raise MdistinctError(
            f'dataset "{values[0]}" is already registered',
            hint="Choose another name; mdistinct_drop forgets a dataset with its whole history.",
            sqlstate="42710",
        )
    return rows[0]


def _check_name(dataset: str) -> None:
    size = len(dataset.encode())
    if not 0 < size <= relations.LONGEST_NAME:
        raise bad_parameter(
            f'the dataset name "{dataset}" has {size} bytes',
            f"Give a name of 1 to {relations.LONGEST_NAME} bytes.",
        )


def check_parameters(m: int, variant: str, max_risk: float | None) -> None:
    """Refuse parameters that no dataset can have."""
    if m < 2:
        raise bad_parameter(
            f"m is {m}, but must be at least 2",
            "m is the number of values that a record stays indistinguishable among.",
        )
    if variant not in VARIANTS:
        raise bad_parameter(
            f'there is no variant "{variant}"',
            "The variants are " + ", ".join(f"'{name}'" for name in VARIANTS) + ".",
        )
    if max_risk is not None and not 0 < max_risk <= 1:
        raise bad_parameter(
            f"max_risk is {max_risk}, but must be above 0 and at most 1",
            "It is a probability; NULL means that the risk is measured, but not bounded.",
        )


def check_roles(id_column: str, qi_columns: Sequence[Any], sensitive_column: str) -> None:
    """Refuse columns that are missing, play two roles, or have a name that releases need."""
    if not qi_columns:
        raise bad_parameter(
            '"qi_columns" is empty', "Name at least one column, such as ARRAY['zip', 'age']."
        )
    if not all(isinstance(name, str) for name in qi_columns):
        raise bad_parameter(
            '"qi_columns" must be a one-dimensional array without NULL',
            "Give column names, such as ARRAY['zip', 'age'].",
        )
    seen: set[str] = set()
    for name in (id_column, *qi_columns, sensitive_column):
        if name in seen:
            raise bad_parameter(
                f'column "{name}" is named twice',
                "Each column is either the identifier, a quasi-identifier or the sensitive one.",
                "42701",
            )
        seen.add(name)
    for name in (*qi_columns, sensitive_column):
        if name in RESERVED:
            raise bad_parameter(
                f'column "{name}" has a name that releases use themselves',
                "Register a view that gives the column another name.",
            )


def check_columns(columns: Mapping[str, Column], wanted: Sequence[str], relation: str) -> None:
    """Refuse columns that the source has not got."""
    for name in wanted:
        if name not in columns:
            raise MdistinctError(
                f'column "{name}" of {relation} does not exist',
                hint="Its columns are " + ", ".join(f'"{other}"' for other in columns) + ".",
                sqlstate="42703",
            )


def check_readable(plpy: Plpy, oid: int, dataset: catalog.Dataset) -> None:
    """Refuse a source that the caller may not read."""
    row = run(
        plpy,
        "SELECT pg_catalog.bool_and(pg_catalog.has_column_privilege($1, c.name, 'SELECT'))"
        " AND pg_catalog.has_schema_privilege($3, 'USAGE') AS readable"
        " FROM pg_catalog.unnest($2) AS c (name)",
        ["oid", "text[]", "text"],
        [oid, [name for name, _ in dataset.column_types], dataset.source_schema],
    )[0]
    if not row["readable"]:
        raise MdistinctError(
            f"you may not read {dataset.source}",
            hint="Ask its owner for SELECT on the columns that you register.",
            sqlstate="42501",
        )
