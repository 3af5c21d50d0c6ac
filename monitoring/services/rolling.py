"""Rolling raw samples up to minutes and hours, and forgetting what is old.

Everything may run twice or late: a stretch is computed whole from what is there and replaced.
"""

from __future__ import annotations

import datetime as dt
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import Max, Min

from monitoring.answers import SAMPLED
from monitoring.models import HostRollup, HostSample

_BATCH = 500
# Stretches looked at in one run at most: after a stand-still the rest follows a minute later.
_MINUTES_AT_ONCE, _HOURS_AT_ONCE = 60, 48
Summary = list[float]  # [min, mean, max, count]


def roll_up(now: dt.datetime) -> None:
    """Write the minutes and hours that are complete by now and not written yet."""
    roll_minutes(now)
    roll_hours(now)


def roll_minutes(now: dt.datetime) -> int:
    """Complete minutes from raw samples. Returns the number of rows written."""
    raw = HostSample.objects.all()
    span = _span(raw, "taken_at", HostRollup.MINUTE, now, _MINUTES_AT_ONCE)
    if span is None:
        return 0
    numbers: defaultdict[tuple[int, dt.datetime], list[dict[str, Any]]] = defaultdict(list)
    rows = raw.filter(taken_at__gte=span[0], taken_at__lt=span[1])
    for host, taken_at, gpus in rows.values_list("host", "taken_at", "gpus").iterator():
        numbers[host, _floor(taken_at, HostRollup.MINUTE)].append(gpus)
    return _write(HostRollup.MINUTE, {key: summarized(samples) for key, samples in numbers.items()})


def roll_hours(now: dt.datetime) -> int:
    """Complete hours from minutes. Returns the number of rows written."""
    source = HostRollup.objects.filter(seconds=HostRollup.MINUTE)
    span = _span(source, "starts_at", HostRollup.HOUR, now, _HOURS_AT_ONCE)
    if span is None:
        return 0
    minutes: defaultdict[tuple[int, dt.datetime], list[dict[str, Any]]] = defaultdict(list)
    rows = source.filter(starts_at__gte=span[0], starts_at__lt=span[1])
    for host, starts_at, gpus in rows.values_list("host", "starts_at", "gpus").iterator():
        minutes[host, _floor(starts_at, HostRollup.HOUR)].append(gpus)
    return _write(HostRollup.HOUR, {key: combined(parts) for key, parts in minutes.items()})


def summarized(samples: Iterable[dict[str, Sequence[float | None]]]) -> dict[str, Any]:
    """Raw samples of one host in one stretch -> {uuid: {metric: [min, mean, max, count]}}."""
    known: defaultdict[str, defaultdict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for gpus in samples:
        for uuid, numbers in gpus.items():
            for metric, number in zip(SAMPLED, numbers, strict=True):
                if number is not None:
                    known[uuid][metric].append(number)
    return {
        uuid: {
            metric: [min(values), _mean(values), max(values), len(values)]
            for metric, values in metrics.items()
        }
        for uuid, metrics in known.items()
    }


def combined(parts: Iterable[dict[str, dict[str, Summary]]]) -> dict[str, dict[str, Summary]]:
    """Several stretches of one host as one: means are weighted by their counts."""
    found: defaultdict[str, defaultdict[str, list[Summary]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for gpus in parts:
        for uuid, metrics in gpus.items():
            for metric, summary in metrics.items():
                found[uuid][metric].append(summary)
    return {
        uuid: {metric: _combined(summaries) for metric, summaries in metrics.items()}
        for uuid, metrics in found.items()
    }


def prune(now: dt.datetime) -> int:
    """Delete what is older than it is kept, in small batches. Returns how many rows."""
    rows = HostRollup.objects.all()
    return (
        _delete(HostSample.objects.filter(taken_at__lt=now - settings.RAW_SAMPLES_KEPT))
        + _delete(rows.filter(seconds=HostRollup.MINUTE, starts_at__lt=now - settings.MINUTES_KEPT))
        + _delete(rows.filter(seconds=HostRollup.HOUR, starts_at__lt=now - settings.HOURS_KEPT))
    )


def _span(
    source: models.QuerySet[Any], moment: str, seconds: int, now: dt.datetime, most: int
) -> tuple[dt.datetime, dt.datetime] | None:
    """From the last stretch that is written (again, for samples that came late) over the next
    `most` complete ones that have anything. None when there is nothing at all.
    """
    step = dt.timedelta(seconds=seconds)
    written = HostRollup.objects.filter(seconds=seconds).aggregate(last=Max("starts_at"))["last"]
    if written is not None:
        source = source.filter(**{f"{moment}__gte": written + step})
    # After a silence this is far ahead; nothing lies in between.
    ahead = source.aggregate(first=Min(moment))["first"]
    begin = written or ahead
    if begin is None:
        return None
    end = _floor(now, seconds)
    if ahead is not None:
        end = min(end, _floor(ahead, seconds) + most * step)
    return _floor(begin, seconds), end


def _write(seconds: int, found: dict[tuple[int, dt.datetime], dict[str, Any]]) -> int:
    HostRollup.objects.bulk_create(
        [
            HostRollup(host_id=host, seconds=seconds, starts_at=starts_at, gpus=gpus)
            for (host, starts_at), gpus in found.items()
        ],
        batch_size=_BATCH,
        update_conflicts=True,
        unique_fields=["host", "seconds", "starts_at"],
        update_fields=["gpus"],
    )
    return len(found)


def _combined(summaries: Sequence[Summary]) -> Summary:
    count = sum(summary[3] for summary in summaries)
    total = math.fsum(summary[1] * summary[3] for summary in summaries)
    return [
        min(summary[0] for summary in summaries),
        round(total / count, 3),
        max(summary[2] for summary in summaries),
        count,
    ]


def _mean(values: Sequence[float]) -> float:
    return round(math.fsum(values) / len(values), 3)


def _floor(moment: dt.datetime, seconds: int) -> dt.datetime:
    return dt.datetime.fromtimestamp(moment.timestamp() // seconds * seconds, dt.UTC)


def _delete(rows: models.QuerySet[Any]) -> int:
    deleted = 0
    while keys := list(rows.order_by("pk").values_list("pk", flat=True)[:_BATCH]):
        deleted += rows.model._default_manager.filter(pk__in=keys).delete()[0]
    return deleted
