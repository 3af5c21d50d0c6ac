"""Who may use which GPUs when: a pure judgement on plain values.

Weekly windows mean wall-clock hours in their own zone: on the night in which an hour repeats a
window may hold twice, on the night in which one is missing not at all.
"""

from __future__ import annotations

import datetime as dt
import zoneinfo
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

_HALF_DAY = dt.timedelta(hours=12)


@dataclass(frozen=True, slots=True)
class WeeklyWindow:
    """Hours of some weekdays (0 is Monday), as minutes since midnight in a named zone.

    An end at or before the start lies on the next day; 1440 is 24:00.
    """

    weekdays: frozenset[int]
    starts_minute: int
    ends_minute: int
    time_zone: str


@dataclass(frozen=True, slots=True)
class Access:
    """One grant as seen by one person: GPUs (None: all), a period, and windows (none: always)."""

    starts_at: dt.datetime
    ends_at: dt.datetime | None = None
    gpus: frozenset[str] | None = None
    windows: tuple[WeeklyWindow, ...] = ()


@dataclass(frozen=True, slots=True)
class Uncovered:
    """The first moment that no grant covers, and the GPU it is about."""

    moment: dt.datetime
    gpu: str


def uncovered(
    grants: Iterable[Access], gpus: Sequence[str], starts_at: dt.datetime, ends_at: dt.datetime
) -> Uncovered | None:
    """The earliest gap in [starts_at, ends_at) over all the GPUs; None when all is covered.

    Spans are half-open and joined: grants and windows that touch leave no gap. Among GPUs with the
    same first gap the first given counts.
    """
    grants = list(grants)
    gaps = [
        Uncovered(moment, gpu)
        for gpu in gpus
        if (moment := _first_gap(_spans(grants, gpu, starts_at, ends_at), starts_at, ends_at))
    ]
    return min(gaps, key=lambda gap: gap.moment, default=None)


def _first_gap(
    spans: Iterable[tuple[dt.datetime, dt.datetime]], starts_at: dt.datetime, ends_at: dt.datetime
) -> dt.datetime | None:
    reached = starts_at
    for begin, end in sorted(spans):
        if begin > reached:
            break
        reached = max(reached, end)
    return reached if reached < ends_at else None


def _spans(
    grants: Iterable[Access], gpu: str, starts_at: dt.datetime, ends_at: dt.datetime
) -> Iterator[tuple[dt.datetime, dt.datetime]]:
    for grant in grants:
        if grant.gpus is not None and gpu not in grant.gpus:
            continue
        begin = max(grant.starts_at, starts_at)
        end = ends_at if grant.ends_at is None else min(grant.ends_at, ends_at)
        if begin >= end:
            continue
        if not grant.windows:
            yield begin, end
        for window in grant.windows:
            yield from _window_spans(window, begin, end)


def _window_spans(
    window: WeeklyWindow, starts_at: dt.datetime, ends_at: dt.datetime
) -> Iterator[tuple[dt.datetime, dt.datetime]]:
    """The spans of a weekly window within [starts_at, ends_at)."""
    zone = zoneinfo.ZoneInfo(window.time_zone)
    length = window.ends_minute - window.starts_minute
    if length <= 0:
        length += 1440
    for begin, end, offset in _same_offset(zone, starts_at, ends_at):
        # Within one offset the wall clock runs evenly, so plain arithmetic is exact.
        first = (begin + offset).date() - dt.timedelta(days=1)
        for number in range(((end + offset).date() - first).days + 1):
            day = first + dt.timedelta(days=number)
            if day.weekday() not in window.weekdays:
                continue
            midnight = dt.datetime.combine(day, dt.time(), dt.UTC) - offset
            opens = midnight + dt.timedelta(minutes=window.starts_minute)
            closes = opens + dt.timedelta(minutes=length)
            if opens < end and closes > begin:
                yield max(opens, begin), min(closes, end)


def _same_offset(
    zone: zoneinfo.ZoneInfo, starts_at: dt.datetime, ends_at: dt.datetime
) -> Iterator[tuple[dt.datetime, dt.datetime, dt.timedelta]]:
    """Cut [starts_at, ends_at) where the zone's offset from UTC changes."""
    begin = starts_at.astimezone(dt.UTC)
    end = ends_at.astimezone(dt.UTC)
    while begin < end:
        offset = _offset(zone, begin)
        until = begin
        while until < end:
            ahead = min(until + _HALF_DAY, end)
            if _offset(zone, ahead) != offset:
                until = _change_between(zone, until, ahead)
                break
            until = ahead
        yield begin, until, offset
        begin = until


def _change_between(zone: zoneinfo.ZoneInfo, low: dt.datetime, high: dt.datetime) -> dt.datetime:
    """The second in (low, high] at which the offset is that of `high`."""
    before = _offset(zone, low)
    while high - low > dt.timedelta(seconds=1):
        middle = low + (high - low) / 2
        if _offset(zone, middle) == before:
            low = middle
        else:
            high = middle
    return high.replace(microsecond=0)


def _offset(zone: zoneinfo.ZoneInfo, moment: dt.datetime) -> dt.timedelta:
    return moment.astimezone(zone).utcoffset() or dt.timedelta()
