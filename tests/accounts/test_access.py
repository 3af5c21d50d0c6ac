"""The union of grants, compared with a judgement minute by minute."""

from __future__ import annotations

import datetime as dt
import zoneinfo
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accounts.access import Access, Uncovered, WeeklyWindow, uncovered

GPU = "GPU-1"
MINUTE = dt.timedelta(minutes=1)
ALL_DAYS = frozenset(range(7))
# Half-hour zones, one whose clocks move by half an hour, and two with ordinary summer time.
ZONES = ["UTC", "Europe/Warsaw", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe"]


def moment(text: str, zone: str = "UTC") -> dt.datetime:
    return dt.datetime.fromisoformat(text).replace(tzinfo=zoneinfo.ZoneInfo(zone))


def access(starts_at: str = "2026-01-01", ends_at: str | None = None, **fields: Any) -> Access:
    return Access(moment(starts_at), moment(ends_at) if ends_at else None, **fields)


def window(days: Any, begin: str, end: str, zone: str = "Europe/Warsaw") -> WeeklyWindow:
    hours, minutes = map(int, begin.split(":"))
    to_hours, to_minutes = map(int, end.split(":"))
    return WeeklyWindow(frozenset(days), hours * 60 + minutes, to_hours * 60 + to_minutes, zone)


def minute_by_minute(
    grants: list[Access], gpus: list[str], starts_at: dt.datetime, ends_at: dt.datetime
) -> Uncovered | None:
    now = starts_at
    while now < ends_at:
        for gpu in gpus:
            if not any(_holds(grant, gpu, now) for grant in grants):
                return Uncovered(now, gpu)
        now += MINUTE
    return None


def _holds(grant: Access, gpu: str, now: dt.datetime) -> bool:
    if grant.gpus is not None and gpu not in grant.gpus:
        return False
    if now < grant.starts_at or (grant.ends_at is not None and now >= grant.ends_at):
        return False
    return not grant.windows or any(_is_open(one, now) for one in grant.windows)


def _is_open(one: WeeklyWindow, now: dt.datetime) -> bool:
    local = now.astimezone(zoneinfo.ZoneInfo(one.time_zone))
    minute = local.hour * 60 + local.minute
    today, yesterday = local.weekday(), (local.weekday() - 1) % 7
    if one.ends_minute > one.starts_minute:
        return today in one.weekdays and one.starts_minute <= minute < one.ends_minute
    return (today in one.weekdays and minute >= one.starts_minute) or (
        yesterday in one.weekdays and minute < one.ends_minute
    )


windows = st.builds(
    WeeklyWindow,
    weekdays=st.frozensets(st.integers(0, 6), min_size=1),
    starts_minute=st.integers(0, 1439),
    ends_minute=st.integers(1, 1440),
    time_zone=st.sampled_from(ZONES),
).filter(lambda one: one.starts_minute != one.ends_minute)

# Around the nights in which clocks change, and an ordinary week.
days = st.sampled_from(
    [
        dt.datetime(2026, month, day, tzinfo=dt.UTC)
        for month, day in [(3, 7), (3, 28), (4, 4), (6, 13), (10, 3), (10, 24), (10, 31)]
    ]
)
moments = st.builds(lambda day, minutes: day + minutes * MINUTE, days, st.integers(0, 2880))


@st.composite
def grants(draw: st.DrawFn) -> Access:
    begin = draw(moments)
    length = draw(st.none() | st.integers(1, 5000))
    return Access(
        starts_at=begin - dt.timedelta(days=draw(st.integers(0, 2))),
        ends_at=None if length is None else begin + length * MINUTE,
        gpus=draw(st.none() | st.frozensets(st.sampled_from([GPU, "GPU-2"]))),
        windows=tuple(draw(st.lists(windows, max_size=3))),
    )


@settings(deadline=None, max_examples=150)
@given(st.lists(grants(), max_size=4), moments, st.integers(1, 2500))
def test_agrees_with_a_judgement_minute_by_minute(
    given_grants: list[Access], starts_at: dt.datetime, minutes: int
) -> None:
    span = (starts_at, starts_at + minutes * MINUTE)
    gpus = [GPU, "GPU-2"]
    assert uncovered(given_grants, gpus, *span) == minute_by_minute(given_grants, gpus, *span)


def test_grants_that_touch_leave_no_gap() -> None:
    both = [access(ends_at="2026-06-01T12:00"), access("2026-06-01T12:00")]
    assert uncovered(both, [GPU], moment("2026-06-01T10:00"), moment("2026-06-01T14:00")) is None


def test_a_gap_of_one_second_is_found() -> None:
    both = [access(ends_at="2026-06-01T12:00"), access("2026-06-01T12:00:01")]
    gap = uncovered(both, [GPU], moment("2026-06-01T10:00"), moment("2026-06-01T14:00"))
    assert gap == Uncovered(moment("2026-06-01T12:00"), GPU)


@pytest.mark.parametrize(
    ("begin", "end", "gap"),
    [
        ("2026-06-07T22:00", "2026-06-08T06:00", None),
        ("2026-06-07T21:59", "2026-06-08T06:00", "2026-06-07T21:59"),
        ("2026-06-07T22:00", "2026-06-08T06:01", "2026-06-08T06:00"),
    ],
    ids=["fits", "begins before", "ends after"],
)
def test_sunday_night_reaches_into_monday(begin: str, end: str, gap: str | None) -> None:
    night = [access(windows=(window([6], "22:00", "6:00"),))]
    zone = "Europe/Warsaw"
    found = uncovered(night, [GPU], moment(begin, zone), moment(end, zone))
    assert found == (Uncovered(moment(gap, zone), GPU) if gap else None)


def test_whole_days_join_at_midnight() -> None:
    always = [access(windows=(window(ALL_DAYS, "0:00", "24:00"),))]
    assert uncovered(always, [GPU], moment("2026-10-23"), moment("2026-11-02")) is None


def test_the_end_of_a_grant_clips_its_window() -> None:
    clipped = [access(ends_at="2026-06-01T12:30:30", windows=(window(ALL_DAYS, "0:00", "24:00"),))]
    gap = uncovered(clipped, [GPU], moment("2026-06-01T10:00"), moment("2026-06-01T14:00"))
    assert gap == Uncovered(moment("2026-06-01T12:30:30"), GPU)


def test_an_hour_that_does_not_exist_opens_nothing() -> None:
    """In Warsaw 02:00 became 03:00 on 29 March 2026."""
    missing = [access(windows=(window(ALL_DAYS, "2:00", "3:00"),))]
    gap = uncovered(missing, [GPU], moment("2026-03-29T01:00"), moment("2026-03-29T01:30"))
    assert gap == Uncovered(moment("2026-03-29T01:00"), GPU)


def test_nothing_granted_covers_nothing() -> None:
    begin, end = moment("2026-06-01"), moment("2026-06-02")
    assert uncovered([], [GPU], begin, end) == Uncovered(begin, GPU)
    other = [access(gpus=frozenset({"GPU-2"}))]
    assert uncovered(other, ["GPU-2", GPU], begin, end) == Uncovered(begin, GPU)
