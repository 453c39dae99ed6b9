"""Reads releases and update models from a table, a view or a query of any PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg import sql

from pg_mdistinct.core.errors import MdistinctError
from pg_mdistinct.foreign.rows import (
    BAD_INPUT,
    MODEL_COLUMNS,
    MODEL_HINT,
    PROBABILITY,
    RELEASES_HINT,
    Columns,
    ModelRow,
    ReleaseRow,
    model_row,
    release_row,
    require_columns,
)

Connection = psycopg.Connection[Any]
FETCH = 20_000


def database_releases(
    connection: Connection,
    *,
    table: str | None = None,
    query: str | None = None,
    columns: Columns | None = None,
) -> Iterator[ReleaseRow]:
    """Go through published rows that a table (`schema.table` as in SQL) or a query holds."""
    columns = columns or Columns()
    with _explained():
        name, relation = _relation(connection, table, query)
        require_columns(name, columns.names, _columns_of(connection, relation), RELEASES_HINT)
        for cells in _texts(connection, relation, columns.names):
            yield release_row(_where(name, columns.names, cells), columns, cells)


def database_model(
    connection: Connection, *, table: str | None = None, query: str | None = None
) -> Iterator[ModelRow]:
    """Go through an update model that a table or a query holds."""
    with _explained():
        name, relation = _relation(connection, table, query)
        found = _columns_of(connection, relation)
        require_columns(name, MODEL_COLUMNS, found, MODEL_HINT)
        wanted = [*MODEL_COLUMNS, *([PROBABILITY] if PROBABILITY in found else [])]
        for cells in _texts(connection, relation, wanted):
            padded = [*cells, None][: len(ModelRow._fields)]
            yield model_row(_where(name, wanted, cells), padded)


def _relation(
    connection: Connection, table: str | None, query: str | None
) -> tuple[str, sql.Composable]:
    """Return a name for messages, and what to select from."""
    if (table is None) == (query is None):
        raise MdistinctError(
            "either a table or a query is needed",
            hint="Give exactly one of the two.",
            sqlstate=BAD_INPUT,
        )
    if query is not None:
        # The caller's own statement, run with the caller's own rights.
        text = sql.SQL(query.strip().rstrip(";"))
        return "the query", sql.SQL("({}) AS releases").format(text)
    row = connection.execute(
        "SELECT n.nspname, c.relname FROM pg_catalog.pg_class AS c"
        " JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace"
        " WHERE c.oid = %s::pg_catalog.regclass",
        [table],
    ).fetchone()
    assert row is not None, "the cast to regclass refuses unknown names"
    return f"table {table}", sql.Identifier(*row)


def _columns_of(connection: Connection, relation: sql.Composable) -> list[str]:
    cursor = connection.execute(sql.SQL("SELECT * FROM {} LIMIT 0").format(relation))
    return [column.name for column in cursor.description or ()]


def _texts(
    connection: Connection, relation: sql.Composable, columns: Sequence[str]
) -> Iterator[Sequence[str | None]]:
    """Fetch columns as text, a few thousand rows at a time."""
    wanted = sql.SQL(", ").join(
        sql.SQL("{}::pg_catalog.text").format(sql.Identifier(name)) for name in columns
    )
    query = sql.SQL("SELECT {} FROM {}").format(wanted, relation)
    with connection.transaction(), connection.cursor(name="mdistinct_foreign") as cursor:
        cursor.itersize = FETCH
        yield from cursor.execute(query)


def _where(name: str, columns: Sequence[str], cells: Sequence[str | None]) -> str:
    """Describe a row by what it holds: rows of a database have no numbers."""
    held = ", ".join(f"{c} {v}" for c, v in zip(columns, cells, strict=True) if v)
    return f"{name}, row with {held or 'no values'}"


@contextmanager
def _explained() -> Iterator[None]:
    """Raise what the database says as the error that all other trouble comes as."""
    try:
        yield
    except psycopg.Error as error:
        raise MdistinctError(
            error.diag.message_primary or str(error).strip(),
            detail=error.diag.message_detail,
            hint=error.diag.message_hint or "Check the table or query, and your rights on it.",
            sqlstate=error.sqlstate or BAD_INPUT,
        ) from error
