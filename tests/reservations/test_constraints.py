"""The database itself, asked in raw SQL: no code path gets around it."""

from __future__ import annotations

import datetime as dt
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction
from django.utils import timezone

from monitoring.models import Gpu
from reservations.models import Policy, Reservation, ReservationGpu
from reservations.services.policy import current_policy
from tests import make

pytestmark = pytest.mark.django_db

BEGIN = dt.datetime(2026, 6, 1, 12, tzinfo=dt.UTC)
HOUR = dt.timedelta(hours=1)


def sql(statement: str, *values: Any) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement, values)


def parameter(moment: dt.datetime) -> Any:
    """The moment as Django writes it on this engine."""
    return connection.ops.adapt_datetimefield_value(moment)


@pytest.fixture
def gpu(db: None) -> Gpu:
    return make.gpu()


@pytest.fixture
def two(gpu: Gpu, alice: Any, bob: Any) -> tuple[Reservation, Reservation]:
    """Alice until 14:00, then bob, on the same GPU."""
    return (
        make.reservation(gpu, owner=alice, starts_at=BEGIN, ends_at=BEGIN + 2 * HOUR),
        make.reservation(gpu, owner=bob, starts_at=BEGIN + 2 * HOUR, ends_at=BEGIN + 4 * HOUR),
    )


def test_a_second_slot_at_the_same_moment_is_refused(
    two: tuple[Reservation, Reservation], gpu: Gpu, alice: Any
) -> None:
    with pytest.raises(DatabaseError, match="gpu_reserved_once"), transaction.atomic():
        make.reservation(gpu, owner=alice, starts_at=BEGIN + HOUR, ends_at=BEGIN + 3 * HOUR)


def test_lengthening_a_reservation_into_another_is_refused(
    two: tuple[Reservation, Reservation],
) -> None:
    with pytest.raises(DatabaseError, match="gpu_reserved_once"):
        sql(
            "UPDATE reservations_reservation SET ends_at = %s WHERE id = %s",
            parameter(BEGIN + 3 * HOUR),
            two[0].pk,
        )
    two[0].refresh_from_db()
    assert two[0].ends_at == BEGIN + 2 * HOUR


def test_slots_follow_their_reservation(two: tuple[Reservation, Reservation]) -> None:
    sql(
        "UPDATE reservations_reservation SET starts_at = %s WHERE id = %s",
        parameter(BEGIN + HOUR),
        two[0].pk,
    )
    assert two[0].slots.get().starts_at == BEGIN + HOUR
    Reservation.objects.filter(pk=two[0].pk).update(cancelled_at=timezone.now())
    assert not two[0].slots.get().is_standing


def test_restoring_a_cancelled_one_over_another_is_refused(
    two: tuple[Reservation, Reservation], gpu: Gpu, alice: Any
) -> None:
    Reservation.objects.filter(pk=two[0].pk).update(cancelled_at=timezone.now())
    make.reservation(gpu, owner=alice, starts_at=BEGIN, ends_at=BEGIN + HOUR)
    with pytest.raises(DatabaseError, match="gpu_reserved_once"):
        sql("UPDATE reservations_reservation SET cancelled_at = NULL WHERE id = %s", two[0].pk)


@pytest.mark.parametrize("column", ["starts_at", "ends_at", "is_standing", "gpu_id"])
def test_a_slot_never_tells_another_span_than_its_reservation(
    two: tuple[Reservation, Reservation], gpu: Gpu, column: str
) -> None:
    slot = two[1].slots.get()
    if column == "gpu_id":
        other = make.gpu()
        sql("UPDATE reservations_reservationgpu SET gpu_id = %s WHERE id = %s", other.pk, slot.pk)
        with pytest.raises(DatabaseError, match="gpu_reserved_once"):
            make.reservation(other, owner=two[0].owner, starts_at=BEGIN, ends_at=BEGIN + 3 * HOUR)
        return
    value = False if column == "is_standing" else parameter(BEGIN + 3 * HOUR)
    with pytest.raises(DatabaseError, match="slot_matches_reservation"):
        sql(
            f"UPDATE reservations_reservationgpu SET {column} = %s WHERE id = %s",  # noqa: S608
            value,
            slot.pk,
        )


def test_a_reservation_ends_after_it_starts(two: tuple[Reservation, Reservation]) -> None:
    with pytest.raises(DatabaseError):
        sql("UPDATE reservations_reservation SET ends_at = starts_at WHERE id = %s", two[0].pk)


def test_there_is_one_policy(db: None) -> None:
    assert current_policy().pk == 1
    with pytest.raises(DatabaseError), transaction.atomic():
        Policy.objects.create(pk=2)


def test_a_gpu_with_history_is_not_deleted(two: tuple[Reservation, Reservation], gpu: Gpu) -> None:
    with pytest.raises(DatabaseError), transaction.atomic():
        gpu.delete()
    assert ReservationGpu.objects.count() == 2


@pytest.mark.parametrize(
    ("column", "spelling"),
    [("starts_at", "2026-06-01T13:00:00"), ("ends_at", "2026-06-01T15:00:00")],
)
def test_moments_in_another_spelling_open_no_way_around(
    two: tuple[Reservation, Reservation], gpu: Gpu, alice: Any, column: str, spelling: str
) -> None:
    """Where moments are text, text that sorts differently is refused."""
    other = make.gpu()
    third = make.reservation(other, owner=alice, starts_at=BEGIN + HOUR, ends_at=BEGIN + 3 * HOUR)

    def squeeze_in() -> None:
        sql(
            f"UPDATE reservations_reservation SET {column} = %s WHERE id = %s",  # noqa: S608
            spelling,
            third.pk,
        )
        sql(
            "UPDATE reservations_reservationgpu SET gpu_id = %s WHERE gpu_id = %s",
            gpu.pk,
            other.pk,
        )

    with pytest.raises(DatabaseError):
        squeeze_in()


def test_the_locks_can_be_taken_off_and_put_back(
    two: tuple[Reservation, Reservation], gpu: Gpu, alice: Any
) -> None:
    """A migration that rebuilds the tables does so."""
    migration = import_module("reservations.migrations.0002_forbid_double_bookings").Migration
    operation = migration.operations[0]
    editor = SimpleNamespace(connection=connection, execute=sql)
    connection.check_constraints()  # PostgreSQL alters no table with checks outstanding
    operation.reverse_code(None, editor)
    span = {"starts_at": BEGIN + HOUR, "ends_at": BEGIN + 3 * HOUR}
    doubled = make.reservation(gpu, owner=alice, **span)
    doubled.slots.all().delete()
    doubled.delete()
    connection.check_constraints()
    operation.code(None, editor)
    with pytest.raises(DatabaseError, match="gpu_reserved_once"), transaction.atomic():
        make.reservation(gpu, owner=alice, **span)
