"""Turns what the user can mend into SQL errors, in one place, and words that messages share."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Concatenate, ParamSpec, TypeVar

from pg_mdistinct.core.errors import MdistinctError
from pg_mdistinct.core.garbage import uncollected
from pg_mdistinct.server import caller
from pg_mdistinct.server.plpython import Plpy, detail_and_hint_of, sqlstate_of

P = ParamSpec("P")
T = TypeVar("T")

NAMED_AT_MOST = 10
SPEAKER = "pg_mdistinct"

# Made beforehand, when there is memory.
_OUT_OF_MEMORY = MdistinctError(
    "the server has run out of memory",
    hint="Nothing was written: try again when it has more, or less to do besides.",
    sqlstate="53200",
)
# Classes of SQLSTATE whose messages tell of transactions, locks and the machine, never of data.
_ABOUT_THE_SERVER = ("25", "40", "53", "55", "57", "58")


def entry_point(
    function: Callable[Concatenate[Plpy, P], T],
) -> Callable[Concatenate[Plpy, P], T]:
    """Mark a function that an SQL function calls: what it raises becomes a proper SQL error."""

    @functools.wraps(function)
    def call(plpy: Plpy, /, *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            # Arrays need no collector, and loading kernels for the first time has much to make.
            with uncollected():
                return function(plpy, *args, **kwargs)
        except MdistinctError as error:
            told = error
        except plpy.SPIError as error:
            told = _fit_for_caller(plpy, error)
        except MemoryError:
            told = _OUT_OF_MEMORY
        except Exception as error:
            if caller.sees_microdata(plpy):
                raise
            told = _hidden(type(error).__name__, "XX000")
        raise _sql_error(plpy, told)

    return call


def translated(error: Exception) -> MdistinctError:
    """Return an error of a statement that we ran, perhaps of a function of our own."""
    detail, hint = detail_and_hint_of(error)
    return MdistinctError(
        str(error).removeprefix(f"{SPEAKER}: "),
        hint=hint or "",
        detail=detail,
        sqlstate=sqlstate_of(error),
    )


def _fit_for_caller(plpy: Plpy, error: Exception) -> MdistinctError:
    """Return what the caller may know of a statement that failed without our having foreseen it.

    PostgreSQL's messages quote values: publishers get none that is not our own.
    """
    told = translated(error)
    if str(error).startswith(f"{SPEAKER}: ") or caller.sees_microdata(plpy):
        return told
    if told.sqlstate[:2] in _ABOUT_THE_SERVER:
        return MdistinctError(told.message, hint=told.hint, sqlstate=told.sqlstate)
    return _hidden(f"SQLSTATE {told.sqlstate}", told.sqlstate)


def _hidden(name: str, sqlstate: str) -> MdistinctError:
    return MdistinctError(
        f"the call failed ({name})",
        hint="A member of mdistinct_admin finds the reason in the view mdistinct.audit.",
        sqlstate=sqlstate,
    )


def _sql_error(plpy: Plpy, told: MdistinctError) -> Exception:
    """Return the exception that PL/Python reports with these fields.

    PL/Python puts the name of the exception's class before the message: a class of our own says
    "pg_mdistinct" there, where ``plpy.error`` would say "plpy.Error".
    """
    speaker: type[Exception] = type(SPEAKER, (plpy.Error,), {"__module__": "builtins"})
    error = speaker(told.message)
    fields = {"sqlstate": told.sqlstate, "detail": told.detail, "hint": told.hint}
    vars(error).update({name: value for name, value in fields.items() if value})
    return error


def bad_parameter(message: str, hint: str, sqlstate: str = "22023") -> MdistinctError:
    """Return the error for an argument that cannot be taken."""
    return MdistinctError(message, hint=hint, sqlstate=sqlstate)


def require(**arguments: object) -> None:
    """Refuse NULL for arguments that must be given."""
    for name, value in arguments.items():
        if value is None:
            raise bad_parameter(
                f'"{name}" must not be NULL', f'Give a value for "{name}".', "22004"
            )


def counted(count: int, noun: str) -> str:
    """Return "1 record", "2 records"."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def listed(names: Iterable[str], total: int) -> str:
    """Return ": a, b, ..." with at most ten names; nothing if there are no names to tell."""
    shown = list(names)[:NAMED_AT_MOST]
    if not shown:
        return ""
    return ": " + ", ".join(shown) + (", ..." if total > len(shown) else "")
