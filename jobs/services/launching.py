"""Starting tasks: claimed in the database, exactly once on the host.

The claim is an attempt row; the host's claim is the attempt's directory. Whatever dies in between,
the launch can be sent again: the host answers with what it started the first time.
"""

from __future__ import annotations

import datetime as dt
import logging
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Max
from django.utils import timezone

from accounts.models import User
from jobs import commands
from jobs.models import Attempt, Job, Task, TaskState
from jobs.rights import refusal
from jobs.services.editing import WrongState
from monitoring import audit, requests, ssh
from monitoring.models import HostRequest
from monitoring.services.targets import target_of

logger = logging.getLogger(__name__)

REMOTE = Path(__file__).resolve().parent.parent / "remote"
_LAUNCH = (REMOTE / "launch.sh").read_text()
_WRAPPER = (REMOTE / "wrapper.sh").read_text()
_DEADLINE = 30.0
_RETRY_AFTER = dt.timedelta(seconds=45)
# After these nothing can have begun on the host.
_NOTHING_BEGAN = frozenset(
    {
        ssh.Status.REFUSED,
        ssh.Status.UNREACHABLE,
        ssh.Status.DNS,
        ssh.Status.BANNER,
        ssh.Status.HOSTKEY_UNKNOWN,
        ssh.Status.HOSTKEY_CHANGED,
        ssh.Status.AUTH,
    }
)


class Refused(Exception):
    """A rule says no; the text is the sentence."""


@transaction.atomic
def execute(job: Job, *, actor: User | None) -> None:
    """Start all tasks of the job now. Raises WrongState (409) and Refused (422).

    Only rows and bells: the tasks go to `starting`, each with a new attempt.
    """
    tasks = list(job.tasks.select_for_update().order_by("position"))
    if any(task.state in Task.ACTIVE for task in tasks):
        raise WrongState("The job may still be running. Stop it first, or wait for its end.")
    now = timezone.now()
    for task in tasks:
        if sentence := refusal(task, now):
            raise Refused(sentence)
    for task in tasks:
        attempt = _claim(task, now)
        requests.ask("launch_task", host=task.host, arguments={"attempt": attempt.pk})
    audit.record(actor=actor, action="job.execute", target=job)


def handle_launch(request: HostRequest) -> dict[str, Any]:
    """Answer a "launch_task" request. May be asked twice for one attempt."""
    attempt = (
        Attempt.objects.select_related("task__job__owner", "task__host")
        .filter(pk=request.arguments["attempt"], started_at=None, ended_at=None)
        .first()
    )
    if attempt is not None:
        launch(attempt)
    return {}


def launch(attempt: Attempt) -> None:
    """Send the start of an attempt to its host and write down what the host says."""
    task = attempt.task
    if task.stop_requested_at is not None and attempt.launching_at is None:
        _end(attempt, TaskState.STOPPED, "Stopped before it was started.")
        return
    if attempt.launching_at is None and (sentence := refusal(task, timezone.now())):
        _end(attempt, TaskState.FAILED, sentence)
        return
    was_sent_before = attempt.launching_at is not None
    Attempt.objects.filter(pk=attempt.pk).update(launching_at=timezone.now())
    answer = ssh.run(
        target_of(task.host, key="acting", user=attempt.login),
        _LAUNCH,
        arguments=_arguments(attempt),
        deadline=_DEADLINE,
    )
    _take(attempt, answer, was_sent_before=was_sent_before)


def relaunch_overdue(now: dt.datetime) -> None:
    """Ring again for attempts whose start was claimed but never answered."""
    waiting = Attempt.objects.filter(
        started_at=None, ended_at=None, claimed_at__lt=now - _RETRY_AFTER
    ).exclude(launching_at__gt=now - _RETRY_AFTER)
    for attempt in waiting.select_related("task__host"):
        requests.ask("launch_task", host=attempt.task.host, arguments={"attempt": attempt.pk})


