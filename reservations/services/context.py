"""Who holds GPUs now and next: for monitoring's pages and API, through the GPU_CONTEXT hook."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Any

from django.db.models import OuterRef, Q, QuerySet, Subquery

from accounts.models import User
from monitoring.models import Gpu
from reservations.models import ReservationGpu


def gpu_context(
    user: User, gpus: Sequence[Gpu], now: dt.datetime
) -> dict[str, dict[str, dict[str, Any] | None]]:
    """UUID -> {"reservation", "next_reservation"}: each None or a small description. One query."""
    context: dict[str, dict[str, dict[str, Any] | None]] = {
        gpu.uuid: {"reservation": None, "next_reservation": None} for gpu in gpus
    }
    for slot in _now_and_next([gpu.pk for gpu in gpus], now):
        which = "reservation" if slot.starts_at <= now else "next_reservation"
        context[slot.gpu.uuid][which] = _described(slot, user)
    return context


def _now_and_next(gpus: Sequence[int], now: dt.datetime) -> QuerySet[ReservationGpu]:
    """At most two slots a GPU, however much is booked ahead."""
    # Slots of a GPU never overlap, so the first to end is the first to start, and has an index.
    own = ReservationGpu.objects.filter(gpu=OuterRef("pk"), is_standing=True).order_by("ends_at")
    running = own.filter(ends_at__gt=now, starts_at__lte=now).values("pk")[:1]
    following = own.filter(ends_at__gt=now, starts_at__gt=now).values("pk")[:1]
    wanted = Gpu.objects.filter(pk__in=gpus).order_by()
    return ReservationGpu.objects.filter(
        Q(pk__in=wanted.values(slot=Subquery(running)))
        | Q(pk__in=wanted.values(slot=Subquery(following)))
    ).select_related("gpu", "reservation__owner")


def _described(slot: ReservationGpu, user: User) -> dict[str, Any]:
    reservation = slot.reservation
    return {
        "id": reservation.pk,
        "title": reservation.title,
        "owner": reservation.owner.username,
        "starts_at": reservation.starts_at,
        "ends_at": reservation.ends_at,
        "is_mine": reservation.owner_id == user.pk,
    }
