"""The audit trail: who called what, with which options, and how it ended, failures too.

What succeeds is a row of mdistinct.audit_trail, written by the transaction that did it. A failure
rolls back, so every call also leaves lines in a file (see ``spool``): one when it begins and one
when it ends. The next call that writes copies what has ended from there into the table; lines leave
the file when it has grown and their rows are committed. Where the file cannot be written nothing is
done: a trail that a full disk switches off is none.
"""

from __future__ import annotations

import functools
import inspect
import json
import math
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Concatenate, ParamSpec, TypeVar

from pg_mdistinct.core.errors import MdistinctError
from pg_mdistinct.server import caller
from pg_mdistinct.server.plpython import Plpy, Result, Row, run, sqlstate_of
from pg_mdistinct.server.spool import Line, Spool, is_alive, this_process

P = ParamSpec("P")
T = TypeVar("T")

SUCCEEDED, FAILED, ROLLED_BACK = "succeeded", "failed", "rolled back"
UNFINISHED, RUNNING = "unfinished", "running"

_LONGEST_TEXT = 1000
_LONGEST_LIST = 100
_MOVED_AT_ONCE = 200
_TIDY_FROM = 32_768
_TOLD = ("release", "records", "groups", "counterfeits", "withheld", "ncp", "max_risk")
_COLUMNS = {
    "call": "uuid",
    "began_at": "timestamptz",
    "ended_at": "timestamptz",
    "login": "name",
    "role": "name",
    "client_address": "inet",
    "action": "text",
    "dataset": "text",
    "options": "jsonb",
    "outcome": "text",
    "sqlstate": "text",
    "message": "text",
    "result": "jsonb",
}
_STORE = (
    f"INSERT INTO mdistinct.audit_trail ({', '.join(_COLUMNS)}) VALUES"
    f" ({', '.join(f'${i}' for i in range(1, len(_COLUMNS) + 1))})"
    " ON CONFLICT DO NOTHING RETURNING transaction"
)


@dataclass
class _Call:
    """A call that this session is in."""

    spool: Spool
    begun: Line
    ended: Line = field(default_factory=dict)


# Calls within calls, the innermost last.
_calls: list[_Call] = []


def audited(
    action: str, *, writes: bool = False
) -> Callable[[Callable[Concatenate[Plpy, P], T]], Callable[Concatenate[Plpy, P], T]]:
    """Leave a trace of every call, under the name of the SQL function without its prefix.

    ``writes`` is for functions that run as the plugin's owner and change something: they write the
    row. A function that such a one calls to do the same action is a part of it, no call of its own.
    """

    def decorate(
        function: Callable[Concatenate[Plpy, P], T],
    ) -> Callable[Concatenate[Plpy, P], T]:
        signature = inspect.signature(function)

        @functools.wraps(function)
        def call(plpy: Plpy, /, *args: P.args, **kwargs: P.kwargs) -> T:
            if _calls and _calls[-1].begun["action"] == action:
                return _carried_out(plpy, lambda: function(plpy, *args, **kwargs), writes)
            given = dict(signature.bind(plpy, *args, **kwargs).arguments)
            del given[next(iter(signature.parameters))]
            _calls.append(_begin(plpy, action, given))
            try:
                return _to_its_end(plpy, lambda: function(plpy, *args, **kwargs), writes)
            finally:
                _calls.pop()

        return call

    return decorate


def open_calls(plpy: Plpy) -> Iterator[Row]:
    """Return the calls that only the file knows of, as rows of the trail."""
    for begun, ended in _calls_of(_spool(_who(plpy))):
        yield _row(begun, {**ended, "outcome": _outcome(plpy, ended)})


def _carried_out(plpy: Plpy, function: Callable[[], T], writes: bool) -> T:
    result = function()
    if writes:
        _commit_for_good(plpy)
        call = _calls[-1]
        call.ended |= {"ended_at": _now(), "outcome": SUCCEEDED, "result": _figures(result)}
        for stored in _store(plpy, _row(call.begun, call.ended)):
            call.ended["transaction"] = str(stored["transaction"])
    return result


