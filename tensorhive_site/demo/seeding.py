"""What the demo starts with: people, the fleet's hosts, reservations around now, four weeks of
history. Everything follows from `fleet`; doing it twice changes nothing.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence

from django.db import transaction

from accounts.models import User
from accounts.services.people import create_person
from monitoring import ssh
from monitoring.answers import SAMPLED
from monitoring.models import Gpu, Host, HostKey, HostRollup
from monitoring.services.rolling import summarized
from reservations.models import Reservation, ReservationGpu
from tensorhive_site.demo.fleet import (
    FLEET,
    OTHER_USER,
    PEOPLE,
    SLOT,
    USER,
    DemoHost,
    activity,
    bookings,
    slot_of,
)
from tensorhive_site.demo.server import LOGIN

_PAST, _AHEAD = dt.timedelta(days=28), dt.timedelta(days=7)
_MINUTES_OF = dt.timedelta(days=2)


@transaction.atomic
def seed(*, now: dt.datetime, password: str, host_key: str, first_port: int) -> bool:
    """Fill an empty installation. `host_key` is the fleet's public key line. False: it was full."""
    if Host.objects.exists():
        return False
    people = {
        login: create_person(
            actor=None,
            username=login,
            password=password if login in (USER, OTHER_USER) else f"{password}-{login}",
            email=f"{login}@example.org",
        )
        for login in PEOPLE
    }
    for number, demo in enumerate(FLEET):
        host = _host(demo, first_port + number, host_key, now)
        gpus = _gpus(demo, host, now)
        _reserve(demo, gpus, people, now)
        _remember(demo, host, now)
    return True


def _host(demo: DemoHost, port: int, host_key: str, now: dt.datetime) -> Host:
    host = Host.objects.create(name=demo.name, address="127.0.0.1", port=port, user=LOGIN)
    key_type, public_key = host_key.split()[:2]
    HostKey.objects.create(
        host=host,
        address=host.address,
        port=port,
        key_type=key_type,
        public_key=public_key,
        fingerprint=ssh.fingerprint(host_key),
        seen_at=now,
        accepted_at=now,
        accepted_by="demo",
    )
    return host


def _gpus(demo: DemoHost, host: Host, now: dt.datetime) -> dict[int, Gpu]:
    """The cards by index; MIG instances come with the first probe."""
    began = now - _PAST
    return {
        index: Gpu.objects.create(
            uuid=demo.uuid(index),
            host=host,
            index=index,
            name=demo.model,
            memory_total_mib=demo.memory_mib,
            first_seen_at=began,
            last_seen_at=now,
        )
        for index in range(demo.gpus)
    }


def _reserve(
    demo: DemoHost, gpus: dict[int, Gpu], people: dict[str, User], now: dt.datetime
) -> None:
    slot = slot_of(now - _PAST)
    found = []
    while slot < now + _AHEAD:
        found += list(bookings(demo, slot))
        slot += SLOT
    rows = Reservation.objects.bulk_create(
        Reservation(
            title=booking.title,
            owner=people[booking.owner],
            created_by=people[booking.owner],
            starts_at=booking.starts_at,
            ends_at=booking.ends_at,
        )
        for booking in found
    )
    ReservationGpu.objects.bulk_create(
        ReservationGpu(
            reservation=row, gpu=gpus[index], starts_at=row.starts_at, ends_at=row.ends_at
        )
        for row, booking in zip(rows, found, strict=True)
        for index in booking.gpus
    )


def _remember(demo: DemoHost, host: Host, now: dt.datetime) -> None:
    """History in hours for four weeks and in minutes for the last days."""
    hour, minute = dt.timedelta(hours=1), dt.timedelta(minutes=1)
    hours = _stretches(demo, now - _PAST, now, hour, every=dt.timedelta(minutes=12))
    minutes = _stretches(demo, now - _MINUTES_OF, now, minute, every=minute)
    HostRollup.objects.bulk_create(
        [
            HostRollup(host=host, seconds=seconds, starts_at=starts_at, gpus=gpus)
            for seconds, stretches in ((HostRollup.HOUR, hours), (HostRollup.MINUTE, minutes))
            for starts_at, gpus in stretches
        ],
        batch_size=500,
    )


def _stretches(
    demo: DemoHost, begin: dt.datetime, end: dt.datetime, length: dt.timedelta, every: dt.timedelta
) -> Iterator[tuple[dt.datetime, dict[str, object]]]:
    seconds = length.total_seconds()
    starts_at = dt.datetime.fromtimestamp(begin.timestamp() // seconds * seconds, dt.UTC)
    while starts_at + length <= end:
        moments = [starts_at + number * every for number in range(int(length / every))]
        here = [moment for moment in moments if not demo.is_away(moment)]
        if here:
            yield starts_at, summarized(_sample(demo, moment) for moment in here)
        starts_at += length


def _sample(demo: DemoHost, moment: dt.datetime) -> dict[str, Sequence[float | None]]:
    """As HostSample.gpus holds it."""
    sample: dict[str, Sequence[float | None]] = {}
    for index in range(demo.gpus):
        if index == demo.broken_gpu:
            continue
        one = activity(demo, index, moment)
        known: dict[str, float | None] = {
            "utilization_percent": None if index == demo.mig_card else one.utilization,
            "memory_used_mib": one.memory_mib,
            "memory_utilization_percent": None,
            "temperature_celsius": 31 + int(one.utilization * 0.48),
            "power_watts": round(demo.power_limit * (0.12 + 0.0085 * one.utilization), 1),
            "fan_percent": None,
        }
        sample[demo.uuid(index)] = [known[metric] for metric in SAMPLED]
    return sample
