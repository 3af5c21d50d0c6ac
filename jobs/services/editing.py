"""Creating, changing and deleting jobs."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone

from accounts.models import User
from jobs import commands
from jobs.models import Job, Task
from monitoring import audit, naming
from monitoring.models import Gpu, Host

MAX_TASKS = 200
CHANGEABLE = ("name", "description", "start_at", "stop_at")


class WrongState(Exception):
    """The job is not in a state for this; the text says why, and what to do."""


@transaction.atomic
def create(
    *,
    owner: User,
    name: str,
    tasks: Sequence[Mapping[str, Any]],
    description: str = "",
    start_at: dt.datetime | None = None,
    stop_at: dt.datetime | None = None,
) -> Job:
    """Create a job with its tasks, all or nothing. Raises ValidationError.

    Each task: `host` (Host), `gpus` (Gpu rows of that host), `command`, `env`, `parameters`.
    """
    job = Job(
        name=naming.normalized(name),
        description=naming.normalized(description),
        owner=owner,
        start_at=start_at,
        stop_at=stop_at,
    )
    refuse_past(start_at)
    refuse_wrong_order(start_at, stop_at)
    job.full_clean()
    if not 0 < len(tasks) <= MAX_TASKS:
        raise ValidationError({"tasks": f"A job has between 1 and {MAX_TASKS} tasks."})
    job.save()
    for position, task in enumerate(tasks):
        _add_task(job, position, **task)
    audit.record(actor=owner, action="job.create", target=job, changes={"tasks": [0, len(tasks)]})
    return job


@transaction.atomic
def change(job: Job, *, actor: User, **fields: Any) -> Job:
    """Change name, description, start_at or stop_at of a job that does not run.

    Raises ValidationError and WrongState.
    """
    _refuse_active(job, "changed")
    wanted = {
        field: naming.normalized(value) if isinstance(value, str) else value
        for field, value in fields.items()
        if field in CHANGEABLE
    }
    changes = {
        field: [getattr(job, field), value]
        for field, value in wanted.items()
        if getattr(job, field) != value
    }
    for field, (_, value) in changes.items():
        setattr(job, field, value)
    if "start_at" in changes:
        job.start_handled_at = None
        refuse_past(job.start_at)
    refuse_wrong_order(job.start_at, job.stop_at)
    job.full_clean()
    job.save(update_fields=[*CHANGEABLE, "start_handled_at"])
    if changes:
        audit.record(actor=actor, action="job.change", target=job, changes=changes)
    return job


@transaction.atomic
def delete(job: Job, *, actor: User) -> None:
    """Delete a job none of whose tasks may still run. Raises WrongState."""
    _refuse_active(job, "deleted")
    audit.record(actor=actor, action="job.delete", target=job)
    job.delete()


def _add_task(
    job: Job,
    position: int,
    *,
    host: Host,
    command: str,
    gpus: Sequence[Gpu] = (),
    env: Mapping[str, str] | None = None,
    parameters: Sequence[Mapping[str, str]] = (),
) -> Task:
    commands.validate_command(command)
    commands.validate_env(dict(env or {}))
    commands.validate_parameters(list(parameters))
    if elsewhere := [gpu.uuid for gpu in gpus if gpu.host_id != host.pk]:
        raise ValidationError({"gpus": f"{', '.join(elsewhere)} is not on {host.name}."})
    task = Task(
        job=job,
        position=position,
        host=host,
        command=command,
        env=dict(env or {}),
        parameters=list(parameters),
    )
    task.full_clean()
    task.save()
    task.gpus.set(gpus)
    return task


def refuse_past(start_at: dt.datetime | None) -> None:
    """Refuse a start that lies behind us. Raises ValidationError."""
    if start_at is not None and start_at < timezone.now() - dt.timedelta(minutes=1):
        raise ValidationError({"start_at": "This moment has passed."})


def refuse_wrong_order(start_at: dt.datetime | None, stop_at: dt.datetime | None) -> None:
    """Refuse a stop before the start. Raises ValidationError."""
    if start_at is not None and stop_at is not None and stop_at <= start_at:
        raise ValidationError({"stop_at": "A job must stop after it starts."})


def _refuse_active(job: Job, verb: str) -> None:
    tasks = Task.objects.select_for_update().filter(job=job)
    if any(task.state in Task.ACTIVE for task in tasks):
        raise WrongState(f"The job may still be running; it can be {verb} once it has ended.")
