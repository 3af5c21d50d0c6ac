"""Signs of life of the clusters: a row that only a background task of the cluster writes."""

from __future__ import annotations

import datetime as dt
import os
import socket

from django.conf import settings
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from monitoring.models import Heartbeat

MISSED_BEATS = 3


def beat(cluster: str, asked_at: str) -> None:
    """Write the beat that was asked for at the given moment (ISO).

    An old one, found in the queue after a stand-still, tells nothing of now and is dropped.
    """
    now = timezone.now()
    asked = parse_datetime(asked_at)
    if asked is None or now - asked > MISSED_BEATS * settings.HEARTBEAT_INTERVAL:
        return
    Heartbeat.objects.update_or_create(
        cluster=cluster,
        machine=socket.gethostname(),
        defaults={
            "process_id": os.getpid(),
            "version": settings.CODE_VERSION,
            "beat_at": now,
        },
        create_defaults={
            "process_id": os.getpid(),
            "version": settings.CODE_VERSION,
            "beat_at": now,
            "started_at": now,
        },
    )


def age(cluster: str, now: dt.datetime) -> dt.timedelta | None:
    """How long ago the cluster last beat, on any machine; None when it never did."""
    last = Heartbeat.objects.filter(cluster=cluster).order_by("-beat_at").first()
    return None if last is None else now - last.beat_at
