"""Refuses snapshots that cannot be published, naming what is wrong with them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NoReturn

import numpy as np

from pg_mdistinct.core import errors
from pg_mdistinct.core.arrays import IntArray
from pg_mdistinct.core.errors import MdistinctError
from pg_mdistinct.core.model import M_INVARIANCE, UpdateModel
from pg_mdistinct.core.snapshot import Snapshot
from pg_mdistinct.core.texts import Texts
from pg_mdistinct.server import caller
from pg_mdistinct.server.catalog import Dataset
from pg_mdistinct.server.errors import NAMED_AT_MOST, counted, listed
from pg_mdistinct.server.plpython import Plpy, run
from pg_mdistinct.server.qi_types import QiType
from pg_mdistinct.server.relations import unnested

NOT_NULL_VIOLATION = "23502"
UNIQUE_VIOLATION = "23505"


@dataclass(frozen=True)
class Staged:
    """A snapshot in its table, and the types of its QI columns."""

    table: str
    qi: tuple[QiType, ...]

    def rows(self, *columns: str) -> str:
        """Return a subquery with a row for every record: its identifier, and these columns."""
        return f"{unnested(self.table, 'record_id', *columns)} AS v"


@contextmanager
def discreet(plpy: Plpy, dataset: Dataset) -> Iterator[None]:
    """Keep the values that prove a model unfit from callers who must not see values."""
    try:
        yield
    except MdistinctError as error:
        if caller.sees_microdata(plpy):
            raise
        judged = "values" if dataset.variant == M_INVARIANCE else "update model"
        raise MdistinctError(
            f'dataset "{dataset.name}" cannot be published with its {judged} and m = {dataset.m}',
            hint="A member of mdistinct_admin sees the reason: SELECT mdistinct_preview(...).",
            sqlstate=error.sqlstate,
        ) from None


def refuse(plpy: Plpy, dataset: Dataset, staged: Staged, model: UpdateModel) -> NoReturn:
    """Say which identifiers are NULL or not unique, or which values cannot be published."""
    _check_identifiers(plpy, dataset, staged)
    for i, (name, qi_type) in enumerate(zip(dataset.qi_columns, staged.qi, strict=True), start=1):
        _check_column(
            plpy,
            staged.rows(f"q{i}"),
            f"v.q{i} IS NULL",
            f'column "{name}" of {dataset.source} is NULL in',
            hint="Fill the column, or register a view that puts a value in place of NULL.",
            sqlstate=NOT_NULL_VIOLATION,
        )
        if qi_type.infinite is not None:
            _check_column(
                plpy,
                staged.rows(f"q{i}"),
                qi_type.infinite.format(f"v.q{i}"),
                f'column "{name}" of {dataset.source} is NaN or infinite in',
                hint="Only finite values have a range: mend them, or register a view without them.",
                sqlstate=errors.NOT_A_NUMBER,
            )
    _check_sensitive(plpy, dataset, staged, model)
    raise MdistinctError(
        f"the function that reads {dataset.source} has not given all columns of every row",
        hint="It is made by mdistinct_register; restore it from a backup.",
        sqlstate="55000",
    )


def refuse_updates(
    plpy: Plpy,
    dataset: Dataset,
    record_ids: Texts,
    snapshot: Snapshot,
    model: UpdateModel,
    rows: IntArray,
) -> None:
    """Refuse records that have changed in a way that the update model calls impossible.

    Under m-invariance that is every change, also one to a value of the record's signature: 1/m
    would be claimed under a model that the data themselves contradict.
    """
    if not len(rows):
        return
    named: list[str] = []
    if caller.sees_microdata(plpy):
        shown = rows[:NAMED_AT_MOST]
        names = record_ids.take(shown).decoded()
        named = [
            f"{name} ({model.labels[snapshot.last_value[row]]}"
            f" -> {model.labels[snapshot.value[row]]})"
            for name, row in zip(names, shown.tolist(), strict=True)
        ]
    if dataset.variant == M_INVARIANCE:
        outside = _outside_signature(snapshot, rows)
        raise MdistinctError(
            f"under m-invariance values never change, but {counted(len(rows), 'record')} "
            f"{'has' if len(rows) == 1 else 'have'} another value than before"
            + listed(named, len(rows)),
            detail=f"New values outside the records' signatures: {outside}.",
            hint="Correct the records, or register a view without them. Where values do change, "
            "use the variant m-distinct and declare the updates: "
            "mdistinct_alter(dataset, variant => 'm-distinct').",
            sqlstate=errors.IMPOSSIBLE_UPDATE,
        )
    raise MdistinctError(
        f"the update model calls the updates of {counted(len(rows), 'record')} impossible"
        + listed(named, len(rows)),
        hint="Correct the records, or declare the updates with mdistinct_allow_update.",
        sqlstate=errors.IMPOSSIBLE_UPDATE,
    )


def _outside_signature(snapshot: Snapshot, rows: IntArray) -> int:
    """Count the records whose value is none of those that they were last published among."""
    last = snapshot.last_candidates.take(snapshot.last_group[rows])
    own = last.items == snapshot.value[rows][last.row_of_item]
    return len(rows) - len(np.unique(last.row_of_item[own]))


def _check_identifiers(plpy: Plpy, dataset: Dataset, staged: Staged) -> None:
    row = plpy.execute(
        f"SELECT pg_catalog.count(*) AS nulls FROM {staged.rows()} WHERE v.record_id IS NULL"
    )[0]
    column = f'identifier column "{dataset.id_column}" of {dataset.source}'
    if row["nulls"]:
        raise MdistinctError(
            f"{column} is NULL in {counted(row['nulls'], 'row')}",
            hint="Every record needs an identifier that stays the same from release to release.",
            sqlstate=NOT_NULL_VIOLATION,
        )
    twice = plpy.execute(
        "SELECT v.record_id, pg_catalog.count(*) AS rows,"
        f" pg_catalog.count(*) OVER () AS identifiers FROM {staged.rows()}"
        " GROUP BY v.record_id HAVING pg_catalog.count(*) > 1"
        f" ORDER BY v.record_id LIMIT {NAMED_AT_MOST}"
    )
    if twice.nrows():
        count = twice[0]["identifiers"]
        named = (f"{row['record_id']} ({row['rows']} rows)" for row in twice)
        raise MdistinctError(
            f"{column} is not unique: {counted(count, 'identifier')} "
            f"{'occurs' if count == 1 else 'occur'} more than once"
            + listed(named if caller.sees_microdata(plpy) else (), count),
            hint="One record is one row: remove the duplicates, or register a view without them.",
            sqlstate=UNIQUE_VIOLATION,
        )


def _check_column(
    plpy: Plpy, rows: str, condition: str, trouble: str, *, hint: str, sqlstate: str
) -> None:
    row = plpy.execute(
        "SELECT pg_catalog.count(*) AS records,"
        f" (pg_catalog.array_agg(v.record_id))[1:{NAMED_AT_MOST}] AS named"
        f" FROM {rows} WHERE {condition}"
    )[0]
    if row["records"]:
        named = row["named"] if caller.sees_microdata(plpy) else ()
        raise MdistinctError(
            f"{trouble} {counted(row['records'], 'record')}" + listed(named, row["records"]),
            hint=hint,
            sqlstate=sqlstate,
        )


def _check_sensitive(plpy: Plpy, dataset: Dataset, staged: Staged, model: UpdateModel) -> None:
    """Refuse NULL and values that the update model does not mention."""
    unknown = run(
        plpy,
        "SELECT v.label AS sensitive, pg_catalog.count(*) AS records,"
        " pg_catalog.count(*) OVER () AS values,"
        f" (pg_catalog.array_agg(v.record_id))[1:{NAMED_AT_MOST}] AS named"
        f" FROM {staged.rows('label')} WHERE v.label IS NULL OR v.label <> ALL ($1)"
        f" GROUP BY v.label ORDER BY v.label NULLS FIRST LIMIT {NAMED_AT_MOST}",
        ["text[]"],
        [[label for label, known in zip(model.labels, model.known, strict=True) if known]],
    )
    column = f'sensitive column "{dataset.sensitive_column}" of {dataset.source}'
    may_see = caller.sees_microdata(plpy)
    for row in unknown:
        if row["sensitive"] is None:
            raise MdistinctError(
                f"{column} is NULL in {counted(row['records'], 'record')}"
                + listed(row["named"] if may_see else (), row["records"]),
                hint="Fill the column, or register a view that puts a value in place of NULL.",
                sqlstate=NOT_NULL_VIOLATION,
            )
    # Under m-invariance whatever occurs is known, once nothing else is wrong.
    if unknown.nrows() and dataset.variant != M_INVARIANCE:
        count = unknown[0]["values"]
        named = (f'"{row["sensitive"]}" ({counted(row["records"], "record")})' for row in unknown)
        raise MdistinctError(
            f"{column} has {counted(count, 'value')} that the update model does not know"
            + listed(named if may_see else (), count),
            hint="Declare what each value may become: "
            "mdistinct_allow_update(dataset, old_value, new_values).",
            sqlstate=errors.UNKNOWN_VALUE,
        )
