"""What the database says, as exceptions: a class for each condition to tell apart."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

import psycopg
from sqlalchemy.exc import DBAPIError


class MdistinctSqlError(Exception):
    """An SQL call failed; `sqlstate` is what a program switches on, `hint` what a person reads."""

    sqlstates: ClassVar[tuple[str, ...]] = ()
    """What the class stands for: whole codes, or their first two characters."""

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
            return MdistinctSqlError(str(error).strip())
        said = error.diag
        return _class_of(error)(
            said.message_primary or str(error).strip(),
            hint=said.message_hint,
            detail=said.message_detail,
            sqlstate=error.sqlstate,
        )


class ConnectionFailedError(MdistinctSqlError):
    """There is no connection, or it was lost."""

    sqlstates = ("08", "57P01", "57P02", "57P03")


class NotAllowedError(MdistinctSqlError):
    """The role that is connected may not do this."""

    sqlstates = ("42501",)


class BadArgumentError(MdistinctSqlError):
    """An argument cannot be taken, such as `m` below 2 or probabilities that do not fit."""

    sqlstates = ("22023", "22004", "42804", "02000")


class UnknownDatasetError(MdistinctSqlError):
    """No dataset of this name is registered."""

    sqlstates = ("42704",)


class AlreadyRegisteredError(MdistinctSqlError):
    """A dataset of this name is registered already."""

    sqlstates = ("42710",)


class NameTakenError(MdistinctSqlError):
    """Relations of the dataset would collide with existing ones."""

    sqlstates = ("42P07",)


class UnknownColumnError(MdistinctSqlError):
    """A column does not exist, or is named twice."""

    sqlstates = ("42703", "42701")


class SourceMissingError(MdistinctSqlError):
    """The table or view is not there, or is none."""

    sqlstates = ("42P01", "42809", "3F000")


class SourceChangedError(MdistinctSqlError):
    """The columns of the source are no longer those that were registered."""

    sqlstates = ("MD004",)


class NullValueError(MdistinctSqlError):
    """An identifier, a QI or the sensitive column is NULL somewhere."""

    sqlstates = ("23502",)


class DuplicateIdentifierError(MdistinctSqlError):
    """Several rows have the same identifier."""

    sqlstates = ("23505",)


class NotANumberError(MdistinctSqlError):
    """A QI value is NaN or infinite."""

    sqlstates = ("MD005",)


class UnknownValueError(MdistinctSqlError):
    """The update model does not know a sensitive value."""

    sqlstates = ("MD001",)


class ImpossibleUpdateError(MdistinctSqlError):
    """Records have changed in a way that the update model calls impossible."""

    sqlstates = ("MD002",)


class DomainTooSmallError(MdistinctSqlError):
    """The sensitive domain cannot meet `m`."""

    sqlstates = ("MD003",)


class NoLegalReleaseError(MdistinctSqlError):
    """The update model leaves no legal release for some record."""

    sqlstates = ("MD006",)


class RiskTooHighError(MdistinctSqlError):
    """The release would break the dataset's bound on risk."""

    sqlstates = ("MD007",)


class InconsistentHistoryError(MdistinctSqlError):
    """What is stored of earlier releases contradicts itself."""

    sqlstates = ("MD008",)


class ModelBreaksHistoryError(MdistinctSqlError):
    """The update model would contradict what has been published."""

    sqlstates = ("MD009",)


class DatasetBusyError(MdistinctSqlError):
    """Another transaction publishes or changes the dataset."""

    sqlstates = ("55P03",)


class CancelledError(MdistinctSqlError):
    """The call was cancelled, or ran into a time limit."""

    sqlstates = ("57014",)


_CLASSES = {
    code: subclass for subclass in MdistinctSqlError.__subclasses__() for code in subclass.sqlstates
}


def _class_of(error: psycopg.Error) -> type[MdistinctSqlError]:
    code = error.sqlstate
    if code is None:
        # libpq has no code where it got no answer.
        lost = isinstance(error, psycopg.OperationalError)
        return ConnectionFailedError if lost else MdistinctSqlError
    return _CLASSES.get(code) or _CLASSES.get(code[:2]) or MdistinctSqlError


@contextmanager
def translated() -> Iterator[None]:
    """Raises what the database says as `MdistinctSqlError`."""
    try:
        yield
    except DBAPIError as error:
        raise MdistinctSqlError.of(error.orig or error) from error
    except psycopg.Error as error:
        raise MdistinctSqlError.of(error) from error
