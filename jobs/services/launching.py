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
from jobs import answers, commands
from jobs.models import Attempt, Job, Task, TaskState
from jobs.rights import refusal
from jobs.services import recording
from jobs.services.editing import WrongState
from monitoring import audit, requests, ssh
from monitoring.models import HostRequest
from monitoring.services.targets import target_of

logger = logging.getLogger(__name__)

REMOTE = Path(__file__).resolve().parent.parent / "remote"
_LAUNCH = (REMOTE / "launch.sh").read_text()
_WRAPPER = (REMOTE / "wrapper.sh").read_text()
_RETRY_AFTER = dt.timedelta(seconds=45)


class Refused(Exception):
    """A rule says no; the text is the sentence."""


@transaction.atomic
def execute(job: Job, *, actor: User | None) -> None:
    """Start all tasks of the job now. Raises WrongState (409) and Refused (422).

    Only rows and bells: the tasks go to `starting`, each with a new attempt.
    """
    now = timezone.now()
    tasks = list(
        job.tasks.select_for_update(of=("self",))
        .select_related("host", "job__owner")
        .order_by("position")
    )
    if any(task.state in Task.ACTIVE for task in tasks):
        raise WrongState("The job may still be running. Stop it first, or wait for its end.")
    if job.stop_at is not None and job.stop_at <= now:
        raise Refused("Its time to stop has passed; change or clear that first.")
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
    task, now, sent_before = attempt.task, timezone.now(), attempt.launching_at
    if sent_before is None:
        if task.stop_requested_at is not None:
            recording.ended(attempt, TaskState.STOPPED, "Stopped before it was started.", now)
            return
        if sentence := refusal(task, now):
            recording.ended(attempt, TaskState.FAILED, sentence, now)
            return
    same = Attempt.objects.filter(pk=attempt.pk, launching_at=sent_before, ended_at=None)
    if not same.update(launching_at=now):
        return  # another worker is at it
    answer = ssh.run(
        target_of(task.host, key="acting", user=attempt.login),
        _LAUNCH,
        arguments=_arguments(attempt),
    )
    _take(attempt, answer, was_sent_before=sent_before is not None)


def relaunch_overdue(now: dt.datetime) -> None:
    """Ring again for attempts whose start was claimed but never answered."""
    open_requests = HostRequest.objects.filter(kind="launch_task", state__in=requests.OPEN)
    asked = {request.arguments["attempt"] for request in open_requests}
    waiting = Attempt.objects.filter(
        started_at=None, ended_at=None, claimed_at__lt=now - _RETRY_AFTER
    ).exclude(launching_at__gt=now - _RETRY_AFTER)
    for attempt in waiting.exclude(pk__in=asked).select_related("task__host"):
        requests.ask("launch_task", host=attempt.task.host, arguments={"attempt": attempt.pk})


def start_due(now: dt.datetime) -> None:
    """Start the jobs whose time has come, each once."""
    for job in Job.objects.filter(start_at__lte=now, start_handled_at=None):
        _start_due(job, now)


@transaction.atomic
def _start_due(job: Job, now: dt.datetime) -> None:
    """Claim and start together, so that a worker that dies in between has done neither."""
    if not Job.objects.filter(pk=job.pk, start_handled_at=None).update(start_handled_at=now):
        return
    try:
        execute(job, actor=None)
    except WrongState:
        logger.info("job %s was running already when its time came", job.pk)
    except Refused as refused:
        job.tasks.exclude(state__in=Task.ACTIVE).update(
            state=TaskState.FAILED,
            state_since=now,
            exit_code=None,
            reason=f"Not started: {refused}"[:500],
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
    Task.objects.filter(pk=task.pk).update(
        state=TaskState.STARTING,
        state_since=now,
        reason="",
        exit_code=None,
        stop_requested_at=None,
        stop_requested_by=None,
    )
    return attempt


def mark_of(attempt: Attempt) -> str:
    """The attempt's name on the host: of its directory, and TENSORHIVE_TASK in its environment.

    The moment keeps two installations, or one that went back to a backup, apart where they meet in
    one account; a directory shared between hosts holds each task once.
    """
    moment = f"{attempt.claimed_at.astimezone(dt.UTC):%Y%m%dT%H%M%S%f}"
    return f"{settings.INSTALLATION}-{attempt.task_id}-{attempt.number}-{moment}"


def _arguments(attempt: Attempt) -> list[str]:
    task, mark = attempt.task, mark_of(attempt)
    environment = commands.environment_text(
        task.env,
        gpu_uuids=task.gpus.order_by("index", "pk").values_list("uuid", flat=True),
        job_id=task.job_id,
        mark=mark,
    )
    command = commands.full_command(task.command, task.parameters)
    return [mark, attempt.session, _WRAPPER, command, environment]


def _take(attempt: Attempt, answer: ssh.Result, *, was_sent_before: bool) -> None:
    now, said = timezone.now(), answers.parse_launch(answer.stdout)
    if isinstance(said, answers.Launched):
        recording.started(attempt, said, now)
    elif said is not None and said.is_certain:
        recording.ended(attempt, TaskState.FAILED, said.sentence, now)
    elif answer.phase != "command" and not was_sent_before:
        recording.ended(attempt, TaskState.FAILED, f"Not started: {answer.reason}", now)
    else:
        # The start may have happened: it is asked again, and the host will tell.
        why = said.sentence if said else answer.reason or "the answer makes no sense."
        recording.unknown([attempt], f"Whether it started is not known yet: {why}", now)
        logger.warning("launch of attempt %s: %s", attempt.pk, why)
