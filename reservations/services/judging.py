"""Whether a booking may be: the pure judgements, fed from the rows. All refusals are raised.

Called with the rows of the owner and the GPUs locked, so that what is read here stays true.
"""

from __future__ import annotations

import datetime as dt
import zoneinfo
from collections.abc import Sequence
from dataclasses import dataclass

from django.core.exceptions import PermissionDenied

from accounts.access import uncovered
from accounts.models import User, zone_of
from accounts.services.grants import access_of
from monitoring.models import Gpu
from reservations import rules
from reservations.models import Policy, Reservation, ReservationGpu
from reservations.services.policy import current_policy
from reservations.services.refusals import GpuTaken, RuleRefusal, WrongState
from reservations.wording import spoken_moment

_NAMED = 3  # GPUs named in one sentence; a refusal of 500 is read by nobody


@dataclass(frozen=True, slots=True)
class Before:
    """What a reservation was before its change."""

    starts_at: dt.datetime
    ends_at: dt.datetime
    gpus: frozenset[int]


def refuse_privileges(actor: User, owner: User, *, override_access: bool) -> None:
    """Raise PermissionDenied where only an administrator may."""
    if actor.is_administrator:
        return
    if owner != actor:
        raise PermissionDenied("Only administrators reserve for somebody else.")
    if override_access:
        raise PermissionDenied("Only administrators book past the rules.")


def refuse_others(actor: User, reservation: Reservation) -> None:
    """Raise PermissionDenied for everybody but the owner and administrators."""
    if not actor.is_administrator and reservation.owner_id != actor.pk:
        raise PermissionDenied("This reservation belongs to somebody else.")


def refuse_state(
    reservation: Reservation, changed: set[str], ends_at: dt.datetime, *, now: dt.datetime
) -> None:
    """Raise WrongState when these fields of the reservation (as it is) cannot change any more."""
    state = reservation.state(now)
    if state in (Reservation.State.FINISHED, Reservation.State.CANCELLED):
        raise WrongState(f"It is {state.value}: it is not changed any more.", state.value)
    if state != Reservation.State.RUNNING:
        return
    if changed & {"starts_at", "gpus"}:
        raise WrongState("It is running: its start and its GPUs stay as they are.", state.value)
    if "ends_at" in changed and ends_at < now:
        raise WrongState("It is running: it cannot end before now. Release it.", state.value)


def judge(
    reservation: Reservation,
    gpus: Sequence[Gpu],
    *,
    reader: User,
    now: dt.datetime,
    before: Before | None = None,
) -> None:
    """Raise RuleRefusal or GpuTaken if the reservation may not be as it is now.

    Limits and grants are judged for the owner; moments are said in the reader's zone. `before` is
    None for a new one. Of a running one only what is added is judged.
    """
    zone = zone_of(reader)
    is_running = before is not None and before.starts_at <= now
    if reservation.ends_at <= reservation.starts_at:
        raise RuleRefusal("A reservation must end after it starts.", "ends_before_start")
    if is_running and before is not None and reservation.ends_at <= before.ends_at:
        _refuse_limits(reservation, gpus, zone=zone, now=now, before=before)
        return
    judged_from = before.ends_at if is_running and before else reservation.starts_at
    _refuse_absent(gpus)
    _refuse_limits(reservation, gpus, zone=zone, now=now, before=before, judged_from=judged_from)
    if not reservation.override_access:
        _refuse_ungranted(reservation, gpus, zone=zone, since=judged_from)
    _refuse_taken(reservation, gpus, zone=zone)


def _refuse_absent(gpus: Sequence[Gpu]) -> None:
    if not gpus:
        raise RuleRefusal("Choose at least one GPU.", "no_gpus")
    for gpu in gpus:
        if gpu.is_retired:
            raise RuleRefusal(f"{gpu} is not there any more.", "gpu_retired")
        if gpu.host.in_maintenance:
            raise RuleRefusal(
                f"{gpu.host.name} is in maintenance; choose another host.", "host_in_maintenance"
            )
        if not gpu.host.is_enabled:
            raise RuleRefusal(f"{gpu.host.name} is disabled; choose another host.", "host_disabled")


