"""Making, changing, cancelling and releasing reservations.

All or nothing over several GPUs. Whoever takes a GPU locks its row first, in key order, and then
looks; the database's own constraint is the second lock. Giving back needs none.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from django.core.exceptions import PermissionDenied
from django.db import IntegrityError, transaction
from django.utils import timezone

from accounts.access import uncovered
from accounts.models import User
from accounts.services.grants import access_of
from monitoring import audit, naming
from monitoring.models import Gpu
from reservations import rules
from reservations.models import Policy, Reservation, ReservationGpu
from reservations.services.policy import current_policy

RELEASE_INSTEAD = "It is running: release it instead, so that its history stays true."


class BookingError(Exception):
    """The reservation cannot be had; the text is one sentence and `code` says which kind."""

    def __init__(self, sentence: str, code: str) -> None:
        super().__init__(sentence)
        self.code = code


class GpuTaken(BookingError):
    """Somebody has one of the GPUs at a moment of the span."""


class RuleRefusal(BookingError):
    """A limit or the grants say no."""


class WrongState(BookingError):
    """The reservation is over, or running, or cancelled: this cannot be done to it."""


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
    _refuse_privileges(actor, owner, override_access)
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
    with _one_at_a_time(gpus):
        reservation.full_clean(validate_constraints=False)
        _judge(reservation, gpus, now=now)
        _refuse_taken(gpus, starts_at, ends_at)
        reservation.save()
        _take(reservation, gpus)
        audit.record(
            actor=actor,
            action="reservation.create",
            target=reservation,
            changes={
                "gpus": [None, [str(gpu) for gpu in gpus]],
                "starts_at": [None, starts_at],
                "ends_at": [None, ends_at],
                "owner": [None, owner.username],
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
    WrongState. The same limits as for a new one. Raises what `reserve` raises.
    """
    _refuse_others(actor, reservation)
    _refuse_privileges(actor, actor, override_access)
    now = timezone.now()
    old_gpus = list(reservation.gpus.order_by("pk"))
    new_gpus = old_gpus if gpus is None else list(gpus)
    involved = {gpu.pk: gpu for gpu in [*old_gpus, *new_gpus]}
    span = (
        fields.get("starts_at", reservation.starts_at),
        fields.get("ends_at", reservation.ends_at),
    )
    with _one_at_a_time(list(involved.values())):
        reservation = Reservation.objects.select_for_update().get(pk=reservation.pk)
        changes = _changes(reservation, fields, old_gpus, new_gpus)
        if not changes:
            return reservation
        _refuse_state(reservation, changes, now=now)
        for name in changes.keys() - {"gpus"}:
            setattr(reservation, name, fields[name])
        reservation.override_access = reservation.override_access or override_access
        reservation.title = naming.normalized(reservation.title)
        reservation.full_clean(validate_constraints=False)
        if changes.keys() & {"starts_at", "ends_at", "gpus"}:
            _judge(reservation, new_gpus, now=now, was_running=_began(changes, reservation, now))
            _refuse_taken(new_gpus, *span, except_for=reservation)
        reservation.save()
        if "gpus" in changes:
            reservation.slots.exclude(gpu__in=new_gpus).delete()
            held = set(reservation.slots.values_list("gpu_id", flat=True))
            _take(reservation, [gpu for gpu in new_gpus if gpu.pk not in held])
        audit.record(actor=actor, action="reservation.change", target=reservation, changes=changes)
    return reservation


@transaction.atomic
def cancel(reservation: Reservation, *, actor: User | None, reason: str = "") -> Reservation:
    """Cancel an upcoming reservation; it stays readable. Raises WrongState, PermissionDenied."""
    if actor is not None:
        _refuse_others(actor, reservation)
    now = timezone.now()
    reservation = Reservation.objects.select_for_update().get(pk=reservation.pk)
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
    _refuse_others(actor, reservation)
    now = timezone.now()
    reservation = Reservation.objects.select_for_update().get(pk=reservation.pk)
    state = reservation.state(now)
    if state == Reservation.State.UPCOMING:
        raise WrongState("It has not begun: cancel it instead.", "upcoming")
    if state != Reservation.State.RUNNING:
        raise WrongState("It is over already; there is nothing to release.", str(state))
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
def _one_at_a_time(gpus: Sequence[Gpu]) -> Iterator[None]:
    """A transaction that holds the GPUs' rows; what the database refuses becomes GpuTaken."""
    try:
        with transaction.atomic():
            # Whoever waits here sees the winner's rows afterwards. In key order, so that no two
            # wait for each other.
            keys = sorted(gpu.pk for gpu in gpus)
            list(Gpu.objects.select_for_update().filter(pk__in=keys).order_by("pk"))
            yield
    except IntegrityError as refused:
        if "gpu_reserved_once" not in str(refused):
            raise
        raise GpuTaken(
            "One of these GPUs was just reserved by somebody else.", "gpu_taken"
        ) from refused


def _refuse_privileges(actor: User, owner: User, override_access: bool) -> None:
    if actor.is_administrator:
        return
    if owner != actor:
        raise PermissionDenied("Only administrators reserve for somebody else.")
    if override_access:
        raise PermissionDenied("Only administrators book past the rules.")


def _refuse_others(actor: User, reservation: Reservation) -> None:
    if not actor.is_administrator and reservation.owner_id != actor.pk:
        raise PermissionDenied("This reservation belongs to somebody else.")


