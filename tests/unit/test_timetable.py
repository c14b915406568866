"""Planned times: cron lines where clocks are changed, intervals, and what people write."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.timetable import (
    LONGEST,
    Timing,
    cron_fault,
    duration_text,
    first_after,
    last_until,
    moment_text,
    read_duration,
    read_moment,
    timing_text,
)

BERLIN = ZoneInfo("Europe/Berlin")
DAY = 86_400.0
LINES = (
    "30 2 * * *",
    "0 8 * * mon-fri",
    "*/7 * * * *",
    "0 * * * *",
    "*/30 2 * * *",
    "0 0 29 2 *",
    "15 2,3 * * sun",
)


def at(*when: int, fold: int = 0) -> float:
    return datetime(*when, tzinfo=BERLIN, fold=fold).timestamp()  # type: ignore[arg-type, misc]


def planned(line: str, start: float, count: int) -> list[str]:
    """The next times on the clocks of Berlin, with their offset."""
    timing, found = Timing(cron=line, zone="Europe/Berlin"), list[str]()
    for _ in range(count):
        following = first_after(timing, start)
        assert following is not None and following > start
        start = following
        found.append(datetime.fromtimestamp(start, BERLIN).isoformat(timespec="minutes")[5:])
    return found


def test_a_time_in_the_hour_that_is_skipped_comes_right_after_it_once() -> None:
    assert planned("30 2 * * *", at(2026, 3, 28, 12), 2) == ["03-29T03:00+02:00", "03-30T02:30+02:00"]


def test_two_times_that_fall_together_in_march_are_one() -> None:
    assert planned("0 2,3 * * *", at(2026, 3, 28, 12), 3) == [
        "03-29T03:00+02:00",
        "03-30T02:00+02:00",
        "03-30T03:00+02:00",
    ]


def test_a_time_in_the_hour_that_comes_twice_comes_the_first_time_only() -> None:
    assert planned("30 2 * * *", at(2026, 10, 24, 12), 2) == ["10-25T02:30+02:00", "10-26T02:30+01:00"]
    # Also for somebody who looks in the second of the two hours.
    assert planned("30 2 * * *", at(2026, 10, 25, 2, 10, fold=1), 1) == ["10-26T02:30+01:00"]


def test_every_hour_goes_on_as_time_does() -> None:
    assert planned("0 * * * *", at(2026, 3, 29, 0, 30), 3) == [
        "03-29T01:00+01:00",
        "03-29T03:00+02:00",
        "03-29T04:00+02:00",
    ]
    assert planned("0 * * * *", at(2026, 10, 25, 1, 30), 3) == [
        "10-25T02:00+02:00",
        "10-25T02:00+01:00",
        "10-25T03:00+01:00",
    ]


def test_the_time_of_day_stays_and_an_interval_does_not_look_at_clocks() -> None:
    days = planned("0 8 * * *", at(2026, 3, 27, 12), 3)
    assert [day[6:11] for day in days] == ["08:00"] * 3
    interval = Timing(every=DAY, since=at(2026, 3, 28, 8), zone="Europe/Berlin")
    assert first_after(interval, at(2026, 3, 28, 9)) == at(2026, 3, 29, 9)


def test_an_interval_is_counted_from_its_beginning_whenever_it_is_looked_at() -> None:
    timing = Timing(every=100, since=1_000)
    assert [first_after(timing, moment) for moment in (0, 1_000, 1_099.9, 1_100, 1_234)] == [
        1_100,
        1_100,
        1_100,
        1_200,
        1_300,
    ]


def test_once_is_once() -> None:
    timing = Timing(at=1_000)
    assert first_after(timing, 999) == 1_000
    assert first_after(timing, 1_000) is None
    assert last_until(timing, 1_000, 5_000) == 1_000


@given(
    line=st.sampled_from(LINES),
    start=st.integers(1_600_000_000, 1_900_000_000),
    ahead=st.integers(0, int(3 * LONGEST)),
)
def test_the_last_time_is_a_planned_one_and_none_lies_between_it_and_now(
    line: str, start: int, ahead: int
) -> None:
    timing = Timing(cron=line, zone="Europe/Berlin")
    due = first_after(timing, start)
    assert due is not None
    now = due + ahead
    last = last_until(timing, due, now)
    assert due <= last <= now
    following = first_after(timing, last)
    assert following is not None and following > now
    # It is one of those that come one from another.
    before = first_after(timing, max(due - 1, last - 1))
    assert before == last


@given(every=st.integers(60, 10**7), since=st.integers(0, 2 * 10**9), now=st.integers(0, 2 * 10**9))
def test_the_same_holds_for_intervals(every: int, since: int, now: int) -> None:
    timing = Timing(every=every, since=since)
    due = first_after(timing, since)
    assert due == since + every
    now = max(now, int(due))
    last = last_until(timing, due, now)
    following = first_after(timing, now)
    assert last <= now and following is not None
    assert now < following == last + every


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("* * * *", "five fields"),
        ("0 0 * * * *", "five fields"),
        ("@daily", "five fields"),
        ("61 * * * *", "bad minute"),
        ("0 0 * * moon", "bad day-of-week"),
        ("0 0 31 2 *", "bad day-of-month"),
        ("* * */20 2 1L", "never comes"),
    ],
)
def test_a_line_that_means_nothing_is_told_from_one_that_does(line: str, fault: str) -> None:
    assert fault in cron_fault(line)


@pytest.mark.parametrize("line", LINES)
def test_a_line_that_means_something_has_no_fault(line: str) -> None:
    assert cron_fault(line) == ""


def test_how_often_is_said_in_words() -> None:
    weekdays = Timing(cron="0 8 * * mon-fri", zone="Europe/Berlin")
    assert timing_text(weekdays) == "at 08:00 on Monday through Friday (Europe/Berlin)"
    assert timing_text(Timing(every=5_400)) == "every 1h30m"
    assert timing_text(Timing(at=0)) == "once"
    assert moment_text(at(2026, 3, 31, 8, 30), "Europe/Berlin") == "Tue 2026-03-31 08:30 Europe/Berlin"
    assert moment_text(0, "") == "Thu 1970-01-01 00:00 UTC"


@given(seconds=st.integers(1, 10**8))
def test_a_duration_is_read_as_it_is_written(seconds: int) -> None:
    assert read_duration(duration_text(float(seconds))) == seconds


@pytest.mark.parametrize("text", ["", "2", "2 hours", "h2", "1h and 2m", "-3h", "1e3s", "٣h"])
def test_what_is_no_duration_is_none(text: str) -> None:
    assert read_duration(text) is None


def test_a_moment_is_read_on_the_clocks_of_its_place() -> None:
    now = at(2026, 3, 31, 9)
    assert read_moment("2026-04-01 08:30", "Europe/Berlin", now) == at(2026, 4, 1, 8, 30)
    assert read_moment("2026-04-01T08:30+00:00", "Europe/Berlin", now) == at(2026, 4, 1, 10, 30)
    assert read_moment("2026-04-01T08:30Z", "", now) == datetime(2026, 4, 1, 8, 30, tzinfo=UTC).timestamp()


def test_a_time_of_the_day_is_the_next_one() -> None:
    now = at(2026, 3, 31, 9)
    assert read_moment("9:30", "Europe/Berlin", now) == at(2026, 3, 31, 9, 30)
    assert read_moment("08:30", "Europe/Berlin", now) == at(2026, 4, 1, 8, 30)
    assert read_moment("09:00", "Europe/Berlin", now) == at(2026, 4, 1, 9)


@pytest.mark.parametrize("text", ["", "tomorrow", "2026-03-31", "24:00", "2026-13-01 08:00", "8"])
def test_what_is_no_moment_is_none(text: str) -> None:
    assert read_moment(text, "", 0) is None
