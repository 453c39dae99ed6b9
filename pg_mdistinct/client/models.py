"""The plugin's catalog for SQLAlchemy: mapped classes to query, never to write.

Everything but `PublishedRelease` is for members of mdistinct_admin. What a release holds depends on
its dataset: `Dataset.release(n).selectable` has it, with its ranges and sets.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import BigInteger, DateTime, Double, ForeignKey, MetaData, Text
from sqlalchemy.dialects.postgresql import ARRAY, INET, JSONB
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, relationship


class Base(DeclarativeBase):
    """The base of the mapped classes, with metadata of its own."""

    metadata = MetaData(schema="mdistinct")
    type_annotation_map = {str: Text(), float: Double(), datetime: DateTime(timezone=True)}  # noqa: RUF012


class Dataset(Base):
    """A registered dataset: its source, columns and parameters."""

    __tablename__ = "datasets"

    dataset: Mapped[str] = mapped_column(primary_key=True)
    source_schema: Mapped[str]
    source_table: Mapped[str]
    id_column: Mapped[str]
    id_type: Mapped[str]
    qi_columns: Mapped[list[str]] = mapped_column(ARRAY(Text))
    qi_types: Mapped[list[str]] = mapped_column(ARRAY(Text))
    sensitive_column: Mapped[str]
    sensitive_type: Mapped[str]
    m: Mapped[int]
    variant: Mapped[str]
    max_risk: Mapped[float | None]
    registered_by: Mapped[str]
    registered_at: Mapped[datetime]
    last_release: Mapped[int]

    updates: Mapped[list[Update]] = relationship(
        viewonly=True, order_by="Update.old_value, Update.new_value"
    )
    releases: Mapped[list[Release]] = relationship(viewonly=True, order_by="Release.release")
    schedule: Mapped[Schedule | None] = relationship(viewonly=True)


class Update(Base):
    """A row of an update model: what a value may become by the next release, and how likely."""

    __tablename__ = "updates"

    dataset: Mapped[str] = mapped_column(ForeignKey(Dataset.dataset), primary_key=True)
    old_value: Mapped[str] = mapped_column(primary_key=True)
    new_value: Mapped[str] = mapped_column(primary_key=True)
    probability: Mapped[float]


class Release(Base):
    """A publication and its figures."""

    __tablename__ = "releases"

    dataset: Mapped[str] = mapped_column(ForeignKey(Dataset.dataset), primary_key=True)
    release: Mapped[int] = mapped_column(primary_key=True)
    published_at: Mapped[datetime]
    m: Mapped[int]
    variant: Mapped[str]
    records: Mapped[int]
    groups: Mapped[int]
    counterfeits: Mapped[int]
    withheld: Mapped[int]
    ncp: Mapped[float]
    max_risk: Mapped[float | None]
    seconds: Mapped[float]


class PublishedRelease(Base):
    """A publication, as readers see it."""

    __tablename__ = "releases"
    __table_args__ = {"schema": "mdistinct_published"}  # noqa: RUF012

    dataset: Mapped[str] = mapped_column(primary_key=True)
    release: Mapped[int] = mapped_column(primary_key=True)
    published_at: Mapped[datetime]
    m: Mapped[int]
    variant: Mapped[str]
    rows: Mapped[int]
    groups: Mapped[int]
    counterfeits: Mapped[int]


class Schedule(Base):
    """When a dataset is to be published by pg_cron."""

    __tablename__ = "schedules"

    dataset: Mapped[str] = mapped_column(ForeignKey(Dataset.dataset), primary_key=True)
    cron: Mapped[str]
    scheduled_by: Mapped[str]
    scheduled_at: Mapped[datetime]


class Run(Base):
    """A run of a schedule or of mdistinct_publish_all, and how it ended."""

    __tablename__ = "runs"

    run: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    dataset: Mapped[str]
    run_by: Mapped[str]
    started_at: Mapped[datetime]
    ended_at: Mapped[datetime | None]
    status: Mapped[str]
    release: Mapped[int | None]
    sqlstate: Mapped[str | None]
    message: Mapped[str | None]
    hint: Mapped[str | None]


class AuditedCall(Base):
    """A call of one of the plugin's functions: who, what, and how it ended."""

    __tablename__ = "audit"

    call: Mapped[UUID] = mapped_column(primary_key=True)
    began_at: Mapped[datetime]
    ended_at: Mapped[datetime | None]
    login: Mapped[str]
    role: Mapped[str]
    client_address: Mapped[str | None] = mapped_column(INET)
    action: Mapped[str]
    dataset: Mapped[str | None]
    options: Mapped[dict[str, Any]] = mapped_column(JSONB)
    outcome: Mapped[str]
    sqlstate: Mapped[str | None]
    message: Mapped[str | None]
    result: Mapped[dict[str, Any] | None] = mapped_column(JSONB)
