"""Estimates the update model of a dataset from a history: who had which value when."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pg_mdistinct.core.errors import MdistinctError
from pg_mdistinct.core.learning import ALL, OBSERVED, POSSIBLE, SYMMETRIC, Counts, Pair, learned
from pg_mdistinct.server import catalog, source, updates
from pg_mdistinct.server.audit import audited
from pg_mdistinct.server.errors import (
    NAMED_AT_MOST,
    bad_parameter,
    counted,
    entry_point,
    listed,
    require,
)
from pg_mdistinct.server.plpython import Plpy, Row, run
from pg_mdistinct.server.relations import relations_of

RARE, UNSEEN, IMPOSSIBLE = "rare", "unseen", "impossible"

_TIMES = ("date", "timestamp without time zone", "timestamp with time zone")
_NUMBERS = ("smallint", "integer", "bigint", "numeric", "real", "double precision")

_LEFT_OUT = {
    "unplaced": "observations without an individual or a moment",
    "unknown": "pairs of observations of which one has no value",
    "far": "pairs of observations further apart than max_gap",
}
_NEIGHBOURS = """
    SELECT o.trouble, pg_catalog.count(*) AS pairs,
        CASE WHEN o.trouble IS NULL THEN o.old END AS old,
        CASE WHEN o.trouble IS NULL THEN o.new END AS new
    FROM (
        SELECT n.old, n.new,
            CASE
                WHEN n.id IS NULL OR n.moment IS NULL THEN 'unplaced'
                WHEN n.next IS NULL THEN 'last'
                WHEN n.old IS NULL OR n.new IS NULL THEN 'unknown'
                WHEN NOT ({near}) THEN 'far'
            END AS trouble
        FROM (
            SELECT {id} AS id, {order} AS moment, {value}::text AS old,
                pg_catalog.lead({order}) OVER w AS next,
                pg_catalog.lead({value}::text) OVER w AS new
            FROM {table} AS h
            WINDOW w AS (PARTITION BY {id} ORDER BY {order})
        ) AS n
    ) AS o
    GROUP BY 1, 3, 4
"""


@dataclass(frozen=True)
class Panel:
    """A table of observations: its quoted name, and its columns as SQL takes them."""

    table: str
    id: str
    order: str
    value: str
    order_type: str


@entry_point
@audited("learn_updates")
def learn(
    plpy: Plpy,
    dataset: str,
    history: str,
    id_column: str,
    order_column: str,
    value_column: str,
    smoothing: float,
    possible: str,
    max_gap: str | None,
    rare: int,
    thin: int,
    apply: bool,
) -> Iterable[tuple[object, ...]]:
    """Read a history with the caller's rights, hand the model over and report on every pair."""
    require(
        dataset=dataset,
        source=history,
        id=id_column,
        order=order_column,
        value=value_column,
        smoothing=smoothing,
        possible=possible,
        rare=rare,
        thin=thin,
        apply=apply,
    )
    _check_arguments(smoothing, possible)
    updates.refuse_unchanging(catalog.find(plpy, dataset))
    panel = _panel(plpy, history, id_column, order_column, value_column)
    _refuse_ties(plpy, panel)
    counts = _canonical(plpy, dataset, _count(plpy, panel, max_gap))
    model = learned(counts, possible, smoothing)
    if apply:
        _hand_over(plpy, dataset, model)
    _warn(plpy, counts, thin)
    return list(_report(counts, model, rare))


@entry_point
def sensitive_values(plpy: Plpy, dataset: str, texts: Sequence[str]) -> Row:
    """Return how the sensitive column's type writes some texts, and the values of the source."""
    found = catalog.find(plpy, dataset)
    source.check(plpy, found)
    labels = source.labels_of(plpy, found, list(texts)) if texts else {}
    reader = relations_of(plpy, found.name).reader
    with source.reading(plpy, found):
        present = plpy.execute(
            "SELECT coalesce(pg_catalog.array_agg(DISTINCT l.label), '{}') AS present"
            f" FROM {reader}() AS r CROSS JOIN LATERAL pg_catalog.unnest(r.label) AS l (label)"
            " WHERE l.label IS NOT NULL"
        )[0]["present"]
    return {"labels": [labels[text] for text in texts], "present": present}


def _check_arguments(smoothing: float, possible: str) -> None:
    if not 0 <= smoothing < math.inf:
        raise bad_parameter(
            f"smoothing is {smoothing}, but must not be negative or infinite",
            "It is added to the count of every possible update; 0.5 is usual, 0 adds nothing.",
        )
    if possible not in POSSIBLE:
        raise bad_parameter(
            f'"{possible}" does not say which updates are possible',
            f"Say '{OBSERVED}': those that were seen, '{SYMMETRIC}': these and their reverses, "
            f"or '{ALL}': every value may become every other.",
        )


def _panel(plpy: Plpy, history: str, id_column: str, order: str, value: str) -> Panel:
    oid = source.oid_of(plpy, history)
    columns = source.columns_of(plpy, oid)
    for name in (id_column, order, value):
        if name not in columns:
            raise bad_parameter(
                f'column "{name}" of {history} does not exist',
                "Its columns are " + ", ".join(f'"{other}"' for other in columns) + ".",
                "42703",
            )
    return Panel(
        table=source.quoted_name(plpy, oid),
        id=f"h.{plpy.quote_ident(id_column)}",
        order=f"h.{plpy.quote_ident(order)}",
        value=f"h.{plpy.quote_ident(value)}",
        order_type=columns[order].base,
    )


