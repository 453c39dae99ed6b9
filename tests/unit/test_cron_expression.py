from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pg_mdistinct.core.errors import MdistinctError
from pg_mdistinct.server.cron_expression import Calendar, parse

NOW = datetime(2026, 3, 11, 14, 30, 20, tzinfo=UTC)  # a Wednesday


def after(expression: str, moment: datetime = NOW) -> str:
    found = parse(expression).next_after(moment)
    assert found is not None
    assert found.tzinfo == moment.tzinfo
    return f"{found:%Y-%m-%d %H:%M:%S}"


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("* * * * *", "2026-03-11 14:31:00"),
        ("30 14 * * *", "2026-03-12 14:30:00"),
        ("31 14 * * *", "2026-03-11 14:31:00"),
        ("0 2 * * 0", "2026-03-15 02:00:00"),
        ("0 2 * * 7", "2026-03-15 02:00:00"),
        ("0 2 * * sun", "2026-03-15 02:00:00"),
        ("0 2 * * MON-fri", "2026-03-12 02:00:00"),
        ("0 2 * * 5-7", "2026-03-13 02:00:00"),
        ("*/20 * * * *", "2026-03-11 14:40:00"),
        ("5-59/20 * * * *", "2026-03-11 14:45:00"),
        ("10,50,35 3,14 * * *", "2026-03-11 14:35:00"),
        ("0 0 1 jan *", "2027-01-01 00:00:00"),
        ("0 0 31 * *", "2026-03-31 00:00:00"),
        ("0 0 29 2 *", "2028-02-29 00:00:00"),
        ("59 23 31 12 *", "2026-12-31 23:59:00"),
        # Both kinds of day restricted: one of them is enough.
        ("0 0 13 * 5", "2026-03-13 00:00:00"),
        ("0 0 20 * 4", "2026-03-12 00:00:00"),
        # A field that begins with a star restricts in addition.
        ("0 0 */2 * 5", "2026-03-13 00:00:00"),
        ("0 0 14 * */7", "2026-06-14 00:00:00"),
        ("  0\t2  * * *  ", "2026-03-12 02:00:00"),
        ("@hourly", "2026-03-11 15:00:00"),
        ("@daily", "2026-03-12 00:00:00"),
        ("@weekly", "2026-03-15 00:00:00"),
        ("@monthly", "2026-04-01 00:00:00"),
        ("@yearly", "2027-01-01 00:00:00"),
        ("5 seconds", "2026-03-11 14:30:25"),
        ("1 second", "2026-03-11 14:30:21"),
    ],
)
def test_the_next_moment(expression: str, expected: str) -> None:
    assert after(expression) == expected


@pytest.mark.parametrize(
    ("expression", "since", "expected"),
    [
        ("0 2 * * 0", "2026-03-11T14:30+00:00", "2026-03-15T01:00+00:00"),
        # 2:30 does not exist on the day on which summer begins, and comes twice when it ends.
        ("30 2 * * *", "2026-03-28T12:00+00:00", "2026-03-30T00:30+00:00"),
        ("30 2 * * *", "2026-10-24T12:00+00:00", "2026-10-25T00:30+00:00"),
        ("30 2 * * *", "2026-10-25T00:30+00:00", "2026-10-25T01:30+00:00"),
        ("30 2 * * *", "2026-10-25T01:30+00:00", "2026-10-26T01:30+00:00"),
        ("0,30 2 * * *", "2026-10-25T00:30+00:00", "2026-10-25T01:00+00:00"),
    ],
)
def test_summer_time(expression: str, since: str, expected: str) -> None:
    moment = datetime.fromisoformat(since).astimezone(ZoneInfo("Europe/Berlin"))
    found = parse(expression).next_after(moment)
    assert found is not None
    assert found.astimezone(UTC).isoformat(timespec="minutes") == expected


def test_clocks_that_go_back_across_midnight() -> None:
    zone = ZoneInfo("America/St_Johns")
    # At one minute past midnight it was a minute past eleven again.
    moment = datetime(2010, 11, 7, 0, 0, 30, tzinfo=zone)
    found = parse("59 23 6 11 *").next_after(moment)
    assert found is not None
    assert found.astimezone(UTC) == datetime(2010, 11, 7, 3, 29, tzinfo=UTC)


