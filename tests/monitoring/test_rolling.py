"""History in minutes and hours: computed whole, repeatable, read at the right resolution."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
import time_machine
from hypothesis import given
from hypothesis import strategies as st

from monitoring.history import gpu_series, host_series
from monitoring.models import Gpu, HostRollup, HostSample
from monitoring.series import Point, best_resolution, series_of_points
from monitoring.services import rolling
from tests import make

HOUR, MINUTE = dt.timedelta(hours=1), dt.timedelta(minutes=1)
NOON = dt.datetime(2026, 6, 1, 12, tzinfo=dt.UTC)


@pytest.fixture
def gpu(db: None) -> Gpu:
    return make.gpu(make.host("gpu01"))


def sample(gpu: Gpu, at: dt.datetime, utilization: float | None) -> None:
    numbers = [utilization, 1000, None, 40.0, 100.0, None]
    HostSample.objects.create(host=gpu.host, taken_at=at, gpus={gpu.uuid: numbers})


def rolled(gpu: Gpu, seconds: int) -> list[tuple[dt.datetime, Any]]:
    rows = HostRollup.objects.filter(seconds=seconds).order_by("starts_at")
    return [(row.starts_at, row.gpus.get(gpu.uuid, {}).get("utilization_percent")) for row in rows]


def test_a_complete_minute_has_least_mean_and_greatest(gpu: Gpu) -> None:
    for second, value in ((0, 10.0), (20, 30.0), (40, 80.0), (60, 99.0)):
        sample(gpu, NOON + dt.timedelta(seconds=second), value)
    rolling.roll_up(NOON + dt.timedelta(seconds=90))
    assert rolled(gpu, 60) == [(NOON, [10.0, 40.0, 80.0, 3])]


def test_what_was_never_known_is_missing_not_zero(gpu: Gpu) -> None:
    sample(gpu, NOON, None)
    rolling.roll_up(NOON + MINUTE)
    row = HostRollup.objects.get()
    assert set(row.gpus[gpu.uuid]) == {"memory_used_mib", "temperature_celsius", "power_watts"}


def test_rolling_up_twice_changes_nothing_and_takes_late_samples(gpu: Gpu) -> None:
    sample(gpu, NOON, 10.0)
    rolling.roll_up(NOON + MINUTE)
    rolling.roll_up(NOON + MINUTE)
    sample(gpu, NOON + dt.timedelta(seconds=55), 20.0)
    rolling.roll_up(NOON + MINUTE)
    assert rolled(gpu, 60) == [(NOON, [10.0, 15.0, 20.0, 2])]


def test_an_hour_weights_its_minutes(gpu: Gpu) -> None:
    for second in range(0, 60, 10):
        sample(gpu, NOON + dt.timedelta(seconds=second), 60.0)
    sample(gpu, NOON + MINUTE, 0.0)
    with time_machine.travel(NOON + HOUR):
        rolling.roll_up(NOON + HOUR)
    ((at, summary),) = rolled(gpu, 3600)
    assert (at, summary) == (NOON, [0.0, pytest.approx(51.429), 60.0, 7])


def test_a_long_standstill_is_caught_up_step_by_step(gpu: Gpu) -> None:
    for minute in range(150):
        sample(gpu, NOON + minute * MINUTE, float(minute))
    for _ in range(4):
        rolling.roll_up(NOON + 150 * MINUTE)
    assert len(rolled(gpu, 60)) == 150
    assert len(rolled(gpu, 3600)) == 2


def test_a_gap_is_stepped_over(gpu: Gpu) -> None:
    sample(gpu, NOON, 10.0)
    rolling.roll_up(NOON + MINUTE)
    later = NOON + 500 * MINUTE
    sample(gpu, later, 20.0)
    for _ in range(12):
        rolling.roll_up(later + MINUTE)
    assert [at for at, _ in rolled(gpu, 60)] == [NOON, later]


def test_what_is_old_is_forgotten_each_in_its_time(gpu: Gpu) -> None:
    for age, seconds in ((6, 60), (8, 60), (300, 3600), (400, 3600)):
        starts_at = NOON - dt.timedelta(days=age)
        HostRollup.objects.create(host=gpu.host, seconds=seconds, starts_at=starts_at, gpus={})
    sample(gpu, NOON - 5 * HOUR, 1.0)
    sample(gpu, NOON - 7 * HOUR, 1.0)
    assert rolling.prune(NOON) == 3
    assert HostSample.objects.count() == 1
    assert {row.seconds for row in HostRollup.objects.all()} == {60, 3600}


@pytest.mark.parametrize(
    ("length", "ago", "seconds"),
    [
        (HOUR, HOUR, None),
        (6 * HOUR, 6 * HOUR, None),
        (HOUR, 8 * HOUR, 60),
        (24 * HOUR, 24 * HOUR, 60),
        (7 * 24 * HOUR, 7 * 24 * HOUR, 3600),
        (HOUR, 20 * 24 * HOUR, 3600),
        (90 * 24 * HOUR, 90 * 24 * HOUR, 3600),
    ],
    ids=["an hour", "six hours", "this morning", "a day", "a week", "weeks ago", "90 days"],
)
def test_the_resolution_follows_span_and_age(
    length: dt.timedelta, ago: dt.timedelta, seconds: int | None
) -> None:
    start = NOON - ago
    found = best_resolution(
        start,
        start + length,
        now=NOON,
        raw_kept=dt.timedelta(hours=6),
        minutes_kept=dt.timedelta(days=7),
    )
    assert found == seconds


@time_machine.travel(NOON, tick=False)
def test_a_day_is_read_from_minutes_with_its_gaps(gpu: Gpu, django_assert_num_queries: Any) -> None:
    start = NOON - 10 * HOUR
    for minute in (0, 1, 2, 10):
        HostRollup.objects.create(
            host=gpu.host,
            seconds=60,
            starts_at=start + minute * MINUTE,
            gpus={gpu.uuid: {"utilization_percent": [1.0, 2.0, 3.0, 12]}},
        )
    with django_assert_num_queries(1):
        series = gpu_series(gpu, metric="utilization_percent", start=start, end=NOON)
    assert series.resolution_seconds == 60
    assert [point.mean for point in series.points] == [2.0, 2.0, 2.0, None, 2.0]
    (other,) = host_series(
        gpu.host, [gpu.uuid], metric="utilization_percent", start=start, end=NOON
    )
    assert other == series


@given(st.lists(st.floats(0, 100), min_size=1, max_size=200), st.integers(1, 20))
def test_joining_points_keeps_the_extremes(values: list[float], limit: int) -> None:
    points = [Point(NOON + n * MINUTE, v, v, v) for n, v in enumerate(values)]
    series = series_of_points(points, step=MINUTE, limit=limit)
    known = [point for point in series.points if point.mean is not None]
    assert len(known) <= limit
    assert min(point.minimum for point in known if point.minimum is not None) == min(values)
    assert max(point.maximum for point in known if point.maximum is not None) == max(values)
