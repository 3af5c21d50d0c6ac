"""Reads stored samples."""

from __future__ import annotations

import datetime as dt

from django.db.models.fields.json import KeyTransform

from monitoring.models import Gpu, Host, HostSample
from monitoring.series import METRICS, Reading, Series, series_of


def gpu_series(gpu: Gpu, *, metric: str, start: dt.datetime, end: dt.datetime) -> Series:
    """One metric of the GPU in [start, end); `gpu` must come with its host."""
    place, _unit = METRICS[metric]
    rows = (
        _samples(gpu.host, start, end)
        .annotate(numbers=KeyTransform(gpu.uuid, "gpus"))
        .values_list("taken_at", "numbers")
    )
    readings: list[Reading] = [(at, numbers[place] if numbers else None) for at, numbers in rows]
    return series_of(readings, interval=gpu.host.current_interval)


def host_series(
    host: Host, uuids: list[str], *, metric: str, start: dt.datetime, end: dt.datetime
) -> list[Series]:
    """One metric of several GPUs of the host in [start, end), in the given order: one query."""
    place, _unit = METRICS[metric]
    rows = list(_samples(host, start, end).values_list("taken_at", "gpus"))
    return [
        series_of(
            [(at, gpus[uuid][place] if gpus.get(uuid) else None) for at, gpus in rows],
            interval=host.current_interval,
        )
        for uuid in uuids
    ]


def _samples(host: Host, start: dt.datetime, end: dt.datetime):  # type: ignore[no-untyped-def]
    return HostSample.objects.filter(host=host, taken_at__gte=start, taken_at__lt=end).order_by(
        "taken_at"
    )
