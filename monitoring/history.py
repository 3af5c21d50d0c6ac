"""Reads stored history: raw samples for hours, minutes and hours for what is longer ago."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any

from django.conf import settings
from django.db.models import QuerySet
from django.db.models.fields.json import KeyTransform
from django.utils import timezone

from monitoring.models import Gpu, Host, HostRollup, HostSample
from monitoring.series import (
    METRICS,
    Point,
    Reading,
    Series,
    best_resolution,
    series_of,
    series_of_points,
)


def gpu_series(gpu: Gpu, *, metric: str, start: dt.datetime, end: dt.datetime) -> Series:
    """One metric of the GPU in [start, end); `gpu` must come with its host."""
    seconds = _resolution(start, end)
    if seconds is not None:
        rolled = _rollups(gpu.host, seconds, start, end).annotate(
            numbers=KeyTransform(gpu.uuid, "gpus")
        )
        rows = [
            (at, {gpu.uuid: numbers}) for at, numbers in rolled.values_list("starts_at", "numbers")
        ]
        return _rolled_series(rows, gpu.uuid, metric, seconds)
    place, _unit = METRICS[metric]
    raw = (
        _samples(gpu.host, start, end)
        .annotate(numbers=KeyTransform(gpu.uuid, "gpus"))
        .values_list("taken_at", "numbers")
    )
    readings: list[Reading] = [(at, numbers[place] if numbers else None) for at, numbers in raw]
    return series_of(readings, interval=gpu.host.current_interval)


def host_series(
    host: Host, uuids: list[str], *, metric: str, start: dt.datetime, end: dt.datetime
) -> list[Series]:
    """One metric of several GPUs of the host in [start, end), in the given order: one query."""
    seconds = _resolution(start, end)
    if seconds is not None:
        rolled = list(_rollups(host, seconds, start, end).values_list("starts_at", "gpus"))
        return [_rolled_series(rolled, uuid, metric, seconds) for uuid in uuids]
    place, _unit = METRICS[metric]
    rows = list(_samples(host, start, end).values_list("taken_at", "gpus"))
    return [
        series_of(
            [(at, gpus[uuid][place] if gpus.get(uuid) else None) for at, gpus in rows],
            interval=host.current_interval,
        )
        for uuid in uuids
    ]


def _resolution(start: dt.datetime, end: dt.datetime) -> int | None:
    return best_resolution(
        start,
        end,
        now=timezone.now(),
        raw_kept=settings.RAW_SAMPLES_KEPT,
        minutes_kept=settings.MINUTES_KEPT,
    )


def _rolled_series(
    rows: Sequence[tuple[dt.datetime, Mapping[str, Any]]], uuid: str, metric: str, seconds: int
) -> Series:
    points = [_rolled_point(at, (gpus.get(uuid) or {}).get(metric)) for at, gpus in rows]
    return series_of_points(points, step=dt.timedelta(seconds=seconds))


def _rolled_point(at: dt.datetime, summary: Sequence[float] | None) -> Point:
    return Point(at) if summary is None else Point(at, *summary[:3])


def _rollups(
    host: Host, seconds: int, start: dt.datetime, end: dt.datetime
) -> QuerySet[HostRollup]:
    return HostRollup.objects.filter(
        host=host, seconds=seconds, starts_at__gte=start, starts_at__lt=end
    ).order_by("starts_at")


def _samples(host: Host, start: dt.datetime, end: dt.datetime) -> QuerySet[HostSample]:
    return HostSample.objects.filter(host=host, taken_at__gte=start, taken_at__lt=end).order_by(
        "taken_at"
    )
