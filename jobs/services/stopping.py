"""Stopping tasks: asked once, then Ctrl-C, TERM and KILL by the age of the request."""

from __future__ import annotations

import datetime as dt

from django.db import transaction
from django.utils import timezone

from accounts.models import User
from jobs import answers, states
from jobs.models import Attempt, Job, Task
from jobs.services.editing import WrongState
from jobs.services.launching import REMOTE, mark_of
from monitoring import audit, requests, ssh
from monitoring.models import Host
from monitoring.services.targets import target_of

_STOP = (REMOTE / "stop.sh").read_text()


@transaction.atomic
def stop(job: Job, *, actor: User | None) -> None:
    """Ask every running task of the job to end: as Ctrl-C now, harder later. Raises WrongState."""
    active = job.tasks.filter(state__in=Task.ACTIVE)
    if not active.exists():
        raise WrongState("Nothing of this job is running.")
    active.filter(stop_requested_at=None).update(
        stop_requested_at=timezone.now(), stop_requested_by=actor
    )
    for host in Host.objects.filter(tasks__in=active).distinct():
        requests.ask("follow_tasks", host=host)
    audit.record(actor=actor, action="job.stop", target=job)


def stop_due(now: dt.datetime) -> None:
    """Stop the jobs whose end has come."""
    running = Task.objects.filter(state__in=Task.ACTIVE, stop_requested_at=None)
    for job in Job.objects.filter(stop_at__lte=now, tasks__in=running).distinct():
        try:
            stop(job, actor=None)
        except WrongState:  # it ended meanwhile
            continue


def press(attempt: Attempt) -> None:
    """Send a running attempt the signal that is due, if any."""
    signal = _claim_signal(attempt)
    if signal is not None:
        _send(attempt, signal)


def nothing_is_left(attempt: Attempt) -> bool:
    """Whether none of its children outlived the attempt; those that did get what is due.

    Where the account cannot be asked, the attempt's own process counts alone.
    """
    answer = _send(attempt, _claim_signal(attempt) or "0")
    return answer == "gone" or answer == ssh.Status.AUTH


def _claim_signal(attempt: Attempt) -> str | None:
    """The signal to send now. Written down before it is sent, so that no worker sends it twice."""
    asked_at = attempt.task.stop_requested_at
    age = timezone.now() - asked_at if asked_at else dt.timedelta()
    signal = states.next_signal(attempt.stop_signal, age)
    same = Attempt.objects.filter(pk=attempt.pk, stop_signal=attempt.stop_signal)
    if signal is None or not same.update(stop_signal=signal):
        return None
    attempt.stop_signal = signal
    return signal


def _send(attempt: Attempt, signal: str) -> str:
    """What came of it: "sent", "gone", "failed", or the status of a host that did not answer."""
    answer = ssh.run(
        target_of(attempt.task.host, key="acting", user=attempt.login),
        _STOP,
        arguments=[
            str(attempt.pid),
            str(attempt.start_ticks),
            attempt.boot_id,
            signal,
            f"TENSORHIVE_TASK={mark_of(attempt)}",
        ],
    )
    word, rest = answers.parse_stop(answer.stdout) if answer.ok else (str(answer.status), "")
    reason = {
        "sent": f"Asked to stop ({attempt.stop_signal}).",
        "gone": "",
    }.get(word, f"Cannot be stopped now: {answer.reason or rest or 'the answer makes no sense.'}")
    if reason:
        Task.objects.filter(pk=attempt.task_id, state__in=Task.ACTIVE).update(reason=reason[:500])
    return word
