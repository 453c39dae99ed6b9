"""The one exception of the client: what PostgreSQL said, taken apart."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from sqlalchemy.exc import DBAPIError


class MdistinctSqlError(Exception):
    """An SQL call failed; `sqlstate` is what a program switches on, `hint` what a person reads."""

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        detail: str | None = None,
        sqlstate: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.detail = detail
        self.sqlstate = sqlstate

    def __str__(self) -> str:
        lines = [self.message]
        if self.detail:
            lines.append(f"DETAIL: {self.detail}")
        if self.hint:
            lines.append(f"HINT: {self.hint}")
        return "\n".join(lines)

    @classmethod
    def of(cls, error: BaseException) -> MdistinctSqlError:
        """The same error, without the driver around it."""
        if not isinstance(error, psycopg.Error):
            return cls(str(error).strip())
        said = error.diag
        return cls(
            said.message_primary or str(error).strip(),
            hint=said.message_hint,
            detail=said.message_detail,
            sqlstate=error.sqlstate,
        )


@contextmanager
def translated() -> Iterator[None]:
    """Raises what the database says as `MdistinctSqlError`."""
    try:
        yield
    except DBAPIError as error:
        raise MdistinctSqlError.of(error.orig or error) from error
    except psycopg.Error as error:
        raise MdistinctSqlError.of(error) from error
