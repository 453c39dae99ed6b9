"""What the doctor finds, and how a check that cannot be made becomes a finding."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import psycopg

from pg_mdistinct.client.errors import MdistinctSqlError, NotAllowedError
from pg_mdistinct.core.errors import MdistinctError

OK, SKIPPED, WARNING, PROBLEM = "ok", "skipped", "warning", "problem"
_READ_ONLY = "25006"


@dataclass(frozen=True)
class Finding:
    """The outcome of one check; `fix` says what to do where something is wrong."""

    check: str
    status: str
    detail: str
    fix: str | None = None


def ok(check: str, detail: str) -> Finding:
    """All is well."""
    return Finding(check, OK, detail)


def skipped(check: str, detail: str) -> Finding:
    """It could not be looked at."""
    return Finding(check, SKIPPED, detail)


def warning(check: str, detail: str, fix: str) -> Finding:
    """It works, but somebody should know."""
    return Finding(check, WARNING, detail, fix)


def problem(check: str, detail: str, fix: str) -> Finding:
    """It does not work."""
    return Finding(check, PROBLEM, detail, fix)


Check = Callable[[], Finding]


def findings_of(
    connection: psycopg.Connection[Any],
    checks: Iterable[tuple[str, Check]],
    foundations: Collection[str],
) -> Iterator[Finding]:
    """Makes one check after the other; what a faulty foundation carries is not looked at."""
    for name, look in checks:
        finding = made(name, partial(_alone, connection, look))
        yield finding
        if name in foundations and finding.status in (SKIPPED, PROBLEM):
            return


def _alone(connection: psycopg.Connection[Any], look: Check) -> Finding:
    # A check that fails leaves nothing behind that the next one could stumble over.
    with connection.transaction():
        return look()


def made(name: str, look: Check) -> Finding:
    """Makes a check; what the database says against it is a finding, too."""
    try:
        return look()
    except (psycopg.Error, MdistinctSqlError) as error:
        told = error if isinstance(error, MdistinctSqlError) else MdistinctSqlError.of(error)
        return _of_error(name, told)
    except MdistinctError as error:
        return problem(name, error.message, error.hint)


def _of_error(name: str, told: MdistinctSqlError) -> Finding:
    if isinstance(told, NotAllowedError):
        return skipped(name, f"{told.message}; a superuser may look")
    if told.sqlstate == _READ_ONLY:
        return skipped(name, "this server is a standby; ask its primary")
    return problem(name, told.message, told.hint or "See the server's log.")
