"""Who holds GPUs now and next: for monitoring's pages and API, through the GPU_CONTEXT hook."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Any

from accounts.models import User
from monitoring.models import Gpu
from reservations.models import ReservationGpu

_AHEAD = dt.timedelta(days=14)


def gpu_context(
    user: User, gpus: Sequence[Gpu], now: dt.datetime
) -> dict[str, dict[str, dict[str, Any] | None]]:
    """UUID -> {"reservation", "next_reservation"}: each None or a small description. One query."""
    slots = (
        ReservationGpu.objects.filter(
            gpu__in=gpus, is_standing=True, ends_at__gt=now, starts_at__lt=now + _AHEAD
        )
        .select_related("gpu", "reservation__owner")
        .order_by("starts_at")
    )
    context: dict[str, dict[str, dict[str, Any] | None]] = {
        gpu.uuid: {"reservation": None, "next_reservation": None} for gpu in gpus
    }
    for slot in slots:
        place = context[slot.gpu.uuid]
        which = "reservation" if slot.starts_at <= now else "next_reservation"
        if place[which] is None:
            place[which] = _described(slot, user)
    return context


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
