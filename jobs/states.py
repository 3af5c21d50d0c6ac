"""States of jobs and tasks: pure decisions."""

from __future__ import annotations

from collections.abc import Iterable

from jobs.models import TaskState

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


def job_state(states: Iterable[str]) -> TaskState:
    """The state of a job from those of its tasks; a job without tasks is idle."""
    present = set(states)
    return next((state for state in _ORDER if state in present), TaskState.IDLE)


def ended(rc: str | None, *, stopping: bool) -> tuple[TaskState, int | None, str]:
    """State, exit code and sentence of an attempt whose process is gone.

    `rc` is the line in the attempt's file ("rc=7", "running", ""), None when it cannot be read.
    """
    code = _exit_code(rc)
    if stopping:
        return TaskState.STOPPED, code, "Stopped on request."
    if code is not None:
        return TaskState.FINISHED, code, "" if code == 0 else f"Ended with exit code {code}."
    if rc is None:
        return (
            TaskState.FINISHED,
            None,
            (
                "It ended; its exit code cannot be read, because the account does not accept the"
                " acting key any more."
            ),
        )
    if rc.strip() == "running":
        return (
            TaskState.FAILED,
            None,
            (
                "Its process disappeared without an exit code: it was killed from outside, or the"
                " host ran out of memory, or ends what a login leaves behind."
            ),
        )
    return TaskState.FINISHED, None, "It ended; its exit code could not be written (disk full?)."


def _exit_code(rc: str | None) -> int | None:
    text = (rc or "").strip()
    number = text.removeprefix("rc=")
    if text.startswith("rc=") and number.isascii() and number.isdigit() and len(number) < 4:
        return int(number)
    return None
