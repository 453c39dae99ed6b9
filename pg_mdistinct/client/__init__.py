"""The SQL interface for Python: `Client`, what it returns and what it raises."""

from __future__ import annotations

from pg_mdistinct.client.client import Client
from pg_mdistinct.client.errors import MdistinctSqlError
from pg_mdistinct.client.results import (
    Dataset,
    Publication,
    PublishedRow,
    Release,
    ReleaseInfo,
    VersionRisk,
    Violation,
)

__all__ = [
    "Client",
    "Dataset",
    "MdistinctSqlError",
    "Publication",
    "PublishedRow",
    "Release",
    "ReleaseInfo",
    "VersionRisk",
    "Violation",
]
