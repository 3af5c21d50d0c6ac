"""Making, changing, cancelling and releasing reservations.

All or nothing over several GPUs. Whoever takes a GPU locks its row first, in key order, and then
looks; the database's own constraint is the second lock. Giving back needs none.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone

from accounts.models import User
from monitoring import audit, naming
from monitoring.models import Gpu
from reservations.models import Reservation, ReservationGpu
from reservations.services.judging import (
    Before,
    judge,
    refuse_others,
    refuse_privileges,
    refuse_state,
)
from reservations.services.refusals import BookingError, GpuTaken, RuleRefusal, WrongState

__all__ = [
    "BookingError",
    "GpuTaken",
    "RuleRefusal",
    "WrongState",
    "cancel",
    "change",
    "release",
    "reserve",
]

RELEASE_INSTEAD = "It is running: release it instead, so that its history stays true."
_TEXTS = ("title", "description")
_SPAN = ("starts_at", "ends_at")


def reserve(
    *,
    actor: User,
    gpus: Sequence[Gpu],
    starts_at: dt.datetime,
    ends_at: dt.datetime,
    title: str,
    description: str = "",
    owner: User | None = None,
    override_access: bool = False,
) -> Reservation:
    """Reserve all these GPUs for the owner (default: who asks).

    Only administrators book for others or past the limits and grants (`override_access`, which the
    audit records). Raises ValidationError, PermissionDenied, RuleRefusal and GpuTaken.
    """
    owner = owner or actor
    refuse_privileges(actor, owner, override_access=override_access)
    now = timezone.now()
    reservation = Reservation(
        title=naming.normalized(title),
        description=naming.normalized(description),
        owner=owner,
        created_by=actor,
        starts_at=starts_at,
        ends_at=ends_at,
        override_access=override_access,
    )
    reservation.full_clean(validate_constraints=False)
    with _refusing_as_taken(), transaction.atomic():
        _lock_owner(owner)
        locked = _lock_gpus(gpus)
        judge(reservation, locked, reader=actor, now=now)
        reservation.save()
        _take(reservation, locked)
        audit.record(
            actor=actor,
            action="reservation.create",
            target=reservation,
            changes={
                "owner": [None, owner.username],
                "gpus": [None, [str(gpu) for gpu in locked]],
                "starts_at": [None, starts_at],
                "ends_at": [None, ends_at],
                **({"override_access": [False, True]} if override_access else {}),
            },
        )
    return reservation


def change(
    reservation: Reservation,
    *,
    actor: User,
    override_access: bool = False,
    gpus: Sequence[Gpu] | None = None,
    **fields: Any,
) -> Reservation:
    """Change title, description, span or GPUs, as far as the reservation's state allows.

    Upcoming: everything. Running: title, description and the end (not before now). Otherwise
    WrongState. The same limits as for a new one; a value that stays is no change. Raises what
    `reserve` raises.
    """
    refuse_others(actor, reservation)
    refuse_privileges(actor, actor, override_access=override_access)
    now = timezone.now()
    with _refusing_as_taken(), transaction.atomic():
        _lock_owner(reservation.owner)
        reservation = _lock(reservation)
        old = sorted(slot.gpu_id for slot in reservation.slots.all())
        new = old if gpus is None else sorted({gpu.pk for gpu in gpus})
        locked = {gpu.pk: gpu for gpu in _lock_gpus([*old, *new])}
        before = Before(reservation.starts_at, reservation.ends_at, frozenset(old))
        changes = _changes(reservation, fields)
        if old != new:
            changes["gpus"] = [[str(locked[key]) for key in keys] for keys in (old, new)]
        if not changes:
            return reservation
        refuse_state(
            reservation, set(changes), changes.get("ends_at", [None, None])[1] or now, now=now
        )
        for name in changes.keys() - {"gpus"}:
            setattr(reservation, name, changes[name][1])
        reservation.full_clean(validate_constraints=False)
        if changes.keys() & {"gpus", *_SPAN}:
            if override_access and not reservation.override_access:
                changes["override_access"] = [False, True]
                reservation.override_access = True
            wanted = [locked[key] for key in new]
            judge(reservation, wanted, reader=actor, now=now, before=before)
        # GPUs given up go first: they must not be moved along to the new span.
        reservation.slots.exclude(gpu__in=new).delete()
        reservation.save()
        _take(reservation, [locked[key] for key in new if key not in before.gpus])
        audit.record(actor=actor, action="reservation.change", target=reservation, changes=changes)
    return reservation


@transaction.atomic
def cancel(reservation: Reservation, *, actor: User | None, reason: str = "") -> Reservation:
    """Cancel an upcoming reservation; it stays readable. Raises WrongState, PermissionDenied.

    An actor of None is the product itself.
    """
    if actor is not None:
        refuse_others(actor, reservation)
    now = timezone.now()
    reservation = _lock(reservation)
    match reservation.state(now):
        case Reservation.State.RUNNING:
            raise WrongState(RELEASE_INSTEAD, "running")
        case Reservation.State.FINISHED:
            raise WrongState("It is over already; what was is not changed.", "finished")
        case Reservation.State.CANCELLED:
            raise WrongState("It is cancelled already.", "cancelled")
    reservation.cancelled_at = now
    reservation.cancel_reason = (reason or f"Cancelled by {actor or 'TensorHive'}.")[:500]
    reservation.save(update_fields=["cancelled_at", "cancel_reason"])
    audit.record(actor=actor, action="reservation.cancel", target=reservation, reason=reason)
    return reservation


@transaction.atomic
def release(reservation: Reservation, *, actor: User) -> Reservation:
    """End a running reservation now. Raises WrongState, PermissionDenied."""
    refuse_others(actor, reservation)
    now = timezone.now()
    reservation = _lock(reservation)
    match reservation.state(now):
        case Reservation.State.UPCOMING:
            raise WrongState("It has not begun: cancel it instead.", "upcoming")
        case Reservation.State.FINISHED:
            raise WrongState("It is over already; there is nothing to release.", "finished")
        case Reservation.State.CANCELLED:
            raise WrongState("It was cancelled; there is nothing to release.", "cancelled")
    before = reservation.ends_at
    # A reservation has a length, even one that is released in the moment it begins.
    reservation.ends_at = max(now, reservation.starts_at + dt.timedelta(microseconds=1))
    reservation.released_at = now
    reservation.save(update_fields=["ends_at", "released_at"])
    audit.record(
        actor=actor,
        action="reservation.release",
        target=reservation,
        changes={"ends_at": [before, reservation.ends_at]},
    )
    return reservation


@contextmanager
def _refusing_as_taken() -> Iterator[None]:
    """What the database's own lock refuses becomes GpuTaken too."""
    try:
        yield
    except IntegrityError as refused:
        if "gpu_reserved_once" not in str(refused):
            raise
        raise GpuTaken(
            "One of these GPUs was just reserved by somebody else. Look again.", "gpu_taken"
        ) from refused


