"""Requests to hosts: the web process writes a row and rings, a worker answers it.

So that no page and no API call ever opens SSH or reads a key. Kinds and their handlers stand in
`settings.REQUEST_HANDLERS`; a handler takes the row and returns something JSON can hold.
"""

from __future__ import annotations

import datetime as dt
import logging
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db.models import Q
from django.utils import timezone
from django.utils.module_loading import import_string

from monitoring.bell import ring
from monitoring.models import Host, HostRequest

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser

logger = logging.getLogger(__name__)

PATIENCE = 5.0  # seconds a page or the API waits before it says "waiting"
OPEN = (HostRequest.State.WAITING, HostRequest.State.RUNNING)
_OVERDUE = dt.timedelta(minutes=2)  # longer than any handler may take
_KEPT = dt.timedelta(days=1)
_OWN_KEPT = dt.timedelta(minutes=10)
_REMEMBERED = dt.timedelta(seconds=6)  # a little longer than a client waits between two tries


class RequestFailed(Exception):
    """The request cannot be met; the text is one sentence for the person who asked."""


def ask(
    kind: str,
    *,
    host: Host | None,
    arguments: Mapping[str, Any] | None = None,
    requested_by: AbstractBaseUser | None = None,
) -> HostRequest:
    """Write the request down and ring the actions cluster."""
    if kind not in settings.REQUEST_HANDLERS:
        raise ValueError(f"no handler for {kind}")
    request = HostRequest.objects.create(
        kind=kind,
        host=host,
        arguments=dict(arguments or {}),
        requested_by_id=requested_by.pk if requested_by is not None else None,
    )
    ring("monitoring.tasks.answer_request", request.pk)
    return request


def ask_once(
    kind: str,
    *,
    host: Host | None,
    arguments: Mapping[str, Any] | None = None,
    requested_by: AbstractBaseUser | None = None,
) -> HostRequest:
    """As `ask`, but the same question of the same person is taken up again.

    As long as it is open, and a moment longer: who was told to wait comes back for the answer.
    """
    same = HostRequest.objects.filter(
        kind=kind,
        host=host,
        arguments=dict(arguments or {}),
        requested_by_id=requested_by.pk if requested_by is not None else None,
    ).filter(Q(finished_at=None) | Q(finished_at__gt=timezone.now() - _REMEMBERED))
    return same.first() or ask(kind, host=host, arguments=arguments, requested_by=requested_by)


def wait(request: HostRequest, *, seconds: float = PATIENCE) -> HostRequest:
    """Look at the row until it is answered or the time is up; the row says which."""
    ends = time.monotonic() + seconds
    pause = 0.05
    while is_open(request) and time.monotonic() < ends:
        time.sleep(pause)
        pause = min(pause * 1.5, 0.3)
        request.refresh_from_db()
    return request


def is_open(request: HostRequest) -> bool:
    return request.state in OPEN


def answer(pk: int) -> None:
    """Answer a request, once: whoever claims the row does it, everybody else returns."""
    claimed = HostRequest.objects.filter(pk=pk, state=HostRequest.State.WAITING).update(
        state=HostRequest.State.RUNNING, claimed_at=timezone.now()
    )
    if not claimed:
        return
    request = HostRequest.objects.select_related("host", "requested_by").get(pk=pk)
    state, result, reason = _handled(request)
    HostRequest.objects.filter(pk=pk, state=HostRequest.State.RUNNING).update(
        state=state, result=result, reason=reason[:500], finished_at=timezone.now()
    )


def sweep(now: dt.datetime) -> None:
    """Ring again for requests nobody took, end those whose worker died, forget old ones."""
    State = HostRequest.State
    HostRequest.objects.filter(state=State.RUNNING, claimed_at__lt=now - _OVERDUE).update(
        state=State.FAILED,
        reason="The worker that looked into this was interrupted. Please try again.",
        finished_at=now,
    )
    HostRequest.objects.filter(created_at__lt=now - _KEPT).delete()
    # What the product asked for itself, every few seconds where jobs run, nobody looks up later.
    HostRequest.objects.filter(
        requested_by=None, state=State.DONE, finished_at__lt=now - _OWN_KEPT
    ).delete()
    waiting = HostRequest.objects.filter(
        state=State.WAITING, created_at__lt=now - dt.timedelta(seconds=20)
    )
    for pk in waiting.values_list("pk", flat=True)[:100]:
        ring("monitoring.tasks.answer_request", pk)


def _handled(request: HostRequest) -> tuple[HostRequest.State, Any, str]:
    try:
        result = import_string(settings.REQUEST_HANDLERS[request.kind])(request)
    except RequestFailed as failure:
        return HostRequest.State.FAILED, None, str(failure)
    except Exception:
        # A bug of ours must not leave the person waiting; the traceback is for the administrator.
        logger.exception("request %s (%s) failed", request.pk, request.kind)
        return HostRequest.State.FAILED, None, "This failed inside TensorHive; see its log."
    return HostRequest.State.DONE, result, ""
