"""States of jobs and tasks: pure decisions."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable

from django.db import models


class TaskState(models.TextChoices):
    """Of a task; a job's state is derived from those of its tasks."""

    IDLE = "idle"
    QUEUED = "queued"
    STARTING = "starting"
    RUNNING = "running"
    FINISHED = "finished"
    STOPPED = "stopped"
    FAILED = "failed"
    LOST = "lost"
    UNKNOWN = "unknown"


# A job's state is the first of these that one of its tasks has.
_ORDER = (
    TaskState.LOST,
    TaskState.UNKNOWN,
    TaskState.FAILED,
    TaskState.RUNNING,
    TaskState.STARTING,
    TaskState.QUEUED,
    TaskState.STOPPED,
    TaskState.FINISHED,
)
TERM_AFTER = dt.timedelta(seconds=10)
KILL_AFTER = dt.timedelta(seconds=25)
_HARDNESS = {"": 0, "INT": 1, "TERM": 2, "KILL": 3}
_KEY_GONE = (
    "It ended; its exit code cannot be read, because the account does not accept the acting key"
    " any more."
)
_DISAPPEARED = (
    "Its process disappeared without an exit code: it was killed from outside, or the host ran out"
    " of memory, or ends what a login leaves behind."
)


def job_state(states: Iterable[str]) -> TaskState:
    """The state of a job from those of its tasks; a job without tasks is idle."""
    present = set(states)
    return next((state for state in _ORDER if state in present), TaskState.IDLE)


def ended(rc: str | None, *, stopping: bool) -> tuple[TaskState, int | None, str]:
    """State, exit code and sentence of an attempt whose process is gone.

    `rc` is the line in the attempt's file ("rc=7", "running", ""), None when it cannot be read;
    `stopping`: a signal was sent on somebody's request.
    """
    code = _exit_code(rc)
    if stopping:
        return TaskState.STOPPED, code, "Stopped on request."
    if code is not None:
        return TaskState.FINISHED, code, "" if code == 0 else f"Ended with exit code {code}."
    if rc is None:
        return TaskState.FINISHED, None, _KEY_GONE
    if rc.strip() == "running":
        return TaskState.FAILED, None, _DISAPPEARED
    return TaskState.FINISHED, None, "It ended; its exit code is not known: its file is gone."


def stop_signal(age: dt.timedelta) -> str:
    """What to send to a task that was asked to stop so long ago: Ctrl-C, TERM, KILL."""
    if age < TERM_AFTER:
        return "INT"
    return "TERM" if age < KILL_AFTER else "KILL"


def next_signal(sent: str, age: dt.timedelta) -> str | None:
    """The signal that is due now, after the hardest one sent so far; None when none is.

    Each goes out once, but for KILL, which is repeated until nothing is left.
    """
    due = stop_signal(age)
    return due if due == "KILL" or _HARDNESS[due] > _HARDNESS[sent] else None


def _exit_code(rc: str | None) -> int | None:
    text = (rc or "").strip()
    number = text.removeprefix("rc=")
    if text.startswith("rc=") and number.isascii() and number.isdigit() and len(number) < 4:
        return int(number)
    return None
