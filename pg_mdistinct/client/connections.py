"""Sends calls: through an engine in a transaction of their own, or in the caller's transaction."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row
from sqlalchemy import Connection, Engine, create_engine
from sqlalchemy.orm import Session

from pg_mdistinct.client.calls import Answer, Call, Rows
from pg_mdistinct.client.errors import translated
from pg_mdistinct.client.progress import OnProgress, Progress

T = TypeVar("T")

Database = str | Engine | Connection | Session | psycopg.Connection[Any]
"""What a client takes: a DSN, or an engine, connection or session that exists already."""

APPLICATION = "pg-mdistinct"


class Sender:
    """Sends calls to a database; in a transaction of the caller each of them is a savepoint."""

    def __init__(self, database: Database) -> None:
        self._owns_engine = isinstance(database, str)
        self._database = _engine(database) if isinstance(database, str) else database
        if not isinstance(self._database, psycopg.Connection):
            check_driver(_driver_of(self._database))

    def send(self, call: Call[T], on_progress: OnProgress | None = None) -> T:
        """Sends the statements of a call and reads their answer."""
        answer = Answer()
        with translated(), self._driver() as driver, heard(driver, answer, on_progress):
            for statement in call.statements:
                with driver.cursor(row_factory=tuple_row) as cursor:
                    cursor.execute(statement.query, statement.parameters)
                    rows = cursor.fetchall() if cursor.description else []
                    answer.results.append(Rows(columns_of(cursor), rows))
        return call.read(answer)

    def close(self) -> None:
        """Closes the connections that were not given."""
        if self._owns_engine:
            assert isinstance(self._database, Engine)
            self._database.dispose()

    @contextmanager
    def _driver(self) -> Iterator[psycopg.Connection[Any]]:
        """A connection of psycopg's own, inside a transaction."""
        if isinstance(self._database, Engine):
            with self._database.begin() as connection:
                yield _beneath(connection)
            return
        driver = _begun(self._database)
        if must_open(driver):
            driver.execute("SELECT 1")
        with driver.transaction():
            yield driver


def _engine(dsn: str) -> Engine:
    """An engine that connects as libpq does, whichever way the DSN is spelt."""
    return create_engine(
        "postgresql+psycopg://",
        creator=lambda: psycopg.connect(plain(dsn), application_name=APPLICATION),
        pool_pre_ping=True,
    )


def plain(dsn: str) -> str:
    """The DSN as libpq reads it: SQLAlchemy's spelling of the driver is dropped."""
    return dsn.replace("postgresql+psycopg://", "postgresql://", 1)


def check_driver(driver: str) -> None:
    """Refuses engines and connections of another driver before they are used."""
    if driver not in ("psycopg", "psycopg_async"):
        raise ValueError(f"the engine must use psycopg 3, not {driver}")


def _driver_of(database: Engine | Connection | Session) -> str:
    if isinstance(database, Session):
        return database.get_bind().engine.dialect.driver
    return database.dialect.driver


def _begun(database: Connection | Session | psycopg.Connection[Any]) -> psycopg.Connection[Any]:
    """The driver's connection; SQLAlchemy is told that a transaction begins, so that it ends it."""
    if isinstance(database, psycopg.Connection):
        return database
    connection = database.connection() if isinstance(database, Session) else database
    if not connection.in_transaction():
        connection.begin()
    return _beneath(connection)


def _beneath(connection: Connection) -> psycopg.Connection[Any]:
    driver = connection.connection.driver_connection
    assert isinstance(driver, psycopg.Connection)
    return driver


def must_open(driver: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> bool:
    """Whether a statement must open the caller's transaction.

    Else psycopg would take the call's own block for the whole transaction, and commit it.
    """
    return not driver.autocommit and driver.info.transaction_status == TransactionStatus.IDLE


@contextmanager
def heard(
    driver: psycopg.Connection[Any] | psycopg.AsyncConnection[Any],
    answer: Answer,
    on_progress: OnProgress | None,
) -> Iterator[None]:
    """Listens to what the server tells while a call runs."""

    def hear(told: psycopg.errors.Diagnostic) -> None:
        message = told.message_primary or ""
        if told.severity_nonlocalized == "WARNING":
            answer.warnings.append("\n".join(filter(None, (message, _hint(told)))))
        elif on_progress is not None and (progress := Progress.of(message)):
            on_progress(progress)

    driver.add_notice_handler(hear)
    try:
        yield
    finally:
        driver.remove_notice_handler(hear)


def _hint(told: psycopg.errors.Diagnostic) -> str | None:
    return told.message_hint and f"HINT: {told.message_hint}"


def columns_of(cursor: psycopg.Cursor[Any] | psycopg.AsyncCursor[Any]) -> list[str]:
    """The names of what a statement returned."""
    return [column.name for column in cursor.description or ()]
