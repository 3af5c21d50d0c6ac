"""Samples over time as points for charts and the API. Pure."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

MAX_POINTS = 2000
# Place of each metric in HostSample.gpus, and its unit.
METRICS = {
    "utilization_percent": (0, "percent"),
    "memory_used_mib": (1, "MiB"),
    "memory_utilization_percent": (2, "percent"),
    "temperature_celsius": (3, "celsius"),
    "power_watts": (4, "watts"),
    "fan_percent": (5, "percent"),
}
_RAW_SPAN = dt.timedelta(hours=6)
_MINUTES_SPAN = dt.timedelta(days=2)
Reading = tuple[dt.datetime, float | None]


@dataclass(frozen=True, slots=True)
class Point:
    """The values of one stretch of time from `at` on; all None where nothing is known."""

    at: dt.datetime
    minimum: float | None = None
    mean: float | None = None
    maximum: float | None = None


@dataclass(frozen=True, slots=True)
class Series:
    resolution_seconds: float
    points: tuple[Point, ...]


def series_of(
    readings: Sequence[Reading], *, interval: dt.timedelta, limit: int = MAX_POINTS
) -> Series:
    """Points in order of time, averaged down to about `limit`, with an empty one for each gap.

    readings are in order of time. Silence of more than three intervals is a gap.
    """
    if not readings:
        return Series(interval.total_seconds(), ())
    span = readings[-1][0] - readings[0][0]
    step = interval
    if len(readings) > limit:
        step = interval * max(math.ceil(span / interval / limit), 1)
        points = _averaged(readings, step)
    else:
        points = [Point(at, value, value, value) for at, value in readings]
    return Series(step.total_seconds(), tuple(_with_gaps(points, max(3 * interval, 2 * step))))


def series_of_points(
    points: Sequence[Point], *, step: dt.timedelta, limit: int = MAX_POINTS
) -> Series:
    """As series_of, from points that are stretches already, each `step` long.

    The mean of several stretches is the mean of their means.
    """
    if len(points) > limit:
        start, width = points[0].at, step * math.ceil(len(points) / limit)
        points = [
            _joined(start + number * width, list(group))
            for number, group in groupby(points, key=lambda point: (point.at - start) // width)
        ]
        step = width
    return Series(step.total_seconds(), tuple(_with_gaps(points, 2 * step)))


def best_resolution(
    start: dt.datetime,
    end: dt.datetime,
    *,
    now: dt.datetime,
    raw_kept: dt.timedelta,
    minutes_kept: dt.timedelta,
) -> int | None:
    """In what the span is read: None the raw samples, else stretches of 60 or 3600 seconds.

    The finest that still reaches back to the start and does not give needlessly many points.
    """
    if end - start <= _RAW_SPAN and now - start <= raw_kept:
        return None
    if end - start <= _MINUTES_SPAN and now - start <= minutes_kept:
        return 60
    return 3600


def _joined(at: dt.datetime, points: Sequence[Point]) -> Point:
    known = [point for point in points if point.mean is not None]
    if not known:
        return Point(at)
    return Point(
        at,
        min(point.minimum for point in known if point.minimum is not None),
        round(math.fsum(point.mean for point in known if point.mean is not None) / len(known), 3),
        max(point.maximum for point in known if point.maximum is not None),
    )


def _averaged(readings: Sequence[Reading], step: dt.timedelta) -> list[Point]:
    start = readings[0][0]
    return [
        _averaged_point(start + number * step, [value for _, value in group])
        for number, group in groupby(readings, key=lambda reading: (reading[0] - start) // step)
    ]


def _averaged_point(at: dt.datetime, values: Iterable[float | None]) -> Point:
    known = [value for value in values if value is not None]
    if not known:
        return Point(at)
    return Point(at, min(known), round(math.fsum(known) / len(known), 3), max(known))


def _with_gaps(points: Iterable[Point], silence: dt.timedelta) -> Iterable[Point]:
    """The points, and after the last one before each silence an empty one."""
    before: Point | None = None
    for point in points:
        if before is not None and point.at - before.at > silence:
            yield Point(before.at + silence / 3)
        yield point
        before = point