def _commit_for_good(plpy: Plpy) -> None:
    """Have this transaction on the disk before anybody sees it.

    A crash could take a release back that was read already, and the next one would not know of it.
    """
    setting = "'synchronous_commit'"
    plpy.execute(
        f"SELECT pg_catalog.set_config({setting}, 'on', true)"
        f" WHERE pg_catalog.current_setting({setting}) OPERATOR(pg_catalog.=) 'off'"
    )


def _to_its_end(plpy: Plpy, function: Callable[[], T], writes: bool) -> T:
    call = _calls[-1]
    try:
        result = _carried_out(plpy, function, writes)
        if writes:
            _move(plpy, call.spool)
    except Exception as error:
        _end(plpy, call, {"outcome": FAILED, **_reason(plpy, error)}, for_good=True)
        raise
    ended = {"outcome": SUCCEEDED, "result": _figures(result), **call.ended}
    # That it has begun is on the disk, and what it did is in the table or was looking only.
    _end(plpy, call, ended, for_good=False)
    return result


def _begin(plpy: Plpy, action: str, given: Mapping[str, Any]) -> _Call:
    who = _who(plpy)
    dataset = given.get("dataset")
    begun = {
        "call": str(uuid.uuid4()),
        "began_at": _now(),
        "login": who["login"],
        "role": who["role"],
        "client_address": who["client_address"],
        "action": action,
        "dataset": None if dataset is None else str(dataset),
        "options": {name: _brief(value) for name, value in given.items() if name != "dataset"},
        "process": this_process(),
    }
    spool = _spool(who)
    try:
        spool.append(begun)
    except OSError as error:
        raise MdistinctError(
            f"the audit trail cannot be written: {error.strerror or error}",
            hint="Nothing is done that leaves no trace: see that the server can write to the "
            "folder pg_mdistinct_audit of its data directory, and that the disk has room.",
            sqlstate="58030",
        ) from None
    return _Call(spool, begun)


def _end(plpy: Plpy, call: _Call, ended: Line, *, for_good: bool) -> None:
    line = {"call": call.begun["call"], "ended_at": _now(), **ended}
    try:
        call.spool.append(line, for_good=for_good)
    except OSError as error:
        # That the call has begun stands in the file already; it will be seen as unfinished.
        plpy.warning(f"the audit trail lacks the end of this call: {error.strerror or error}")


def _move(plpy: Plpy, spool: Spool) -> None:
    """Move what has ended from the file into the table, unless somebody else is about it.

    Lines leave the file when a later call finds their rows committed: a rollback loses nothing,
    and the number of the call keeps any from being stored twice.
    """
    try:
        with plpy.subtransaction():
            if _is_first(plpy):
                _move_ended(plpy, spool)
    except plpy.SPIError as error:
        if sqlstate_of(error).startswith("57"):
            raise
    except OSError as error:
        plpy.warning(f"the audit trail could not be tidied up: {error.strerror or error}")


def _move_ended(plpy: Plpy, spool: Spool) -> None:
    calls = _calls_of(spool)
    stored = _stored(plpy, [begun["call"] for begun, _ in calls])
    if spool.size() > _TIDY_FROM:
        spool.forget({call for call, is_ours in stored.items() if not is_ours})
    left = ((begun, ended) for begun, ended in calls if begun["call"] not in stored)
    for begun, ended in list(left)[:_MOVED_AT_ONCE]:
        outcome = _outcome(plpy, ended)
        if outcome != RUNNING:
            _store(plpy, _row(begun, {**ended, "outcome": outcome}))


def _is_first(plpy: Plpy) -> bool:
    key = "pg_catalog.hashtext('pg_mdistinct audit')"
    row = plpy.execute(f"SELECT pg_catalog.pg_try_advisory_xact_lock({key}, 0) AS ours")[0]
    return bool(row["ours"])


