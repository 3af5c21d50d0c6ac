"""Signs of life of the clusters: a row that is written when a background task has ended.

django-q tells of an ended task in the process that acknowledges it, after it did. So a fresh row
proves the whole way: fetched, run, and taken off the queue. Any task proves it; the watchdog
queues small ones for clusters that have nothing else to do.
"""

from __future__ import annotations

import datetime as dt
import logging
import os
import socket
from typing import Any

from django.conf import settings
from django.db import DatabaseError, close_old_connections
from django.utils import timezone
from django_q.brokers import get_broker
from django_q.tasks import async_task

from monitoring.models import Heartbeat

logger = logging.getLogger(__name__)

MISSED_BEATS = 3
_BEAT = "monitoring.tasks.beat"
_MANY_WAITING = 10
_MANY_HANDOVERS = 20


def ask(name: str) -> None:
    """Have the cluster on this machine beat soon.

    Where much waits already nothing is added: those tasks prove as much, and beats would pile up
    in the queue of a cluster that does not run.
    """
    if (get_broker(name).queue_size() or 0) < _MANY_WAITING:
        async_task(_BEAT, name, socket.gethostname(), cluster=name)


def beat(name: str, machine: str, handovers: int = 0) -> None:
    """Nothing: the end of this task is the beat. One that another machine got is passed on.

    After some hand-overs it is dropped; the machine that was meant does not take part then.
    """
    if machine != socket.gethostname() and handovers < _MANY_HANDOVERS:
        async_task(_BEAT, name, machine, handovers + 1, cluster=name)


def task_ended(**signal: Any) -> None:
    """django-q's post_execute. Outside a cluster there is nothing to tell."""
    if not (name := os.environ.get("Q_CLUSTER_NAME")):
        return
    try:
        record(name, timezone.now())
    except DatabaseError:
        # The process that acknowledges must live on; the missing row tells.
        logger.exception("cluster %s: its beat could not be written", name)
    finally:
        close_old_connections()


def record(name: str, now: dt.datetime) -> None:
    """Write that the cluster of this process lives."""
    values = {"process_id": os.getpid(), "version": settings.CODE_VERSION, "beat_at": now}
    Heartbeat.objects.update_or_create(
        cluster=name,
        machine=socket.gethostname(),
        defaults=values,
        create_defaults={**values, "started_at": now},
    )


def last(name: str, machine: str | None = None) -> dt.datetime | None:
    """When the cluster last beat, on that machine or on any; None when it never did."""
    rows = Heartbeat.objects.filter(cluster=name)
    if machine is not None:
        rows = rows.filter(machine=machine)
    return rows.order_by("-beat_at").values_list("beat_at", flat=True).first()


def patience(name: str) -> dt.timedelta:
    """How old a cluster's last beat may be: three beats, and the longest that all may be busy."""
    size = settings.CLUSTER_SIZES[name]
    busy = dt.timedelta(seconds=0 if size.has_spare_worker else size.timeout)
    return MISSED_BEATS * settings.HEARTBEAT_INTERVAL + busy