def _refuse_ties(plpy: Plpy, panel: Panel) -> None:
    """Refuse two observations of one individual at once: which came first decides the model."""
    ties = plpy.execute(
        f"SELECT {panel.id}::text AS id, {panel.order}::text AS moment,"
        " pg_catalog.count(*) OVER () AS total"
        f" FROM {panel.table} AS h WHERE {panel.id} IS NOT NULL AND {panel.order} IS NOT NULL"
        f" GROUP BY {panel.id}, {panel.order} HAVING pg_catalog.count(*) > 1"
        f" ORDER BY 1, 2 LIMIT {NAMED_AT_MOST}"
    )
    if ties.nrows():
        total = ties[0]["total"]
        raise MdistinctError(
            f"{counted(total, 'individual')} had more than one value at the same time"
            + listed((f"{row['id']} at {row['moment']}" for row in ties), total),
            hint="Give a view that has one row for each individual and moment.",
            sqlstate="23505",
        )


def _count(plpy: Plpy, panel: Panel, max_gap: str | None) -> dict[Pair, int]:
    """Count the pairs of neighbouring observations.

    An observation without a value stays in its place: what came before and after it are no
    neighbours, and nobody knows what was between.
    """
    rows = plpy.execute(
        _NEIGHBOURS.format(
            id=panel.id,
            order=panel.order,
            value=panel.value,
            table=panel.table,
            near=_near(plpy, panel, max_gap),
        )
    )
    left_out = {row["trouble"]: row["pairs"] for row in rows if row["trouble"]}
    for trouble, words in _LEFT_OUT.items():
        if trouble in left_out:
            plpy.notice(f"left out: {words}: {left_out[trouble]}")
    seen = {(row["old"], row["new"]): row["pairs"] for row in rows if not row["trouble"]}
    if not seen:
        raise bad_parameter(
            "the history has no individual with two values in a row",
            "A model is learnt from individuals that were observed at least twice.",
            "02000",
        )
    return seen


def _near(plpy: Plpy, panel: Panel, max_gap: str | None) -> str:
    """Return the SQL that tells whether an observation follows soon enough after another."""
    if max_gap is None:
        return "true"
    if panel.order_type in _TIMES:
        gap = _constant(plpy, max_gap, "interval")
        return f"n.next <= n.moment + {gap}"
    if panel.order_type in _NUMBERS:
        gap = _constant(plpy, max_gap, "numeric")
        return f"n.next::pg_catalog.numeric - n.moment::pg_catalog.numeric <= {gap}"
    raise bad_parameter(
        f"max_gap has no meaning for an order of type {panel.order_type}",
        "Order by a number, a date or a timestamp, or leave max_gap out.",
    )


def _constant(plpy: Plpy, max_gap: str, kind: str) -> str:
    """Return the gap as an SQL constant, if it is one of this type."""
    constant = f"{plpy.quote_literal(max_gap)}::pg_catalog.{kind}"
    try:
        plpy.execute(f"SELECT {constant}")
    except plpy.SPIError as error:
        raise bad_parameter(
            f'max_gap "{max_gap}" is no {kind}: {error}',
            "Give a number, or for dates and timestamps an interval such as '1 year'.",
        ) from None
    return constant


def _canonical(plpy: Plpy, dataset: str, seen: Mapping[Pair, int]) -> Counts:
    """Return the counts under the texts that the dataset's source has for the values.

    What the source has but the history has not belongs to the model, too.
    """
    texts = sorted({text for pair in seen for text in pair})
    row = run(
        plpy,
        "SELECT v.labels, v.present FROM mdistinct.sensitive_values($1, $2) AS v",
        ["name", "text[]"],
        [dataset, texts],
    )[0]
    labels = dict(zip(texts, row["labels"], strict=True))
    totals: dict[Pair, int] = {}
    for (old, new), count in seen.items():
        pair = (labels[old], labels[new])
        totals[pair] = totals.get(pair, 0) + count
    return Counts(totals, sorted({*labels.values(), *row["present"]}))


def _hand_over(plpy: Plpy, dataset: str, model: Mapping[str, Mapping[str, float]]) -> None:
    triples = [(old, new, p) for old, row in model.items() for new, p in row.items()]
    run(
        plpy,
        "SELECT mdistinct.replace_updates($1, $2, $3, $4)",
        ["name", "text[]", "text[]", "float8[]"],
        [dataset, *(list(column) for column in zip(*triples, strict=True))],
    )


def _warn(plpy: Plpy, counts: Counts, thin: int) -> None:
    """Tell of values whose row of the model rests on few observations, or on none."""
    few = {value: counts.observations(value) for value in counts.values}
    few = {value: count for value, count in few.items() if count < thin}
    if few:
        fewest = sorted(few.items(), key=lambda item: (item[1], item[0]))
        named = (f'"{value}" ({count})' for value, count in fewest)
        plpy.warning(
            f"{counted(len(few), 'value')} of {len(counts.values)} had fewer than {thin} updates "
            "to learn from" + listed(named, len(few)),
            hint="Look at their rows, and correct them with mdistinct_allow_update where you know "
            "better.",
        )


def _report(
    counts: Counts, model: Mapping[str, Mapping[str, Any]], rare: int
) -> Iterator[tuple[object, ...]]:
    for old in counts.values:
        for new in counts.values:
            seen, probability = counts.seen.get((old, new), 0), model[old].get(new)
            if probability is None:
                note: str | None = IMPOSSIBLE
            elif not seen:
                note = UNSEEN
            else:
                note = RARE if seen < rare else None
            yield old, new, seen, probability or 0.0, note
