"""Writing down what became of attempts: each fact once, whoever brings it twice."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable

from django.db import transaction

from jobs.answers import Launched
from jobs.models import Attempt, Task, TaskState

_NO_SCREEN = "It runs without screen, so it cannot be attached to."


@transaction.atomic
def started(attempt: Attempt, said: Launched, now: dt.datetime) -> None:
    """The host says that the attempt's command was started."""
    is_news = Attempt.objects.filter(pk=attempt.pk, started_at=None, ended_at=None).update(
        uid=said.uid,
        pid=said.pid,
        start_ticks=said.start_ticks,
        boot_id=said.boot_id,
        directory=said.directory,
        log=said.log,
        screen_directory=said.screen_directory,
        session=attempt.session if said.has_screen else "",
        started_at=now,
    )
    if is_news:
        Task.objects.filter(pk=attempt.task_id).update(
            state=TaskState.RUNNING,
            state_since=now,
            reason="" if said.has_screen else _NO_SCREEN,
        )


@transaction.atomic
def ended(
    attempt: Attempt, state: TaskState, reason: str, now: dt.datetime, *, code: int | None = None
) -> None:
    """The attempt is over."""
    reason = reason[:500]
    if Attempt.objects.filter(pk=attempt.pk, ended_at=None).update(
        ended_at=now, exit_code=code, reason=reason
    ):
        Task.objects.filter(pk=attempt.task_id).update(
            state=state, state_since=now, exit_code=code, reason=reason
        )


def unknown(attempts: Iterable[Attempt], reason: str, now: dt.datetime) -> None:
    """Nobody can say now what the attempts are doing; `state_since` says since when."""
    Task.objects.filter(
        pk__in=[attempt.task_id for attempt in attempts],
        state__in=(TaskState.RUNNING, TaskState.STARTING),
    ).update(state=TaskState.UNKNOWN, state_since=now, reason=reason[:500])


def running_again(attempt: Attempt, now: dt.datetime) -> None:
    """The attempt was seen alive."""
    Task.objects.filter(pk=attempt.task_id, state=TaskState.UNKNOWN).update(
        state=TaskState.RUNNING,
        state_since=now,
        reason="" if attempt.session else _NO_SCREEN,
    )
