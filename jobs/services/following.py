"""Following running tasks by evidence on their hosts.

One look per host: the observing account says which processes are alive, the acting key reads how
the others ended.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

from django.utils import timezone

from jobs import answers, states
from jobs.models import Attempt, TaskState
from jobs.services import recording, stopping
from jobs.services.launching import REMOTE
from monitoring import requests, ssh
from monitoring.models import Host, HostRequest
from monitoring.services.targets import target_of

_ALIVE = (REMOTE / "alive.sh").read_text()
_RESULT = (REMOTE / "result.sh").read_text()
# Of a host in one of these states nothing can be learned; the watch says why.
_SILENT = frozenset({Host.State.UNREACHABLE, Host.State.KEY_CHANGED, Host.State.AUTH_FAILED})


def after_probe(host_ids: Sequence[int], now: dt.datetime) -> None:
    """Look at those of the hosts that run tasks."""
    _look_at(Host.objects.filter(pk__in=host_ids), now)


def look_everywhere(now: dt.datetime) -> None:
    """The same for all hosts: some are not probed, or their watch has died."""
    _look_at(Host.objects.all(), now)


def own_processes(host_ids: Sequence[int], now: dt.datetime) -> set[tuple[str, int, int, int]]:
    """Identities (boot id, pid, start ticks, uid) of what the product runs in its right."""
    rows = Attempt.objects.filter(task__host__in=host_ids, started_at__isnull=False, ended_at=None)
    return {
        (row.boot_id, pid, ticks, row.uid)
        for row in rows
        if row.pid and row.start_ticks and row.uid
        for pid, ticks in [[row.pid, row.start_ticks], *row.processes]
    }


def handle_follow(request: HostRequest) -> dict[str, Any]:
    """Answer a "follow_tasks" request: one look at everything that runs on the host."""
    attempts = list(_followed().filter(task__host=request.host).order_by("pk"))
    if not attempts or request.host is None:
        return {}
    answer = ssh.run(
        target_of(request.host),
        _ALIVE,
        arguments=[str(value) for one in attempts for value in (one.pid, one.start_ticks)],
    )
    look = answers.parse_look(answer.stdout) if answer.ok else None
    if look is None:
        reason = answer.reason or "The host's answer was cut off."
        recording.unknown(attempts, reason, timezone.now())
    else:
        _sort_out(attempts, look)
    return {}


def _look_at(hosts: Any, now: dt.datetime) -> None:
    busy = HostRequest.objects.filter(kind="follow_tasks", state__in=requests.OPEN)
    with_tasks = hosts.filter(pk__in=_followed().values("task__host"))
    for host in with_tasks.exclude(requests__in=busy):
        if host.state in _SILENT:
            recording.unknown(_followed().filter(task__host=host), host.reason, now)
        else:
            requests.ask("follow_tasks", host=host)


def _followed() -> Any:
    """The attempts that were started and not seen to end."""
    return Attempt.objects.filter(started_at__isnull=False, ended_at=None).select_related(
        "task__job__owner", "task__host"
    )


def _sort_out(attempts: Iterable[Attempt], look: answers.Look) -> None:
    gone = []
    for attempt in attempts:
        if attempt.boot_id != look.boot_id:
            reason = "The host was rebooted while it ran."
            recording.ended(attempt, TaskState.LOST, reason, timezone.now())
        elif attempt.pid in look.alive:
            _is_running(attempt, look.sessions.get(attempt.pid or 0, []))
        elif attempt.task.stop_requested_at is None or stopping.nothing_is_left(attempt):
            gone.append(attempt)
    gone.sort(key=lambda attempt: attempt.login)
    for _, of_login in groupby(gone, key=lambda attempt: attempt.login):
        _read_results(list(of_login), is_blind=look.is_blind)


def _is_running(attempt: Attempt, processes: list[list[int]]) -> None:
    if processes != attempt.processes:
        Attempt.objects.filter(pk=attempt.pk).update(processes=processes)
    recording.running_again(attempt, timezone.now())
    if attempt.task.stop_requested_at is not None:
        stopping.press(attempt)


def _read_results(attempts: Sequence[Attempt], *, is_blind: bool) -> None:
    """Read with the acting key how these attempts of one login ended."""
    first = attempts[0]
    answer = ssh.run(
        target_of(first.task.host, key="acting", user=first.login),
        _RESULT,
        arguments=[
            str(value) for one in attempts for value in (one.pid, one.start_ticks, one.directory)
        ],
    )
    said = answers.parse_results(answer.stdout) if answer.ok else None
    if said is not None:
        for attempt in attempts:
            _take_result(attempt, said)
    elif answer.status is ssh.Status.AUTH and not is_blind:
        for attempt in attempts:
            _take_ended(attempt, None)
    else:
        recording.unknown(attempts, answer.reason or "The answer makes no sense.", timezone.now())


def _take_result(attempt: Attempt, said: dict[int, str | None]) -> None:
    pid = attempt.pid or 0
    if pid in said and said[pid] is None:  # alive; only the observing account could not see it
        _is_running(attempt, [])
    else:
        _take_ended(attempt, said.get(pid) or "")


def _take_ended(attempt: Attempt, rc: str | None) -> None:
    state, code, reason = states.ended(rc, stopping=bool(attempt.stop_signal))
    recording.ended(attempt, state, reason, timezone.now(), code=code)
