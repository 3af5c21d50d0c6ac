"""The limits of a booking: pure judgements, each refusal one sentence with its code."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from reservations.wording import spoken_length, spoken_moment

# A start this little from now counts as now: it may lie in the past and need not be on the grid.
JUST_NOW = dt.timedelta(minutes=1)
_WEEK = dt.timedelta(days=7)


@dataclass(frozen=True, slots=True)
class Limits:
    """What the policy allows; None means no limit. Grid and weeks are those of `zone`."""

    min_length: dt.timedelta
    max_length: dt.timedelta
    horizon: dt.timedelta
    step: dt.timedelta
    max_gpus_at_once: int | None = None
    max_hours_per_week: int | None = None
    short_notice_hours: int | None = None
    zone: dt.tzinfo = dt.UTC


@dataclass(frozen=True, slots=True)
class Booking:
    """A span on a number of GPUs: the one to be judged, or another one of the same owner."""

    starts_at: dt.datetime
    ends_at: dt.datetime
    gpus: int

    @property
    def length(self) -> dt.timedelta:
        return self.ends_at - self.starts_at


@dataclass(frozen=True, slots=True)
class Refusal:
    code: str
    sentence: str


def refuse_span(
    booking: Booking,
    limits: Limits,
    *,
    now: dt.datetime,
    before: Booking | None = None,
    zone: dt.tzinfo = dt.UTC,
) -> Refusal | None:
    """Whether the length or the moments of the span are against the limits.

    `before` is what an existing reservation was: what it keeps is not judged again, and one that
    runs may be cut as short as its owner likes. `zone` is the reader's.
    """
    is_running = before is not None and before.starts_at <= now
    if not is_running:
        if booking.starts_at < now - JUST_NOW:
            return Refusal(
                "in_the_past",
                "A reservation cannot start in the past; the earliest start is now.",
            )
        if booking.length < limits.min_length:
            return Refusal(
                "too_short", f"A reservation lasts at least {spoken_length(limits.min_length)}."
            )
    if before is None or not is_running or booking.ends_at > before.ends_at:
        if booking.length > limits.max_length:
            return Refusal(
                "too_long", f"A reservation lasts at most {spoken_length(limits.max_length)}."
            )
        if booking.ends_at > now + limits.horizon:
            return Refusal(
                "too_far_ahead",
                f"A reservation ends within {spoken_length(limits.horizon)} from now, so by"
                f" {spoken_moment(now + limits.horizon, zone)}.",
            )
    return _refuse_off_grid(booking, limits, now=now, before=before)


def refuse_amount(
    booking: Booking,
    others: Iterable[Booking],
    limits: Limits,
    *,
    now: dt.datetime,
    judged_from: dt.datetime,
) -> Refusal | None:
    """Whether the owner would hold too many GPUs at once, or too many hours in a week.

    `others` are the owner's other standing reservations. The booking is new from `judged_from` on;
    what is new within the next `short_notice_hours` is free of these limits.
    """
    short_notice = dt.timedelta(hours=limits.short_notice_hours or 0)
    if short_notice and judged_from < now + short_notice:
        return None
    others = list(others)
    most = limits.max_gpus_at_once
    if most is not None:
        new = Booking(judged_from, booking.ends_at, booking.gpus)
        held = _gpus_at_once(new, others)
        if held > most:
            return Refusal(
                "too_many_gpus",
                f"One person holds at most {most} GPUs at the same time; this would make {held}.",
            )
    hours = limits.max_hours_per_week
    if hours is not None and _busiest_week(booking, others, limits.zone) > dt.timedelta(
        hours=hours
    ):
        return Refusal(
            "too_many_hours",
            f"One person reserves at most {hours} GPU-hours in a week (hours times GPUs).",
        )
    return None


def next_gap(
    busy: Iterable[tuple[dt.datetime, dt.datetime]], starts_at: dt.datetime, length: dt.timedelta
) -> dt.datetime:
    """The first moment from `starts_at` on at which nothing is busy for the length."""
    candidate = starts_at
    for begin, end in sorted(busy):
        if begin - candidate >= length:
            break
        candidate = max(candidate, end)
    return candidate


def _refuse_off_grid(
    booking: Booking, limits: Limits, *, now: dt.datetime, before: Booking | None
) -> Refusal | None:
    moments = []
    if abs(booking.starts_at - now) > JUST_NOW and (
        before is None or before.starts_at != booking.starts_at
    ):
        moments.append(("start", booking.starts_at))
    if before is None or before.ends_at != booking.ends_at:
        moments.append(("end", booking.ends_at))
    for what, moment in moments:
        local = moment.astimezone(limits.zone)
        midnight = local.replace(hour=0, minute=0, second=0, microsecond=0)
        # Naive, so that the hands of the clock count, not the hours since midnight.
        since = local.replace(tzinfo=None) - midnight.replace(tzinfo=None)
        if past := since % limits.step:
            return Refusal(
                "off_the_step",
                f"The {what} must lie on a step of {spoken_length(limits.step)}, for example"
                f" {spoken_moment(moment - past, limits.zone)}.",
            )
    return None


def _gpus_at_once(booking: Booking, others: list[Booking]) -> int:
    """The most GPUs held at one moment of the booking, itself included."""
    overlapping = [
        other
        for other in others
        if other.starts_at < booking.ends_at and other.ends_at > booking.starts_at
    ]
    moments = [booking.starts_at, *(other.starts_at for other in overlapping)]
    return booking.gpus + max(
        sum(other.gpus for other in overlapping if other.starts_at <= moment < other.ends_at)
        for moment in moments
        if moment >= booking.starts_at
    )


def _busiest_week(booking: Booking, others: list[Booking], zone: dt.tzinfo) -> dt.timedelta:
    """The most GPU-time in any week (from Monday on) that the booking touches."""
    return max(
        sum((_share(one, begin, end) for one in [booking, *others]), dt.timedelta())
        for begin, end in _weeks(booking, zone)
    )


def _weeks(booking: Booking, zone: dt.tzinfo) -> Iterator[tuple[dt.datetime, dt.datetime]]:
    day = booking.starts_at.astimezone(zone).date()
    monday = dt.datetime.combine(day - dt.timedelta(days=day.weekday()), dt.time(), zone)
    while monday < booking.ends_at:
        yield monday.astimezone(dt.UTC), (monday + _WEEK).astimezone(dt.UTC)
        monday += _WEEK  # by the wall clock: a week with a change of clocks is an hour off


def _share(booking: Booking, begin: dt.datetime, end: dt.datetime) -> dt.timedelta:
    inside = min(booking.ends_at, end) - max(booking.starts_at, begin)
    return max(inside, dt.timedelta()) * booking.gpus
