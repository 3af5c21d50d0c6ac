"""Following running tasks by evidence on their hosts; asking them to stop, by age.

One look per host: the observing account says which processes are alive, the acting key reads how
the others ended.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from typing import Any

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from accounts.models import User
from jobs import states
from jobs.models import Attempt, Job, Task, TaskState
from jobs.services.editing import WrongState
from jobs.services.launching import REMOTE, mark_of
from monitoring import audit, requests, ssh
from monitoring.models import Host, HostRequest
from monitoring.services.targets import target_of

_ALIVE = (REMOTE / "alive.sh").read_text()
_RESULT = (REMOTE / "result.sh").read_text()
_STOP = (REMOTE / "stop.sh").read_text()
_DEADLINE = 12.0
_OPEN = (HostRequest.State.WAITING, HostRequest.State.RUNNING)


def after_probe(host_ids: Sequence[int], now: dt.datetime) -> None:
    """Have the hosts looked at that run tasks, unless a look is under way there."""
    hosts = (
        Host.objects.filter(
            pk__in=host_ids,
            tasks__attempts__started_at__isnull=False,
            tasks__attempts__ended_at=None,
        )
        .exclude(requests__in=HostRequest.objects.filter(kind="follow_tasks", state__in=_OPEN))
        .distinct()
    )
    for host in hosts:
        requests.ask("follow_tasks", host=host)


def own_processes(host_ids: Sequence[int], now: dt.datetime) -> set[tuple[str, int, int, int]]:
    """Identities (boot id, pid, start ticks, uid) of what the product runs in its right."""
    rows = Attempt.objects.filter(
        task__host__in=host_ids, started_at__isnull=False, ended_at=None, uid__isnull=False
    ).values_list("boot_id", "pid", "start_ticks", "uid")
    return {(boot_id, pid, ticks, uid) for boot_id, pid, ticks, uid in rows}


@transaction.atomic
def stop(job: Job, *, actor: User | None) -> None:
    """Ask every running task of the job to end: as Ctrl-C now, harder later. Raises WrongState."""
    now = timezone.now()
    active = job.tasks.filter(state__in=Task.ACTIVE, stop_requested_at=None)
    count = active.update(
        stop_requested_at=now, stop_requested_by_id=actor.pk if actor is not None else None
    )
    if not count and not job.tasks.filter(state__in=Task.ACTIVE).exists():
        raise WrongState("Nothing of this job is running.")
    for host in Host.objects.filter(tasks__job=job, tasks__state__in=Task.ACTIVE).distinct():
        requests.ask("follow_tasks", host=host)
    audit.record(actor=actor, action="job.stop", target=job)


def stop_due(now: dt.datetime) -> None:
    """Stop the jobs whose end has come."""
    due = Job.objects.filter(
        stop_at__lte=now, tasks__state__in=Task.ACTIVE, tasks__stop_requested_at=None
    ).distinct()
    for job in due:
        stop(job, actor=None)


def handle_follow(request: HostRequest) -> dict[str, Any]:
    """Answer a "follow_tasks" request: one look at everything that runs on the host."""
    attempts = list(
        Attempt.objects.filter(
            task__host=request.host, started_at__isnull=False, ended_at=None
        ).select_related("task__job__owner", "task__host")
    )
    if not attempts or request.host is None:
        return {}
    answer = ssh.run(
        target_of(request.host),
        _ALIVE,
        arguments=[str(value) for one in attempts for value in (one.pid, one.start_ticks)],
        deadline=_DEADLINE,
    )
    words = answer.stdout.decode("ascii", errors="replace").split("\n")
    if not answer.ok or "done" not in words:
        _unknown(attempts, answer.reason or "The host's answer was cut off.")
        return {}
    boot_id = next((word[5:] for word in words if word.startswith("boot ")), "")
    alive = {word.removesuffix(" alive") for word in words if word.endswith(" alive")}
    _sort_out(attempts, boot_id=boot_id, alive=alive)
    return {}


def _sort_out(attempts: Sequence[Attempt], *, boot_id: str, alive: set[str]) -> None:
    gone = []
    for attempt in attempts:
        if attempt.boot_id != boot_id:
            end(attempt, TaskState.LOST, None, "The host was rebooted while it ran.")
        elif str(attempt.pid) in alive:
            _running(attempt)
        else:
            gone.append(attempt)
    for login in sorted({attempt.login for attempt in gone}):
        _read_results([attempt for attempt in gone if attempt.login == login])


def _running(attempt: Attempt) -> None:
    Task.objects.filter(pk=attempt.task_id, state=TaskState.UNKNOWN).update(
        state=TaskState.RUNNING, state_since=timezone.now(), reason=""
    )
    if attempt.task.stop_requested_at is not None:
        _press(attempt)


def _press(attempt: Attempt) -> None:
    """Signal a task that should stop, the harder the longer it was asked."""
    since = attempt.task.stop_requested_at
    age = timezone.now() - since if since else dt.timedelta()
    signal = stop_signal(age)
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
        deadline=_DEADLINE,
    )
    said = answer.stdout.decode("ascii", errors="replace").strip()
    reason = (
        f"Asked to stop ({signal})."
        if said.startswith("sent")
        else (f"Cannot be stopped now: {answer.reason or said}")
    )
    Task.objects.filter(pk=attempt.task_id, state__in=Task.ACTIVE).update(reason=reason[:500])


def stop_signal(age: dt.timedelta) -> str:
    """Ctrl-C first, TERM after 10 seconds, KILL after 25."""
    if age < dt.timedelta(seconds=10):
        return "INT"
    return "TERM" if age < dt.timedelta(seconds=25) else "KILL"


def _read_results(attempts: Sequence[Attempt]) -> None:
    """Read with the acting key how these attempts of one login ended."""
    first = attempts[0]
    answer = ssh.run(
        target_of(first.task.host, key="acting", user=first.login),
        _RESULT,
        arguments=[attempt.directory for attempt in attempts],
        deadline=_DEADLINE,
    )
    lines = answer.stdout.decode("ascii", errors="replace").split("\n")
    if answer.ok and "done" in lines:
        said = dict(line.rpartition(" ")[::2] for line in map(str.rstrip, lines) if " " in line)
        for attempt in attempts:
            _ended(attempt, said.get(attempt.directory, ""))
    elif answer.status is ssh.Status.AUTH:
        for attempt in attempts:
            _ended(attempt, None)
    else:
        _unknown(attempts, answer.reason)


def _ended(attempt: Attempt, rc: str | None) -> None:
    stopping = attempt.task.stop_requested_at is not None
    state, code, reason = states.ended(rc, stopping=stopping)
    end(attempt, state, code, reason)


@transaction.atomic
def end(attempt: Attempt, state: TaskState, code: int | None, reason: str) -> None:
    """Write down that an attempt ended, once."""
    now = timezone.now()
    if Attempt.objects.filter(pk=attempt.pk, ended_at=None).update(
        ended_at=now, exit_code=code, reason=reason[:500]
    ):
        Task.objects.filter(pk=attempt.task_id).update(
            state=state, state_since=now, exit_code=code, reason=reason[:500]
        )


def _unknown(attempts: Iterable[Attempt], reason: str) -> None:
    now = timezone.now()
    for attempt in attempts:
        Task.objects.filter(
            Q(pk=attempt.task_id) & Q(state__in=(TaskState.RUNNING, TaskState.STARTING))
        ).update(state=TaskState.UNKNOWN, state_since=now, reason=reason[:500])