def _stored(plpy: Plpy, calls: list[str]) -> dict[str, bool]:
    """Return which calls have a row, and whether it is this transaction that writes it."""
    rows = run(
        plpy,
        "SELECT a.call, a.transaction OPERATOR(pg_catalog.=) pg_catalog.pg_current_xact_id()"
        " AS is_ours FROM mdistinct.audit_trail AS a"
        " WHERE a.call OPERATOR(pg_catalog.=) ANY ($1)",
        ["uuid[]"],
        [calls],
    )
    return {row["call"]: row["is_ours"] for row in rows}


def _outcome(plpy: Plpy, ended: Line) -> str:
    """Tell how a call ended that has no row."""
    if not ended:
        return RUNNING
    if "transaction" not in ended:
        return str(ended["outcome"])
    # Over as this statement sees the table: what commits meanwhile has a row that it cannot see.
    row = run(
        plpy,
        "SELECT pg_catalog.pg_visible_in_snapshot($1, pg_catalog.pg_current_snapshot()) AS is_over",
        ["xid8"],
        [ended["transaction"]],
    )
    return ROLLED_BACK if row[0]["is_over"] else RUNNING


def _calls_of(spool: Spool) -> list[tuple[Line, Line]]:
    """Return the two lines of each call; the second is empty while the call is running."""
    calls = list(_joined(spool.read()))
    gone = {begun["call"] for begun, ended in calls if not ended and not is_alive(begun["process"])}
    if not gone:
        return calls
    # Only now have they written all that they ever will: what was read before may lack an end.
    return [
        (begun, {"outcome": UNFINISHED} if not ended and begun["call"] in gone else ended)
        for begun, ended in _joined(spool.read())
    ]


def _joined(lines: Iterable[Line]) -> Iterator[tuple[Line, Line]]:
    """Yield the two lines of each call; the second is empty where there is none."""
    begun: dict[str, Line] = {}
    ended: dict[str, Line] = {}
    for line in lines:
        (begun if "action" in line else ended)[line["call"]] = line
    for call, line in begun.items():
        yield line, ended.get(call, {})


def _row(begun: Line, ended: Line) -> Row:
    joined = {**begun, **ended}
    return {
        name: json.dumps(joined[name]) if kind == "jsonb" and name in joined else joined.get(name)
        for name, kind in _COLUMNS.items()
    }


def _store(plpy: Plpy, row: Row) -> Result:
    return run(plpy, _STORE, list(_COLUMNS.values()), [row[name] for name in _COLUMNS])


def _who(plpy: Plpy) -> Row:
    return plpy.execute(
        f"SELECT session_user AS login, {caller.CALLER} AS role,"
        " pg_catalog.host(pg_catalog.inet_client_addr()) AS client_address, d.oid AS database"
        " FROM pg_catalog.pg_database AS d"
        " WHERE d.datname OPERATOR(pg_catalog.=) pg_catalog.current_database()"
    )[0]


def _spool(who: Row) -> Spool:
    return Spool(int(who["database"]))


def _reason(plpy: Plpy, error: Exception) -> dict[str, str]:
    if isinstance(error, MdistinctError):
        return {"sqlstate": error.sqlstate, "message": _cut(error.message)}
    if isinstance(error, plpy.SPIError):
        return {"sqlstate": sqlstate_of(error), "message": _cut(str(error))}
    return {"sqlstate": "XX000", "message": _cut(f"{type(error).__name__}: {error}")}


def _figures(result: object) -> dict[str, Any] | None:
    if not isinstance(result, Mapping) or "release" not in result:
        return None
    return {name: _brief(result[name]) for name in _TOLD if name in result}


def _brief(value: Any) -> Any:
    """Return an option as JSON has it: long texts cut, long lists counted."""
    if isinstance(value, str):
        return _cut(value)
    if isinstance(value, list | tuple):
        if len(value) > _LONGEST_LIST:
            return {"count": len(value)}
        return [_brief(element) for element in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_TEXT else text[:_LONGEST_TEXT] + "..."


def _now() -> str:
    return datetime.now(UTC).isoformat()
