"""Puts rows together into what the core attacks: a history and an update model."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pg_mdistinct.core import errors
from pg_mdistinct.core.arrays import IntArray, Ragged
from pg_mdistinct.core.errors import MdistinctError
from pg_mdistinct.core.history import History, sorted_history
from pg_mdistinct.core.model import UpdateModel
from pg_mdistinct.foreign.rows import BAD_INPUT, ModelRow, ReleaseRow

NAMED = 10
SUM_TOLERANCE = 1e-6
TWICE = "23505"


@dataclass(frozen=True)
class ForeignReleases:
    """Releases of another tool as the core wants them, with the names that people know.

    ``records`` are the names of the history's records; ``releases`` tells what each release
    number was called.
    """

    history: History
    model: UpdateModel
    records: list[str]
    releases: dict[int, str]


def load(
    rows: Iterable[ReleaseRow], model: Iterable[ModelRow], *, consecutive: bool = False
) -> ForeignReleases:
    """Build history and model, and refuse what cannot be one.

    Whole numbers are release numbers: from 1 to 3 values may change twice. Other names (dates,
    say) are sorted and counted 1, 2, 3, ...; ``consecutive`` does so with whole numbers, too.
    """
    built = _model(model)
    codes = {label: code for code, label in enumerate(built.labels)}
    releases, groups, records, unknown = _Codes(), _Codes(), _Codes(), _Codes()
    table = []
    for row in rows:
        value = codes.get(row.value, -1)
        if value < 0:
            unknown.code(row.value)
        record = -1 if row.record is None else records.code(row.record)
        table.append((releases.code(row.release), groups.code(row.group), record, value))
    if not table:
        raise MdistinctError(
            "there are no published rows", hint="Give at least one release.", sqlstate=BAD_INPUT
        )
    if unknown.names:
        raise _unknown_values(unknown.names)
    numbers = _release_numbers(releases.names, consecutive)
    release, group, record, value = np.array(table, dtype=np.int64).T
    history = _history(numbers[release], group, record, value)
    _check_once(history, records.names)
    names = {int(number): name for number, name in zip(numbers, releases.names, strict=True)}
    return ForeignReleases(history, built, records.names, dict(sorted(names.items())))


class _Codes:
    """Numbers names in the order in which they turn up."""

    def __init__(self) -> None:
        self._code: dict[str, int] = {}

    def code(self, name: str) -> int:
        return self._code.setdefault(name, len(self._code))

    @property
    def names(self) -> list[str]:
        return list(self._code)


def _history(release: IntArray, group: IntArray, record: IntArray, value: IntArray) -> History:
    """Gather rows by release and group; rows of nobody are the counterfeits."""
    releases, rank = np.unique(release, return_inverse=True)
    width = int(group.max()) + 1
    keys, where = np.unique(rank * width + group, return_inverse=True)
    where = where.reshape(-1).astype(np.int64)
    order = np.argsort(where, kind="stable")
    offsets = np.searchsorted(where[order], np.arange(len(keys) + 1)).astype(np.int64)
    real = record >= 0
    return sorted_history(
        release=releases[keys // width],
        gid=keys % width + 1,
        rows=Ragged(offsets, value[order]),
        counterfeits=np.bincount(where[~real], minlength=len(keys)).astype(np.int64),
        record=record[real],
        group=where[real],
        value=value[real],
    )


def _check_once(history: History, names: Sequence[str]) -> None:
    twice = ~history.is_first & (history.gap == 0)
    if twice.any():
        records = np.unique(history.record[twice])
        raise MdistinctError(
            f"{len(records)} records are more than once in one release: "
            f"{_listed([names[record] for record in records])}",
            hint="Each record has one row in each release that it is in; rows without a record "
            "are counterfeits.",
            sqlstate=TWICE,
        )


def _release_numbers(names: Sequence[str], consecutive: bool) -> IntArray:
    """Return a number for each release, in the order in which they were published."""
    numbers = _as_numbers(names)
    if numbers is not None and not consecutive and all(n.is_integer() for n in numbers):
        return np.array(numbers, dtype=np.int64)
    keys: Sequence[object] = numbers if numbers is not None else [_natural(name) for name in names]
    order: list[object] = sorted(set(keys))  # type: ignore[type-var]
    place = {key: number for number, key in enumerate(order, start=1)}
    return np.array([place[key] for key in keys], dtype=np.int64)


def _as_numbers(names: Sequence[str]) -> list[float] | None:
    try:
        numbers = [float(name) for name in names]
    except ValueError:
        return None
    return numbers if all(map(math.isfinite, numbers)) else None


def _natural(name: str) -> tuple[tuple[bool, int, str], ...]:
    """Sort "release 2" before "release 10"; ISO dates come out in their order as well."""
    parts = re.split(r"(\d+)", name)
    return tuple((part.isdecimal(), int(part) if part.isdecimal() else 0, part) for part in parts)


def _unknown_values(values: Sequence[str]) -> MdistinctError:
    return MdistinctError(
        f"the update model does not know {len(values)} of the published values: {_listed(values)}",
        hint="Say what each of them may become by the next release; a value that never changes "
        "becomes itself.",
        sqlstate=errors.UNKNOWN_VALUE,
    )


def _model(rows: Iterable[ModelRow]) -> UpdateModel:
    updates: dict[str, dict[str, str | None]] = {}
    for old, new, probability in rows:
        targets = updates.setdefault(old, {})
        if new in targets:
            raise _bad_model(f'"{old}" -> "{new}" is given twice', "Give every update once.")
        targets[new] = probability
    if not updates:
        raise _bad_model("the update model is empty", "Say what each value may become.")
    labels = list(dict.fromkeys(v for old, new in updates.items() for v in (old, *new)))
    codes = {label: code for code, label in enumerate(labels)}
    # A value without a row of its own stays what it is.
    transition = np.diag([0.0 if label in updates else 1.0 for label in labels])
    for old, targets in updates.items():
        for new, likely in _probabilities(old, targets).items():
            transition[codes[old], codes[new]] = likely
    return UpdateModel(transition, np.ones(len(labels), dtype=np.bool_), labels)


def _probabilities(old: str, targets: Mapping[str, str | None]) -> dict[str, float]:
    given = {new: text for new, text in targets.items() if text is not None}
    if not given:
        return dict.fromkeys(targets, 1 / len(targets))
    if len(given) < len(targets):
        raise _bad_model(
            f'only {len(given)} of the {len(targets)} updates of "{old}" have a probability',
            "Give one for each update of a value, or none: then all are equally likely.",
        )
    numbers = {new: _probability(old, new, text) for new, text in given.items()}
    total = math.fsum(numbers.values())
    if abs(total - 1) > SUM_TOLERANCE:
        raise _bad_model(
            f'the probabilities of the updates of "{old}" sum to {total:.9g}, not to 1',
            "Give probabilities that sum to 1, or none: then all updates are equally likely.",
        )
    return {new: number / total for new, number in numbers.items()}


def _probability(old: str, new: str, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 <= number <= 1:
        raise _bad_model(
            f'the probability of "{old}" -> "{new}" is {text}',
            "Probabilities are numbers from 0 to 1.",
        )
    return number


def _bad_model(message: str, hint: str) -> MdistinctError:
    return MdistinctError(message, hint=hint, sqlstate=BAD_INPUT)


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(f'"{name}"' for name in names[:NAMED]) + more
