"""Whether a task may start now on its GPUs."""

from __future__ import annotations

import datetime as dt

from jobs.models import Task
from monitoring.models import Gpu
from reservations.models import ReservationGpu


def refusal(task: Task, now: dt.datetime) -> str | None:
    """Why the task may not start now, in one sentence; None when it may.

    A GPU reserved now needs the owner's own reservation. Disabled hosts, hosts in maintenance,
    accounts that were closed, root and the observing account start nothing.
    """
    host, owner = task.host, task.job.owner
    if not owner.is_active:
        return f"The account of {owner.username} is closed."
    if owner.login_on_hosts == "root":
        return "Jobs never run as root."
    if owner.login_on_hosts == host.user:
        return f"Jobs never run as {host.user}, the account that watches {host.name}."
    if not host.is_enabled or host.in_maintenance:
        return f"{host.name} is {'in maintenance' if host.is_enabled else 'disabled'}."
    gpus = list(task.gpus.select_related("host"))
    for gpu in gpus:
        if gpu.is_retired or gpu.state == Gpu.State.LOST:
            return f"{gpu} is not there any more."
    taken = (
        ReservationGpu.objects.filter(
            gpu__in=gpus, is_standing=True, starts_at__lte=now, ends_at__gt=now
        )
        .exclude(reservation__owner=owner)
        .select_related("gpu__host", "reservation__owner")
        .first()
    )
    if taken is not None:
        return (
            f"{taken.gpu} is reserved by {taken.reservation.owner.username} until"
            f" {taken.ends_at:%Y-%m-%d %H:%M} UTC."
        )
    return None
