"""What holds when several requests of one process come at the same moment."""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connections
from django.utils import timezone

from accounts.models import User
from monitoring.models import Gpu
from reservations.models import Reservation
from reservations.services import booking
from reservations.services.policy import change_policy
from tests import make

pytestmark = pytest.mark.django_db(transaction=True)

HOUR = dt.timedelta(hours=1)
RACERS = 8


@pytest.fixture
def begin() -> dt.datetime:
    make.everyone_everything()
    return timezone.now().replace(minute=0, second=0, microsecond=0) + 2 * HOUR


def at_once(*deeds: Callable[[], Any]) -> list[Any]:
    """What each answers or raises, all begun together in threads of their own."""
    barrier = threading.Barrier(len(deeds))

    def run(deed: Callable[[], Any]) -> Any:
        barrier.wait(30)
        try:
            return deed()
        except booking.BookingError as refusal:
            return refusal
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(deeds)) as pool:
        return list(pool.map(run, deeds))


def reserving(owner: User, begin: dt.datetime, *gpus: Gpu) -> Callable[[], Reservation]:
    return lambda: booking.reserve(
        actor=owner, gpus=gpus, starts_at=begin, ends_at=begin + 2 * HOUR, title="Race"
    )


def test_one_of_many_wins_the_same_gpu(begin: dt.datetime) -> None:
    gpu = make.gpu()
    answers = at_once(*(reserving(make.user(), begin, gpu) for _ in range(RACERS)))
    assert sum(isinstance(answer, Reservation) for answer in answers) == 1
    assert sum(isinstance(answer, booking.GpuTaken) for answer in answers) == RACERS - 1


def test_gpus_in_any_order_never_lock_each_other_out(begin: dt.datetime) -> None:
    gpus = [make.gpu() for _ in range(4)]
    orders = [gpus, gpus[::-1], gpus[2:] + gpus[:2], gpus[1:] + gpus[:1]]
    answers = at_once(*(reserving(make.user(), begin, *order) for order in orders))
    assert sum(isinstance(answer, Reservation) for answer in answers) == 1


def test_the_limit_of_a_person_holds_at_the_same_moment(begin: dt.datetime, alice: User) -> None:
    change_policy(actor=None, max_gpus_at_once=1)
    answers = at_once(*(reserving(alice, begin, make.gpu()) for _ in range(RACERS)))
    assert sum(isinstance(answer, Reservation) for answer in answers) == 1
    assert sum(isinstance(answer, booking.RuleRefusal) for answer in answers) == RACERS - 1


def test_moves_to_the_same_gpu_leave_one_winner(begin: dt.datetime) -> None:
    wanted = make.gpu()
    rows = [reserving(make.user(), begin, make.gpu())() for _ in range(RACERS)]

    def moving(row: Reservation) -> Callable[[], Reservation]:
        return lambda: booking.change(row, actor=row.owner, gpus=[wanted])

    answers = at_once(*(moving(row) for row in rows))
    assert sum(isinstance(answer, Reservation) for answer in answers) == 1
    assert wanted.slots.count() == 1


def test_cancel_and_change_of_one_reservation_agree(begin: dt.datetime, alice: User) -> None:
    made = reserving(alice, begin, make.gpu())()
    _, changed = at_once(
        lambda: booking.cancel(made, actor=alice),
        lambda: booking.change(made, actor=alice, ends_at=begin + 4 * HOUR),
    )
    made.refresh_from_db()
    assert made.cancelled_at is not None
    assert not made.slots.get().is_standing
    moved = isinstance(changed, Reservation)
    assert made.ends_at == begin + (4 if moved else 2) * HOUR
    assert made.slots.get().ends_at == made.ends_at