def _lock_owner(owner: User) -> None:
    """One booking of a person at a time, for what is limited per person."""
    User.objects.select_for_update(no_key=True).only("pk").get(pk=owner.pk)


def _lock(reservation: Reservation) -> Reservation:
    rows = Reservation.objects.select_for_update(of=("self",), no_key=True)
    return rows.select_related("owner").get(pk=reservation.pk)


def _lock_gpus(gpus: Iterable[Gpu | int]) -> list[Gpu]:
    """The GPUs as they are now, each once, their rows held until the transaction ends.

    In key order, so that no two bookings wait for each other; whoever waits here sees the winner's
    rows afterwards.
    """
    keys = {gpu if isinstance(gpu, int) else gpu.pk for gpu in gpus}
    rows = Gpu.objects.select_for_update(of=("self",), no_key=True).select_related("host")
    return list(rows.filter(pk__in=keys).order_by("pk"))


def _changes(reservation: Reservation, fields: Mapping[str, Any]) -> dict[str, list[Any]]:
    """What really differs: field -> [before, after]."""
    wanted = {name: naming.normalized(fields[name]) for name in _TEXTS if name in fields}
    wanted |= {name: fields[name] for name in _SPAN if name in fields}
    return {
        name: [getattr(reservation, name), value]
        for name, value in wanted.items()
        if getattr(reservation, name) != value
    }


def _take(reservation: Reservation, gpus: Sequence[Gpu]) -> None:
    ReservationGpu.objects.bulk_create(
        ReservationGpu(
            reservation=reservation,
            gpu=gpu,
            starts_at=reservation.starts_at,
            ends_at=reservation.ends_at,
        )
        for gpu in gpus
    )
