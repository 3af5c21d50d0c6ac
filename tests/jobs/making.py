"""Jobs for tests, made the short way."""

from __future__ import annotations

from typing import Any

from django.utils import timezone

from accounts.models import User
from jobs.models import Attempt, Job, TaskState
from jobs.services import editing
from tests import make


def job(
    owner: User, *, name: str = "Training", host: Any = None, gpus: Any = (), **task: Any
) -> Job:
    """A job with one task."""
    host = host or (gpus[0].host if gpus else make.host())
    defaults = {"host": host, "gpus": list(gpus), "command": "python train.py"}
    return editing.create(owner=owner, name=name, tasks=[defaults | task])


def started(owner: User, **fields: Any) -> Job:
    """One that runs, as far as the rows say."""
    made = job(owner, **fields)
    now = timezone.now()
    task = made.tasks.get()
    made.tasks.update(state=TaskState.RUNNING, state_since=now)
    Attempt.objects.create(
        task=task,
        number=1,
        login=owner.login_on_hosts,
        uid=1001,
        pid=4000 + task.pk,
        start_ticks=100,
        boot_id="8b0a1c52-1111-4222-8333-444455556666",
        session=f"th-{task.pk:010d}-e",
        directory=f"/home/{owner.username}/.tensorhive/jobs/x",
        log=f"/home/{owner.username}/.tensorhive/logs/x.log",
        claimed_at=now,
        launching_at=now,
        started_at=now,
    )
    return made
