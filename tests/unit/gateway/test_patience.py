"""Quiet hours and the moments that follow from them, around the clock and around its changes."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.patience import DAY, Escalation, Quiet, after_quiet, due_times, is_quiet, is_zone

ZONES = ("", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "Pacific/Apia")
NIGHT = Quiet(start=22 * 60, end=7 * 60, zone="Europe/Berlin")
MOST_CHANGED = 3600.0  # seconds by which clocks are put back or forward in one night

minutes = st.integers(0, DAY - 1)
moments = st.floats(946_684_800, 2_524_608_000)  # 2000 to 2050
quiets = st.builds(
    lambda start, length, zone: Quiet(start=start, end=(start + length) % DAY, zone=zone),
    minutes,
    st.integers(1, DAY - 1),
    st.sampled_from(ZONES),
)


def at(text: str, zone: str = "Europe/Berlin", fold: int = 0) -> float:
    """Unix seconds of a local time."""
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone), fold=fold).timestamp()


def length(quiet: Quiet) -> float:
    return 60.0 * ((quiet.end - quiet.start) % DAY)


@given(quiets, moments)
def test_nothing_comes_in_quiet_hours_nor_too_early_nor_more_than_one_span_later(
    quiet: Quiet, moment: float
) -> None:
    moved = after_quiet(quiet, moment)
    assert not is_quiet(quiet, moved)
    assert moved >= moment
    assert moved - moment <= length(quiet) + MOST_CHANGED
    assert after_quiet(quiet, moved) == moved


@given(quiets, moments)
def test_what_is_not_in_quiet_hours_is_not_moved(quiet: Quiet, moment: float) -> None:
    assert is_quiet(quiet, moment) or after_quiet(quiet, moment) == moment


@given(quiets, moments)
def test_what_is_put_off_comes_as_soon_as_it_may(quiet: Quiet, moment: float) -> None:
    moved = after_quiet(quiet, moment)
    assert moved == moment or is_quiet(quiet, moved - 60)


@pytest.mark.parametrize(
    ("asked", "moved"),
    [
        ("2025-06-15T21:59", "2025-06-15T21:59"),
        ("2025-06-15T22:00", "2025-06-16T07:00"),
        ("2025-06-16T06:59", "2025-06-16T07:00"),
        ("2025-06-16T07:00", "2025-06-16T07:00"),
        ("2025-03-29T23:00", "2025-03-30T07:00"),  # one hour less
        ("2025-10-25T23:00", "2025-10-26T07:00"),  # one hour more
    ],
)
def test_a_night_ends_in_the_morning_of_the_place(asked: str, moved: str) -> None:
    assert after_quiet(NIGHT, at(asked)) == at(moved)


def test_an_end_that_the_clocks_leap_over_is_the_leap() -> None:
    quiet = Quiet(start=60, end=150, zone="Europe/Berlin")  # 01:00 to 02:30, which this night does not have
    assert after_quiet(quiet, at("2025-03-30T01:30")) == at("2025-03-30T03:00")


def test_an_end_that_comes_twice_is_the_first_and_the_hour_in_between_is_quiet_again() -> None:
    quiet = Quiet(start=60, end=150, zone="Europe/Berlin")
    assert after_quiet(quiet, at("2025-10-26T01:30")) == at("2025-10-26T02:30", fold=0)
    assert after_quiet(quiet, at("2025-10-26T02:10", fold=1)) == at("2025-10-26T02:30", fold=1)


def test_without_a_zone_the_clock_is_utc_and_so_it_is_for_one_that_is_not_known_here() -> None:
    noon = datetime(2025, 6, 15, 12, tzinfo=UTC).timestamp()
    for zone in ("", "UTC", "Mars/Olympus", "../x"):
        assert after_quiet(Quiet(start=720, end=780, zone=zone), noon) == noon + 3600
        assert is_zone(zone) == (zone in ("", "UTC"))


def test_every_step_has_its_moment_and_none_comes_after_the_end() -> None:
    night = at("2025-06-15T21:00")
    step = Escalation(after=7200.0, approvers=("slack:T1:U2",))
    morning = at("2025-06-16T07:00")
    # Both reminders of the night are one.
    assert due_times((1800.0, 3600.0, 7200.0), step, NIGHT, night) == [
        ("remind", night + 1800),
        ("remind", morning),
        ("escalate", morning),
    ]
    assert due_times((60.0, 600.0), step, None, night, night + 600) == [("remind", night + 60)]
    assert due_times((), None, NIGHT, night) == []


def test_quiet_hours_are_shown_as_they_are_written() -> None:
    assert str(NIGHT) == "22:00-07:00 Europe/Berlin"
    assert str(Quiet(start=0, end=61)) == "00:00-01:01 UTC"
