"""The part of PL/Python's ``plpy`` that the server code uses, as types, and one way to call it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

Row = Mapping[str, Any]


class Result(Protocol):
    """The rows of a statement."""

    def __getitem__(self, index: int) -> Row: ...
    def __iter__(self) -> Iterator[Row]: ...
    def __len__(self) -> int: ...
    def nrows(self) -> int:
        """Return how many rows the statement touched."""


class Plpy(Protocol):
    """The module that PL/Python hands to a function's body."""

    Error: type[Exception]
    SPIError: type[Exception]

    def execute(self, statement: Any, arguments: Any = ..., /) -> Result:
        """Run a statement or a prepared plan."""

    def prepare(self, statement: str, types: Sequence[str], /) -> object:
        """Plan a statement with parameters of the given types."""

    def subtransaction(self) -> AbstractContextManager[object]:
        """Open a subtransaction that an exception rolls back."""

    def quote_ident(self, name: str, /) -> str:
        """Quote an identifier."""

    def quote_literal(self, text: str, /) -> str:
        """Quote a literal."""

    def notice(self, message: str, /) -> None:
        """Tell the client something."""

    def warning(self, message: str, /, *, hint: str = ...) -> None:
        """Tell the client something that he should look after."""

    def commit(self) -> None:
        """End the transaction and begin another, where the procedure may do so."""


def run(
    plpy: Plpy, statement: str, types: Sequence[str] = (), values: Sequence[object] = ()
) -> Result:
    """Execute a statement with parameters."""
    return plpy.execute(plpy.prepare(statement, list(types)), list(values))


def sqlstate_of(error: Exception) -> str:
    """Return the SQLSTATE of an exception of ``plpy.SPIError``."""
    code = _diagnostics(error)[0]
    # PostgreSQL packs five characters of six bits each.
    return "".join(chr((code >> shift & 0x3F) + ord("0")) for shift in range(0, 30, 6))


def detail_and_hint_of(error: Exception) -> tuple[str | None, str | None]:
    """Return what else an exception of ``plpy.SPIError`` has to say."""
    _, detail, hint = _diagnostics(error)
    return detail, hint


def _diagnostics(error: Exception) -> tuple[int, str | None, str | None]:
    code, detail, hint, *_ = error.spidata  # type: ignore[attr-defined]
    return code, detail, hint
