"""Samples become points, gaps stay gaps."""

from __future__ import annotations

import datetime as dt

from hypothesis import given
from hypothesis import strategies as st

from monitoring.series import Point, series_of

START = dt.datetime(2026, 3, 1, tzinfo=dt.UTC)
FIVE = dt.timedelta(seconds=5)


def at(seconds: float) -> dt.datetime:
    return START + dt.timedelta(seconds=seconds)


def test_no_readings_are_no_points() -> None:
    assert series_of([], interval=FIVE).points == ()


def test_every_reading_is_a_point_while_they_are_few() -> None:
    series = series_of([(at(0), 1.0), (at(5), None)], interval=FIVE)

    assert series.resolution_seconds == 5
    assert series.points == (Point(at(0), 1.0, 1.0, 1.0), Point(at(5)))


def test_a_missed_round_is_not_a_gap_but_a_long_silence_is() -> None:
    readings = [(at(0), 1.0), (at(10), 2.0), (at(60), 3.0)]

    points = series_of(readings, interval=FIVE).points

    assert [point.mean for point in points] == [1, 2, None, 3]
    assert at(10) < points[2].at < at(60)


def test_averaging_keeps_extremes_and_says_its_resolution() -> None:
    readings = [(at(5 * number), float(number % 2)) for number in range(100)]

    series = series_of(readings, interval=FIVE, limit=10)

    assert len(series.points) <= 11
    assert series.resolution_seconds == 50
    assert {(point.minimum, point.maximum) for point in series.points} == {(0, 1)}


def test_silence_stays_a_gap_when_averaged() -> None:
    readings = [(at(5 * number), 1.0) for number in range(100) if not 30 <= number < 60]

    points = series_of(readings, interval=FIVE, limit=20).points

    assert [point.mean for point in points].count(None) == 1


def test_a_stretch_without_any_known_value_is_unknown_rather_than_zero() -> None:
    readings = [(at(5 * number), None) for number in range(50)]

    points = series_of(readings, interval=FIVE, limit=5).points

    assert all(point.mean is None for point in points)


@given(
    st.lists(
        st.tuples(st.floats(0, 100_000, allow_nan=False), st.one_of(st.none(), st.floats(0, 100))),
        max_size=200,
    ),
    st.integers(1, 50),
)
def test_points_are_in_order_bounded_and_within_what_was_read(
    raw: list[tuple[float, float | None]], limit: int
) -> None:
    readings = sorted(((at(seconds), value) for seconds, value in raw), key=lambda r: r[0])

    points = series_of(readings, interval=FIVE, limit=limit).points

    assert [point.at for point in points] == sorted(point.at for point in points)
    assert len(points) <= 2 * max(len(readings), 1)
    known = [value for _, value in readings if value is not None]
    for point in points:
        if point.mean is not None:
            assert point.minimum in known
            assert point.maximum in known
            assert point.minimum - 0.001 <= point.mean <= point.maximum + 0.001
