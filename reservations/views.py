"""Pages: the calendar, and a person's own reservations."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.db.models import Prefetch, Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST

from accounts.models import User, zone_of
from accounts.people import signed_in
from monitoring.models import Gpu
from reservations.models import Reservation
from reservations.services import booking
from reservations.services.policy import current_policy
from reservations.wording import iso_duration

_PAST_SHOWN = 50
_LENGTHS = ("min_length", "max_length", "horizon", "step")


@login_required
def calendar(request: HttpRequest) -> HttpResponse:
    return render(
        request, "reservations/calendar.html", {"calendar": _calendar_of(signed_in(request))}
    )


@login_required
def own(request: HttpRequest) -> HttpResponse:
    """Upcoming, running and past reservations of the signed-in person."""
    now = timezone.now()
    rows = Reservation.objects.filter(owner=signed_in(request)).prefetch_related(
        Prefetch("gpus", Gpu.objects.select_related("host"))
    )
    standing = rows.filter(cancelled_at=None)
    over = rows.filter(Q(ends_at__lte=now) | ~Q(cancelled_at=None)).order_by("-starts_at", "-pk")
    past = list(over[: _PAST_SHOWN + 1])
    context = {
        "running": standing.filter(starts_at__lte=now, ends_at__gt=now),
        "upcoming": standing.filter(starts_at__gt=now),
        "past": past[:_PAST_SHOWN],
        "past_shown": _PAST_SHOWN if len(past) > _PAST_SHOWN else None,
    }
    return render(request, "reservations/list.html", context)


@require_POST
@login_required
def cancel(request: HttpRequest, pk: int) -> HttpResponse:
    return _done(request, pk, booking.cancel, "is cancelled")


@require_POST
@login_required
def release(request: HttpRequest, pk: int) -> HttpResponse:
    return _done(request, pk, booking.release, "is released; the GPUs are free for others")


def _done(request: HttpRequest, pk: int, service: Any, what: str) -> HttpResponse:
    reservation = get_object_or_404(Reservation.objects.visible_to(signed_in(request)), pk=pk)
    try:
        service(reservation, actor=signed_in(request))
    except (booking.BookingError, PermissionDenied) as error:
        messages.error(request, str(error))
    else:
        messages.success(request, f"“{reservation.title}” {what}.")
    return redirect("reservations")


def _calendar_of(user: User) -> dict[str, Any]:
    """What calendar.js needs to begin; reservations it asks the API for."""
    policy = current_policy()
    gpus: dict[int, list[dict[str, Any]]] = {}
    for gpu in user.visible_gpus().order_by("index", "pk"):
        gpus.setdefault(gpu.host_id, []).append(
            {
                "uuid": gpu.uuid,
                "index": gpu.index,
                "name": gpu.name,
                "memory_total_mib": gpu.memory_total_mib,
                "state": gpu.state,
            }
        )
    return {
        "urls": {
            "reservations": "/api/v1/reservations/",
            "gpus": "/api/v1/gpus/",
            "hosts": "/api/v1/hosts/",
        },
        "user": {"username": user.username, "is_staff": user.is_staff},
        "timeZone": str(zone_of(user)),
        "policy": {name: iso_duration(getattr(policy, name)) for name in _LENGTHS},
        "hosts": [
            {
                "id": host.pk,
                "name": host.name,
                "state": host.state,
                "reason": host.reason,
                "gpus": gpus[host.pk],
            }
            for host in user.visible_hosts()
            if host.pk in gpus
        ],
    }