def start_due(now: dt.datetime) -> None:
    """Start the jobs whose time has come; each start is claimed, so that it happens once."""
    due = Job.objects.filter(start_at__lte=now, start_handled_at=None)
    for job in due:
        if not Job.objects.filter(pk=job.pk, start_handled_at=None).update(start_handled_at=now):
            continue
        try:
            execute(job, actor=None)
        except (Refused, WrongState) as refused:
            job.tasks.filter(state=TaskState.IDLE).update(
                state=TaskState.FAILED, state_since=now, reason=f"Not started: {refused}"[:500]
            )


def _claim(task: Task, now: dt.datetime) -> Attempt:
    number = (task.attempts.aggregate(Max("number"))["number__max"] or 0) + 1
    attempt = Attempt.objects.create(
        task=task,
        number=number,
        login=task.job.owner.login_on_hosts,
        session=commands.session_name(task.pk),
        claimed_at=now,
    )
    task.state, task.state_since, task.reason = TaskState.STARTING, now, ""
    task.exit_code = task.stop_requested_at = task.stop_requested_by = None
    task.save()
    return attempt


def mark_of(attempt: Attempt) -> str:
    """The value of TENSORHIVE_TASK in the environment of everything the attempt starts."""
    return f"{settings.INSTALLATION}-{attempt.task_id}-{attempt.number}"


def _arguments(attempt: Attempt) -> list[str]:
    task = attempt.task
    environment = commands.environment_text(
        task.env,
        gpu_uuids=task.gpus.values_list("uuid", flat=True),
        job_id=task.job_id,
        mark=mark_of(attempt),
    )
    # Homes may be shared between hosts: the directory's name says which host it is about.
    name = f"{task.host_id}-{attempt.session}-{attempt.number}"
    command = commands.full_command(task.command, task.parameters)
    return [f"{settings.INSTALLATION}-{name}", attempt.session, _WRAPPER, command, environment]


def _take(attempt: Attempt, answer: ssh.Result, *, was_sent_before: bool) -> None:
    word, _, rest = answer.stdout.decode(errors="replace").strip().partition(" ")
    if word in ("started", "running"):
        _started(attempt, rest)
    elif word == "failed":
        _end(attempt, TaskState.FAILED, rest)
    elif answer.status in _NOTHING_BEGAN and not was_sent_before:
        _end(attempt, TaskState.FAILED, f"Not started: {answer.reason}")
    else:
        # The start may have happened: it is asked again, and the host will tell.
        Task.objects.filter(pk=attempt.task_id, state=TaskState.STARTING).update(
            reason=f"Whether it started is not known yet: {answer.reason}"[:500]
        )
        logger.warning("launch of attempt %s: %s", attempt.pk, answer.reason)


@transaction.atomic
def _started(attempt: Attempt, said: str) -> None:
    uid, pid, ticks, boot_id, directory, log, how = said.split(" ", 6)
    now = timezone.now()
    Attempt.objects.filter(pk=attempt.pk, started_at=None).update(
        uid=int(uid),
        pid=int(pid),
        start_ticks=int(ticks),
        boot_id=boot_id[:64],
        directory=directory[:300],
        log=log[:300],
        screen_directory=how.partition(":")[2][:300],
        session=attempt.session if how.startswith("screen") else "",
        started_at=now,
    )
    note = "" if how.startswith("screen") else "The host has no screen: it cannot be attached to."
    Task.objects.filter(pk=attempt.task_id, state__in=Task.ACTIVE).update(
        state=TaskState.RUNNING, state_since=now, reason=note
    )


@transaction.atomic
def _end(attempt: Attempt, state: TaskState, reason: str) -> None:
    now = timezone.now()
    if Attempt.objects.filter(pk=attempt.pk, ended_at=None).update(
        ended_at=now, reason=reason[:500]
    ):
        Task.objects.filter(pk=attempt.task_id).update(
            state=state, state_since=now, reason=reason[:500]
        )