def _refuse_state(
    reservation: Reservation, changes: Mapping[str, Any], *, now: dt.datetime
) -> None:
    state = reservation.state(now)
    if state in (Reservation.State.FINISHED, Reservation.State.CANCELLED):
        raise WrongState(f"It is {state}: it is not changed any more.", str(state))
    if state != Reservation.State.RUNNING:
        return
    if changes.keys() & {"starts_at", "gpus"}:
        raise WrongState("It is running: start and GPUs stay as they are.", "running")
    if "ends_at" in changes and changes["ends_at"][1] < now:
        raise WrongState("It cannot end before now. Release it instead.", "running")


def _began(changes: Mapping[str, Any], reservation: Reservation, now: dt.datetime) -> bool:
    return "starts_at" not in changes and reservation.starts_at <= now


def _changes(
    reservation: Reservation, fields: Mapping[str, Any], old: Sequence[Gpu], new: Sequence[Gpu]
) -> dict[str, list[Any]]:
    """What really differs: field -> [before, after]."""
    changes: dict[str, list[Any]] = {
        name: [getattr(reservation, name), fields[name]]
        for name in ("title", "description", "starts_at", "ends_at")
        if name in fields and fields[name] != getattr(reservation, name)
    }
    if {gpu.pk for gpu in old} != {gpu.pk for gpu in new}:
        changes["gpus"] = [[str(gpu) for gpu in old], [str(gpu) for gpu in new]]
    return changes


def _judge(
    reservation: Reservation, gpus: Sequence[Gpu], *, now: dt.datetime, was_running: bool = False
) -> None:
    """Limits and grants, judged for the owner. Raises RuleRefusal."""
    _refuse_gpus(gpus)
    if reservation.ends_at <= reservation.starts_at:
        raise RuleRefusal("A reservation must end after it starts.", "ends_before_start")
    if reservation.override_access:
        return
    limits = _limits(current_policy())
    booking = rules.Booking(reservation.starts_at, reservation.ends_at, len(gpus))
    refusal = rules.refuse_span(booking, limits, now=now, checks_start=not was_running)
    if refusal is None and (limits.max_gpus_at_once or limits.max_hours_per_week):
        refusal = rules.refuse_amount(booking, _others_of(reservation, now), limits, now=now)
    if refusal is not None:
        raise RuleRefusal(refusal.sentence, refusal.code)
    _refuse_ungranted(reservation, gpus, now=now if was_running else reservation.starts_at)


def _refuse_gpus(gpus: Sequence[Gpu]) -> None:
    if not gpus:
        raise RuleRefusal("Choose at least one GPU.", "no_gpus")
    for gpu in gpus:
        if gpu.is_retired:
            raise RuleRefusal(f"{gpu} is not there any more.", "gpu_retired")
        if gpu.host.in_maintenance or not gpu.host.is_enabled:
            what = "in maintenance" if gpu.host.in_maintenance else "disabled"
            raise RuleRefusal(f"{gpu.host.name} is {what}; choose another host.", "host_closed")


def _refuse_ungranted(reservation: Reservation, gpus: Sequence[Gpu], *, now: dt.datetime) -> None:
    labels = {gpu.uuid: str(gpu) for gpu in gpus}
    gap = uncovered(access_of(reservation.owner), list(labels), now, reservation.ends_at)
    if gap is not None:
        raise RuleRefusal(
            f"No grant lets {reservation.owner.username} use {labels[gap.gpu]} at"
            f" {gap.moment.astimezone(dt.UTC):%Y-%m-%d %H:%M} UTC. An administrator can change"
            " that.",
            "not_granted",
        )


def _limits(policy: Policy) -> rules.Limits:
    return rules.limits_of(vars(policy))


def _others_of(reservation: Reservation, now: dt.datetime) -> list[rules.Booking]:
    """The owner's other standing reservations that may share a week with this one."""
    week = dt.timedelta(days=8)
    rows = (
        Reservation.objects.overlapping(reservation.starts_at - week, reservation.ends_at + week)
        .filter(owner=reservation.owner)
        .exclude(pk=reservation.pk)
        .prefetch_related("slots")
    )
    return [rules.Booking(row.starts_at, row.ends_at, len(row.slots.all())) for row in rows]


def _refuse_taken(
    gpus: Sequence[Gpu],
    starts_at: dt.datetime,
    ends_at: dt.datetime,
    except_for: Reservation | None = None,
) -> None:
    taken = ReservationGpu.objects.filter(
        gpu__in=gpus, is_standing=True, starts_at__lt=ends_at, ends_at__gt=starts_at
    )
    if except_for is not None:
        taken = taken.exclude(reservation=except_for)
    slot = taken.select_related("gpu__host", "reservation__owner").order_by("starts_at").first()
    if slot is not None:
        raise GpuTaken(
            f"{slot.gpu} is reserved by {slot.reservation.owner.username} from"
            f" {slot.starts_at:%Y-%m-%d %H:%M} to {slot.ends_at:%Y-%m-%d %H:%M} UTC."
            " Choose another time or GPU.",
            "gpu_taken",
        )


def _take(reservation: Reservation, gpus: Sequence[Gpu]) -> None:
    ReservationGpu.objects.bulk_create(
        ReservationGpu(
            reservation=reservation,
            gpu=gpu,
            starts_at=reservation.starts_at,
            ends_at=reservation.ends_at,
        )
        for gpu in sorted(gpus, key=lambda gpu: gpu.pk)
    )
