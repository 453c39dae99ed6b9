"""Reads cron expressions as pg_cron does, and tells when they come round next.

pg_cron follows Vixie cron: where both the day of the month and the day of the week are restricted,
one of them is enough; a field that begins with a star restricts nothing in this sense. It compares
the clock on the wall with the expression, minute by minute: an hour that a change of the clocks
leaves out never comes round, and one that it repeats comes round twice.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo

from pg_mdistinct.core.errors import MdistinctError

# The longest way from one 29th of February to the next, around a year like 2100.
_FARTHEST = timedelta(days=8 * 366)
_DAY = timedelta(days=1)
_LONGEST_INTERVAL = 59

_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_WEEKDAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]
_NICKNAMES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_PART = re.compile(r"(?:(?P<star>\*)|(?P<low>\w+)(?:-(?P<high>\w+))?)(?:/(?P<step>\d+))?", re.ASCII)
_INTERVAL = re.compile(r"\s*(\d+)\s+seconds?\s*", re.ASCII | re.IGNORECASE)
_HINT = (
    "Give minute, hour, day of the month, month and day of the week, each a number, a list, "
    "a range, a step or a star: '0 2 * * 0' is every Sunday at 2 o'clock."
)


@dataclass(frozen=True)
class _Field:
    """What a field is called, what it may hold, and the names that stand for numbers."""

    name: str
    least: int
    greatest: int
    names: Mapping[str, int]


_FIELDS = (
    _Field("minute", 0, 59, {}),
    _Field("hour", 0, 23, {}),
    _Field("day of the month", 1, 31, {}),
    _Field("month", 1, 12, {name: number for number, name in enumerate(_MONTHS, start=1)}),
    _Field("day of the week", 0, 7, {name: number for number, name in enumerate(_WEEKDAYS)}),
)


@dataclass(frozen=True)
class Calendar:
    """Moments of the calendar, to the minute."""

    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    either_day: bool
    """Whether one of the two kinds of day is enough."""

    def next_after(self, moment: datetime) -> datetime | None:
        """The first moment later than the given one, on clocks of its zone; None if there is none.

        Moments are compared in UTC, for Python compares those of one zone by what the clock says.
        """
        now, zone = moment.astimezone(UTC), moment.tzinfo
        # Clocks that are put back across midnight show the day before once more.
        day = moment.date() - _DAY
        while day - moment.date() <= _FARTHEST:
            if self._has(day):
                later = [found for found in self._moments(day, zone) if found > now]
                if later:
                    return min(later).astimezone(zone)
            day += _DAY
        return None

    def _moments(self, day: date, zone: tzinfo | None) -> Iterator[datetime]:
        # Until the next day's end, as its clocks can fall back into this one.
        ends = (datetime.combine(end, time(), zone) for end in (day, day + 2 * _DAY))
        clocks_change = len({end.utcoffset() for end in ends}) > 1
        for hour in self.hours:
            for minute in self.minutes:
                for fold in (0, 1) if clocks_change else (0,):
                    shown = datetime.combine(day, time(hour, minute, fold=fold), zone)
                    found = shown.astimezone(UTC)
                    # A clock that skips this minute never shows it.
                    if not clocks_change or found.astimezone(zone).time() == shown.time():
                        yield found

    def _has(self, day: date) -> bool:
        of_month = day.day in self.days
        of_week = day.isoweekday() % 7 in self.weekdays
        suits = of_month or of_week if self.either_day else of_month and of_week
        return suits and day.month in self.months


@dataclass(frozen=True)
class Interval:
    """Every so many seconds, which pg_cron knows from version 1.5 on."""

    seconds: int

    def next_after(self, moment: datetime) -> datetime | None:
        """The moment one interval later."""
        return moment + timedelta(seconds=self.seconds)


def parse(expression: str) -> Calendar | Interval:
    """Read an expression; one that cannot be read, or never comes round, is an error."""
    if interval := _INTERVAL.fullmatch(expression):
        return _interval(expression, int(interval[1]))
    spelled = _NICKNAMES.get(expression.strip().lower(), expression)
    texts = spelled.split()
    if len(texts) != len(_FIELDS):
        raise _refused(expression, f"has {len(texts)} fields instead of {len(_FIELDS)}")
    numbers = [
        _numbers(expression, field, text) for field, text in zip(_FIELDS, texts, strict=True)
    ]
    calendar = Calendar(
        minutes=tuple(sorted(numbers[0])),
        hours=tuple(sorted(numbers[1])),
        days=frozenset(numbers[2]),
        months=frozenset(numbers[3]),
        # Sunday is both 0 and 7.
        weekdays=frozenset(number % 7 for number in numbers[4]),
        either_day=not texts[2].startswith("*") and not texts[4].startswith("*"),
    )
    if calendar.next_after(datetime(2000, 1, 1, tzinfo=UTC)) is None:
        raise _refused(expression, "names a day that never comes")
    return calendar


def _interval(expression: str, seconds: int) -> Interval:
    if not 1 <= seconds <= _LONGEST_INTERVAL:
        raise _refused(expression, f"is not between 1 and {_LONGEST_INTERVAL} seconds")
    return Interval(seconds)


def _numbers(expression: str, field: _Field, text: str) -> set[int]:
    numbers: set[int] = set()
    for part in text.split(","):
        found = _PART.fullmatch(part)
        numbers_of_part = _range(field, found) if found else range(0)
        if not numbers_of_part:
            raise _refused(expression, f'has no valid {field.name}: "{part}"')
        numbers.update(numbers_of_part)
    return numbers


def _range(field: _Field, part: re.Match[str]) -> range:
    """The numbers of "*", "low", "low-high", or of one of them with a step; none if invalid."""
    step = 1 if part["step"] is None else int(part["step"])
    if part["star"]:
        low, high = field.least, field.greatest
    else:
        low = _number(field, part["low"])
        high = low if part["high"] is None else _number(field, part["high"])
        # Like cron, no step without a range: it could mean "from there on" or "there alone".
        if part["step"] is not None and part["high"] is None:
            return range(0)
    if step < 1 or low < field.least or high > field.greatest:
        return range(0)
    return range(low, high + 1, step)


def _number(field: _Field, text: str) -> int:
    """The number that a text stands for; one that no field may hold where it is none."""
    return int(text) if text.isdecimal() else field.names.get(text.lower(), -1)


def _refused(expression: str, why: str) -> MdistinctError:
    return MdistinctError(f"the cron expression '{expression}' {why}", hint=_HINT, sqlstate="22023")
