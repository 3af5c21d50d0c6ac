"""How lengths and moments are said to people, and how lengths are written for programs."""

from __future__ import annotations

import datetime as dt


def spoken_length(length: dt.timedelta) -> str:
    """As people say it: 30 minutes, 8 days, 1 day 12 hours."""
    parts = [(number, unit) for number, unit in zip(_parts(length), _UNITS, strict=True) if number]
    return " ".join(f"{number} {unit}{'' if number == 1 else 's'}" for number, unit in parts)


def spoken_moment(moment: dt.datetime, zone: dt.tzinfo) -> str:
    """With weekday and zone: Mon 1 Jun 2026 14:00 CEST."""
    local = moment.astimezone(zone)
    return f"{local:%a} {local.day} {local:%b %Y %H:%M %Z}"


def iso_duration(length: dt.timedelta) -> str:
    """ISO 8601, as short as it goes: PT30M, P8D, P1DT12H."""
    days, *clock = _parts(length)
    time = "".join(f"{number}{unit}" for number, unit in zip(clock, "HMS", strict=True) if number)
    date = f"{days}D" if days else ""
    if not date:
        return f"PT{time or '0S'}"
    return f"P{date}T{time}" if time else f"P{date}"


_UNITS = ("day", "hour", "minute", "second")


def _parts(length: dt.timedelta) -> tuple[int, int, int, int]:
    """Days, hours, minutes, whole seconds of a length that is not negative."""
    minutes, seconds = divmod(length.seconds, 60)
    return length.days, minutes // 60, minutes % 60, seconds
