"""Connections from a DSN, be it a URL or `key=value` pairs."""

from __future__ import annotations

from typing import Any

import psycopg
import sqlalchemy

from pg_mdistinct.install.errors import InstallError


def normalized(dsn: str) -> str:
    """The DSN as libpq reads it: SQLAlchemy's spelling of the driver is dropped."""
    return dsn.replace("postgresql+psycopg://", "postgresql://", 1)


def open_connection(dsn: str, *, autocommit: bool = False) -> psycopg.Connection[Any]:
    """Connects, or raises `InstallError` with libpq's own words."""
    try:
        return psycopg.connect(
            normalized(dsn), autocommit=autocommit, application_name="pg-mdistinct"
        )
    except psycopg.Error as error:
        raise InstallError(
            f"cannot connect: {str(error).strip()}",
            hint='Check --dsn: "postgresql://user@host/database", or "host=... dbname=...".',
        ) from error


def engine(dsn: str) -> sqlalchemy.Engine:
    """An engine for alembic that connects exactly as `open_connection` does."""
    return sqlalchemy.create_engine(
        "postgresql+psycopg://",
        creator=lambda: open_connection(dsn),
        poolclass=sqlalchemy.pool.NullPool,
    )


def driver_connection(connection: sqlalchemy.Connection) -> psycopg.Connection[Any]:
    """The psycopg connection beneath: SQL files go through it, unparsed."""
    driver = connection.connection.driver_connection
    assert isinstance(driver, psycopg.Connection)
    return driver
