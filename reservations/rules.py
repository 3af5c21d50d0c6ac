"""The limits of a booking: pure judgements, each refusal one sentence with its code."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

# A start this little in the past still counts as now; such a start need not lie on the grid.
JUST_NOW = dt.timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Limits:
    """What the policy allows; None means no limit."""

    min_length: dt.timedelta
    max_length: dt.timedelta
    horizon: dt.timedelta
    step: dt.timedelta
    max_gpus_at_once: int | None = None
    max_hours_per_week: int | None = None
    short_notice_hours: int | None = None


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
    booking: Booking, limits: Limits, *, now: dt.datetime, checks_start: bool = True
) -> Refusal | None:
    """Whether length, moment or grid of the span is against the limits.

    `checks_start` is off for a running reservation, whose start is history.
    """
    if booking.ends_at <= booking.starts_at:
        return Refusal("ends_before_start", "A reservation must end after it starts.")
    if checks_start and booking.starts_at < now - JUST_NOW:
        return Refusal("in_the_past", "A reservation cannot start in the past. Start it now.")
    # A running one may be cut as short as its owner likes.
    if checks_start and booking.length < limits.min_length:
        return Refusal("too_short", f"A reservation lasts at least {spoken(limits.min_length)}.")
    if booking.length > limits.max_length:
        return Refusal("too_long", f"A reservation lasts at most {spoken(limits.max_length)}.")
    if booking.ends_at > now + limits.horizon:
        return Refusal(
            "too_far_ahead", f"A reservation ends within {spoken(limits.horizon)} from now."
        )
    return _refuse_off_grid(booking, limits, now=now, checks_start=checks_start)


def refuse_amount(
    booking: Booking, others: Iterable[Booking], limits: Limits, *, now: dt.datetime
) -> Refusal | None:
    """Whether the owner would hold too many GPUs at once, or too many hours in a week.

    `others` are the owner's other standing reservations. What begins within the next
    `short_notice_hours` is free of these limits.
    """
    free_for_all = dt.timedelta(hours=limits.short_notice_hours or 0)
    if booking.starts_at < now + free_for_all:
        return None
    others = list(others)
    most = limits.max_gpus_at_once
    if most is not None and _gpus_at_once(booking, others) > most:
        return Refusal("too_many_gpus", f"One person holds at most {most} GPUs at the same time.")
    hours = limits.max_hours_per_week
    if hours is not None and _busiest_week(booking, others) > dt.timedelta(hours=hours):
        return Refusal(
            "too_many_hours", f"One person reserves at most {hours} GPU-hours in a week."
        )
    return None


def limits_of(values: Mapping[str, object]) -> Limits:
    """The limits among the fields of a policy."""
    return Limits(**{name: values[name] for name in Limits.__slots__})  # type: ignore[arg-type]


def spoken(length: dt.timedelta) -> str:
    """A length as people say it: 30 minutes, 8 days, 1 day 12 hours."""
    minutes = int(length.total_seconds()) // 60
    parts = [(minutes // 1440, "day"), (minutes // 60 % 24, "hour"), (minutes % 60, "minute")]
    words = [f"{number} {unit}{'s' if number > 1 else ''}" for number, unit in parts if number]
    return " ".join(words) or f"{length.total_seconds():.0f} seconds"


def _refuse_off_grid(
    booking: Booking, limits: Limits, *, now: dt.datetime, checks_start: bool
) -> Refusal | None:
    moments = [("end", booking.ends_at)]
    if checks_start and abs(booking.starts_at - now) > JUST_NOW:
        moments.insert(0, ("start", booking.starts_at))
    for what, moment in moments:
        seconds = moment.timestamp() % limits.step.total_seconds()
        # A booking that starts right now keeps a round length, so its end may be as odd.
        is_relative = what == "end" and abs(booking.starts_at - now) <= JUST_NOW
        if seconds and not is_relative:
            return Refusal(
                "off_the_step",
                f"The {what} must lie on a step of {spoken(limits.step)}, for example"
                f" {_on_grid(moment, limits.step):%H:%M} UTC.",
            )
    return None


def _on_grid(moment: dt.datetime, step: dt.timedelta) -> dt.datetime:
    seconds = step.total_seconds()
    return dt.datetime.fromtimestamp(round(moment.timestamp() / seconds) * seconds, dt.UTC)


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
    )


def _busiest_week(booking: Booking, others: list[Booking]) -> dt.timedelta:
    """The most GPU-time in any week (Monday, UTC) that the booking touches."""
    week = dt.timedelta(days=7)
    first = booking.starts_at.astimezone(dt.UTC)
    monday = dt.datetime.combine(
        first.date() - dt.timedelta(days=first.weekday()), dt.time(), dt.UTC
    )
    most = dt.timedelta()
    while monday < booking.ends_at:
        shares = (_share(one, monday, monday + week) for one in [booking, *others])
        most = max(most, sum(shares, dt.timedelta()))
        monday += week
    return most


def _share(booking: Booking, begin: dt.datetime, end: dt.datetime) -> dt.timedelta:
    inside = min(booking.ends_at, end) - max(booking.starts_at, begin)
    return max(inside, dt.timedelta()) * booking.gpus
