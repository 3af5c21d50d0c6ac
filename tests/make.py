"""Objects for tests, made the short way; whatever is not given has a sensible value."""

from __future__ import annotations

import datetime as dt
import itertools
from typing import Any

from django.utils import timezone

from accounts.models import Grant, User
from monitoring.models import Gpu, Host, HostSnapshot
from reservations.models import Reservation, ReservationGpu

PASSWORD = "correct horse battery"
_numbers = itertools.count(1)


def user(username: str = "", **fields: Any) -> User:
    person = User(username=username or f"person{next(_numbers)}", **fields)
    person.set_password(PASSWORD)
    person.save()
    return person


def host(name: str = "", **fields: Any) -> Host:
    number = next(_numbers)
    defaults = {
        "address": f"127.0.1.{number % 250 + 1}",
        "user": "thobserver",
        "state": Host.State.OK,
        "last_good_at": timezone.now(),
    }
    return Host.objects.create(name=name or f"gpu{number:02d}", **{**defaults, **fields})


def gpu(of: Host | None = None, index: int | None = None, **fields: Any) -> Gpu:
    of = of or host()
    index = of.gpus.count() if index is None else index
    now = timezone.now()
    defaults = {
        "uuid": f"GPU-{next(_numbers):08x}-0000-4000-8000-{of.pk:012x}",
        "name": "NVIDIA A100-SXM4-40GB",
        "memory_total_mib": 40960,
        "state": Gpu.State.OK,
        "first_seen_at": now,
        "last_seen_at": now,
    }
    return Gpu.objects.create(host=of, index=index, **{**defaults, **fields})


def everyone_everything() -> Grant:
    """The grant of a fresh installation, from long ago, since tests move the clock."""
    return Grant.objects.update_or_create(
        name="Everyone, everything",
        defaults={
            "everyone": True,
            "everything": True,
            "starts_at": dt.datetime(2020, 1, 1, tzinfo=dt.UTC),
        },
    )[0]


def reservation(
    *gpus: Gpu,
    owner: User,
    starts_at: dt.datetime | None = None,
    ends_at: dt.datetime | None = None,
    **fields: Any,
) -> Reservation:
    """A reservation row as it is, past every rule of the services but not of the database."""
    starts_at = starts_at or timezone.now() - dt.timedelta(hours=1)
    ends_at = ends_at or starts_at + dt.timedelta(hours=4)
    made = Reservation.objects.create(
        title=fields.pop("title", "Training"),
        owner=owner,
        starts_at=starts_at,
        ends_at=ends_at,
        **fields,
    )
    ReservationGpu.objects.bulk_create(
        ReservationGpu(
            reservation=made,
            gpu=gpu,
            starts_at=starts_at,
            ends_at=ends_at,
            is_standing=made.cancelled_at is None,
        )
        for gpu in gpus or [globals()["gpu"]()]
    )
    return made


def snapshot(of: Host, **fields: Any) -> HostSnapshot:
    """The last answer of a host; `data` as monitoring.services.storing writes it."""
    defaults = {"taken_at": timezone.now(), "probe_seconds": 0.05, "data": {}}
    return HostSnapshot.objects.update_or_create(host=of, defaults={**defaults, **fields})[0]
