"""Sends calls from asyncio. SQLAlchemy needs greenlet for that, so nothing else imports this."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import psycopg
from psycopg.rows import tuple_row
from sqlalchemy.ext.asyncio import (
    AsyncConnection,
    AsyncEngine,
    AsyncSession,
    create_async_engine,
)

from pg_mdistinct.client.calls import Answer, Call, Rows
from pg_mdistinct.client.connections import (
    APPLICATION,
    check_driver,
    columns_of,
    heard,
    must_open,
    plain,
)
from pg_mdistinct.client.errors import translated
from pg_mdistinct.client.progress import OnProgress

T = TypeVar("T")

AsyncDatabase = str | AsyncEngine | AsyncConnection | AsyncSession | psycopg.AsyncConnection[Any]


class AsyncSender:
    """Sends calls from asyncio; in a transaction of the caller each of them is a savepoint."""

    def __init__(self, database: AsyncDatabase) -> None:
        self._owns_engine = isinstance(database, str)
        self._database = _async_engine(database) if isinstance(database, str) else database
        if not isinstance(self._database, psycopg.AsyncConnection):
            check_driver(_driver_of(self._database))

    async def send(self, call: Call[T], on_progress: OnProgress | None = None) -> T:
        """Sends the statements of a call and reads their answer."""
        answer = Answer()
        with translated():
            async with self._driver() as driver:
                with heard(driver, answer, on_progress):
                    for statement in call.statements:
                        async with driver.cursor(row_factory=tuple_row) as cursor:
                            await cursor.execute(statement.query, statement.parameters)
                            rows = await cursor.fetchall() if cursor.description else []
                            answer.results.append(Rows(columns_of(cursor), rows))
        return call.read(answer)

    async def close(self) -> None:
        """Closes the connections that were not given."""
        if self._owns_engine:
            assert isinstance(self._database, AsyncEngine)
            await self._database.dispose()

    @asynccontextmanager
    async def _driver(self) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
        """A connection of psycopg's own, inside a transaction."""
        if isinstance(self._database, AsyncEngine):
            async with self._database.begin() as connection:
                yield await _beneath_async(connection)
            return
        driver = await _begun_async(self._database)
        if must_open(driver):
            await driver.execute("SELECT 1")
        async with driver.transaction():
            yield driver


def _async_engine(dsn: str) -> AsyncEngine:
    return create_async_engine(
        "postgresql+psycopg://",
        async_creator=lambda: psycopg.AsyncConnection.connect(
            plain(dsn), application_name=APPLICATION
        ),
        pool_pre_ping=True,
    )


def _driver_of(database: AsyncEngine | AsyncConnection | AsyncSession) -> str:
    if isinstance(database, AsyncSession):
        return database.get_bind().engine.dialect.driver
    return database.dialect.driver


async def _begun_async(
    database: AsyncConnection | AsyncSession | psycopg.AsyncConnection[Any],
) -> psycopg.AsyncConnection[Any]:
    if isinstance(database, psycopg.AsyncConnection):
        return database
    connection = await database.connection() if isinstance(database, AsyncSession) else database
    if not connection.in_transaction():
        await connection.begin()
    return await _beneath_async(connection)


async def _beneath_async(connection: AsyncConnection) -> psycopg.AsyncConnection[Any]:
    driver = (await connection.get_raw_connection()).driver_connection
    assert isinstance(driver, psycopg.AsyncConnection)
    return driver
