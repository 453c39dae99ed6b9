"""The SQL interface for Python: clients, what they return and what they raise.

What is for asyncio is imported when it is first asked for: it needs greenlet, the rest does not.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pg_mdistinct.client.client import Client
from pg_mdistinct.client.dataset import Dataset
from pg_mdistinct.client.errors import (
    AlreadyRegisteredError,
    BadArgumentError,
    CancelledError,
    ConnectionFailedError,
    DatasetBusyError,
    DomainTooSmallError,
    DuplicateIdentifierError,
    ImpossibleUpdateError,
    InconsistentHistoryError,
    MdistinctSqlError,
    ModelBreaksHistoryError,
    NameTakenError,
    NoLegalReleaseError,
    NotAllowedError,
    NotANumberError,
    NullValueError,
    RiskTooHighError,
    SourceChangedError,
    SourceMissingError,
    UnknownColumnError,
    UnknownDatasetError,
    UnknownValueError,
)
from pg_mdistinct.client.progress import Progress
from pg_mdistinct.client.release import Release
from pg_mdistinct.client.results import (
    DatasetInfo,
    Estimate,
    LearnedUpdates,
    Publication,
    PublishedColumn,
    PublishedRow,
    ReleaseInfo,
    Transition,
    VersionRisk,
    Violation,
)

if TYPE_CHECKING:
    from pg_mdistinct.client.async_client import AsyncClient, AsyncDataset, AsyncRelease

__all__ = [
    "AlreadyRegisteredError",
    "AsyncClient",
    "AsyncDataset",
    "AsyncRelease",
    "BadArgumentError",
    "CancelledError",
    "Client",
    "ConnectionFailedError",
    "Dataset",
    "DatasetBusyError",
    "DatasetInfo",
    "DomainTooSmallError",
    "DuplicateIdentifierError",
    "Estimate",
    "ImpossibleUpdateError",
    "InconsistentHistoryError",
    "LearnedUpdates",
    "MdistinctSqlError",
    "ModelBreaksHistoryError",
    "NameTakenError",
    "NoLegalReleaseError",
    "NotANumberError",
    "NotAllowedError",
    "NullValueError",
    "Progress",
    "Publication",
    "PublishedColumn",
    "PublishedRow",
    "Release",
    "ReleaseInfo",
    "RiskTooHighError",
    "SourceChangedError",
    "SourceMissingError",
    "Transition",
    "UnknownColumnError",
    "UnknownDatasetError",
    "UnknownValueError",
    "VersionRisk",
    "Violation",
]

_ASYNC = ("AsyncClient", "AsyncDataset", "AsyncRelease")


def __getattr__(name: str) -> Any:
    """Imports what is for asyncio."""
    if name in _ASYNC:
        return getattr(import_module("pg_mdistinct.client.async_client"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