def _refuse_limits(
    reservation: Reservation,
    gpus: Sequence[Gpu],
    *,
    zone: dt.tzinfo,
    now: dt.datetime,
    before: Before | None,
    judged_from: dt.datetime | None = None,
) -> None:
    """Without `judged_from` nothing is added, so amounts are not asked for."""
    if reservation.override_access:
        # Also an administrator does not rewrite what was.
        has_begun = before is not None and before.starts_at <= now
        if not has_begun and reservation.starts_at < now - rules.JUST_NOW:
            raise RuleRefusal("A reservation cannot start in the past.", "in_the_past")
        return
    limits = limits_of(current_policy())
    booking = rules.Booking(reservation.starts_at, reservation.ends_at, len(gpus))
    earlier = (
        None
        if before is None
        else rules.Booking(before.starts_at, before.ends_at, len(before.gpus))
    )
    refusal = rules.refuse_span(booking, limits, now=now, before=earlier, zone=zone)
    has_amounts = limits.max_gpus_at_once is not None or limits.max_hours_per_week is not None
    if refusal is None and judged_from is not None and has_amounts:
        others = _others_of(reservation)
        refusal = rules.refuse_amount(booking, others, limits, now=now, judged_from=judged_from)
    if refusal is not None:
        raise RuleRefusal(refusal.sentence, refusal.code)


def limits_of(policy: Policy) -> rules.Limits:
    return rules.Limits(
        min_length=policy.min_length,
        max_length=policy.max_length,
        horizon=policy.horizon,
        step=policy.step,
        max_gpus_at_once=policy.max_gpus_at_once,
        max_hours_per_week=policy.max_hours_per_week,
        short_notice_hours=policy.short_notice_hours,
        zone=zoneinfo.ZoneInfo(policy.time_zone),
    )


def _others_of(reservation: Reservation) -> list[rules.Booking]:
    """The owner's other standing reservations that may share a week with this one."""
    week = dt.timedelta(days=8)
    rows = (
        Reservation.objects.overlapping(reservation.starts_at - week, reservation.ends_at + week)
        .filter(owner=reservation.owner)
        .exclude(pk=reservation.pk)
        .prefetch_related("slots")
    )
    return [rules.Booking(row.starts_at, row.ends_at, len(row.slots.all())) for row in rows]


def _refuse_ungranted(
    reservation: Reservation, gpus: Sequence[Gpu], *, zone: dt.tzinfo, since: dt.datetime
) -> None:
    labels = {gpu.uuid: str(gpu) for gpu in gpus}
    gap = uncovered(access_of(reservation.owner), list(labels), since, reservation.ends_at)
    if gap is not None:
        raise RuleRefusal(
            f"No grant lets {reservation.owner.username} use {labels[gap.gpu]} at"
            f" {spoken_moment(gap.moment, zone)}. An administrator can change that.",
            "not_granted",
        )


def _refuse_taken(reservation: Reservation, gpus: Sequence[Gpu], *, zone: dt.tzinfo) -> None:
    """Say who has which GPU until when, and from when on all of them are free."""
    ahead = ReservationGpu.objects.filter(
        gpu__in=gpus, is_standing=True, ends_at__gt=reservation.starts_at
    ).exclude(reservation=reservation.pk)
    taken = list(
        ahead.filter(starts_at__lt=reservation.ends_at)
        .values_list("gpu", "starts_at", "ends_at", "reservation__owner__username")
        .order_by("starts_at", "gpu")
    )
    if not taken:
        return
    labels = {gpu.pk: str(gpu) for gpu in gpus}
    named = [
        f"{labels[gpu]} is reserved by {owner} from {spoken_moment(begin, zone)} to"
        f" {spoken_moment(end, zone)}"
        for gpu, begin, end, owner in taken[:_NAMED]
    ]
    if len(taken) > _NAMED:
        named.append(f"and {len(taken) - _NAMED} more")
    length = reservation.ends_at - reservation.starts_at
    busy = ahead.values_list("starts_at", "ends_at")
    free = spoken_moment(rules.next_gap(busy, reservation.starts_at, length), zone)
    every = "It is" if len(gpus) == 1 else f"All {len(gpus)} are"
    raise GpuTaken(f"{'; '.join(named)}. {every} free for this long from {free} on.", "gpu_taken")