def test_a_leap_day_around_a_year_without_one() -> None:
    assert after("0 0 29 2 *", datetime(2096, 2, 29, tzinfo=UTC)) == "2104-02-29 00:00:00"


@pytest.mark.parametrize(
    ("expression", "word"),
    [
        ("", "0 fields"),
        ("0 2 * *", "4 fields"),
        ("0 2 * * 0 6", "6 fields"),
        ("60 * * * *", "minute"),
        ("-1 * * * *", "minute"),
        ("0 24 * * *", "hour"),
        ("0 0 0 * *", "day of the month"),
        ("0 0 32 * *", "day of the month"),
        ("0 0 * 13 *", "month"),
        ("0 0 * 0 *", "month"),
        ("0 0 * * 8", "day of the week"),
        ("0 0 * * someday", "day of the week"),
        ("0 0 * mon *", "month"),
        ("30-10 * * * *", "minute"),
        ("*/0 * * * *", "minute"),
        ("5/10 * * * *", "minute"),
        ("1,,2 * * * *", "minute"),
        ("1- * * * *", "minute"),
        ("** * * * *", "minute"),
        ("٣ * * * *", "minute"),
        ("0 0 30 2 *", "never"),
        ("0 0 31 4,6,9,11 *", "never"),
        ("@reboot", "1 fields"),
        ("0 seconds", "59"),
        ("60 seconds", "59"),
    ],
)
def test_what_cannot_be_read_is_refused(expression: str, word: str) -> None:
    with pytest.raises(MdistinctError) as caught:
        parse(expression)
    assert caught.value.sqlstate == "22023"
    assert caught.value.hint
    assert word in caught.value.message


def field(least: int, greatest: int) -> st.SearchStrategy[str]:
    numbers = st.integers(least, greatest)
    ranges = st.tuples(numbers, numbers).map(lambda ends: f"{min(ends)}-{max(ends)}")
    steps = st.builds("{}/{}".format, st.just("*") | ranges, st.integers(1, 9))
    return st.just("*") | st.lists(numbers.map(str) | ranges | steps, min_size=1).map(",".join)


EXPRESSIONS = st.tuples(field(0, 59), field(0, 23), field(1, 28), field(1, 12), field(0, 7)).map(
    " ".join
)
MOMENTS = st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))


def matches(expression: str, moment: datetime) -> bool:
    """Whether cron fires in this minute: read off the text, field by field, without a calendar."""
    minute, hour, day, month, weekday = expression.split()
    days = fits(day, moment.day, 1, 31)
    weekdays = any(fits(weekday, number, 0, 7) for number in weekday_numbers(moment))
    if day.startswith("*") or weekday.startswith("*"):
        right_day = days and weekdays
    else:
        right_day = days or weekdays
    return (
        fits(minute, moment.minute, 0, 59)
        and fits(hour, moment.hour, 0, 23)
        and fits(month, moment.month, 1, 12)
        and right_day
    )


def weekday_numbers(moment: datetime) -> tuple[int, ...]:
    return (0, 7) if moment.isoweekday() == 7 else (moment.isoweekday(),)


def fits(text: str, number: int, least: int, greatest: int) -> bool:
    for part in text.split(","):
        span, _, step = part.partition("/")
        low, _, high = (f"{least}-{greatest}" if span == "*" else span).partition("-")
        if int(low) <= number <= int(high or low) and (number - int(low)) % int(step or 1) == 0:
            return True
    return False


@given(EXPRESSIONS, MOMENTS)
def test_the_moment_found_is_one_and_is_later(expression: str, moment: datetime) -> None:
    found = parse(expression).next_after(moment)
    assert found is not None
    assert found > moment
    assert matches(expression, found)


@given(EXPRESSIONS, MOMENTS, st.integers(0, 3 * 24 * 60))
def test_no_moment_is_passed_over(expression: str, moment: datetime, minutes: int) -> None:
    start = moment.replace(second=0, microsecond=0)
    other = start + timedelta(minutes=minutes)
    if other > moment and matches(expression, other):
        found = parse(expression).next_after(moment)
        assert found is not None
        assert found <= other


def test_an_expression_is_a_calendar() -> None:
    assert isinstance(parse("* * * * *"), Calendar)
