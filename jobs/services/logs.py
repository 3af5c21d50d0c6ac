"""Reading a piece of a task's log from its host, with the acting key."""

from __future__ import annotations

import datetime as dt
import secrets
from typing import Any

from django.utils import timezone

from accounts.models import User
from jobs import answers
from jobs.models import Attempt, Task
from jobs.services.launching import REMOTE
from monitoring import requests, ssh
from monitoring.models import HostRequest
from monitoring.requests import RequestFailed
from monitoring.services.targets import target_of

_LOG = (REMOTE / "log.sh").read_text()
MAX_PIECE = 256 * 1024
MIN_PIECE = 16  # a character always fits
_FRESH = dt.timedelta(seconds=20)


def read(
    task: Task, *, offset: int, limit: int, requested_by: User, seconds: float = requests.PATIENCE
) -> dict[str, Any] | None:
    """`limit` bytes of the newest log from `offset`; a negative offset counts from the end.

    {offset, next_offset, size, text, complete}, or None when the host has not answered within
    `seconds`, or the task is only starting: then ask again. Raises RequestFailed.
    """
    if not _attempt(task.pk).log:
        return None
    request = requests.wait(
        _ask(task, offset=offset, limit=limit, requested_by=requested_by), seconds=seconds
    )
    if request.state == HostRequest.State.FAILED:
        raise RequestFailed(request.reason)
    result = request.result
    # What a job printed does not stay in our database once it was read.
    HostRequest.objects.filter(pk=request.pk, state=HostRequest.State.DONE).update(result=None)
    return result


def handle_read_log(request: HostRequest) -> dict[str, Any]:
    """Answer a "read_log" request; `complete`: nothing more will come."""
    attempt = _attempt(request.arguments["task"])
    limit, mark = request.arguments["limit"], secrets.token_hex(8)
    answer = ssh.run(
        target_of(attempt.task.host, key="acting", user=attempt.login),
        _LOG,
        arguments=[mark, attempt.log, str(request.arguments["offset"]), str(limit)],
        max_bytes=MAX_PIECE + 64 * 1024,
    )
    if not answer.ok:
        raise RequestFailed(f"The log cannot be read now: {answer.reason}")
    try:
        said = answers.parse_log(answer.stdout, mark=mark)
    except ValueError:
        raise RequestFailed("The log cannot be read: the host's answer makes no sense.") from None
    if said is None:
        raise RequestFailed("The log is not there any more; it may have been deleted on the host.")
    return _piece(*said, has_ended=attempt.ended_at is not None)


def _piece(size: int, offset: int, piece: bytes, *, has_ended: bool) -> dict[str, Any]:
    is_end = has_ended and offset + len(piece) >= size
    if not is_end:
        piece = answers.whole_characters(piece)
    return {
        "offset": offset,
        "next_offset": offset + len(piece),
        "size": size,
        # PostgreSQL holds no NUL in a text.
        "text": piece.decode(errors="replace").replace("\0", "\N{REPLACEMENT CHARACTER}"),
        "complete": is_end,
    }


def _ask(task: Task, *, offset: int, limit: int, requested_by: User) -> HostRequest:
    """The person's request for this piece that is under way or was never read, or a new one."""
    arguments = {
        "task": task.pk,
        "offset": offset,
        "limit": max(MIN_PIECE, min(limit, MAX_PIECE)),
    }
    mine = HostRequest.objects.filter(
        kind="read_log", arguments=arguments, requested_by=requested_by
    )
    unread = mine.filter(
        state=HostRequest.State.DONE,
        result__isnull=False,
        finished_at__gt=timezone.now() - _FRESH,
    )
    same = (mine.filter(state__in=requests.OPEN) | unread).first()
    return same or requests.ask(
        "read_log", host=task.host, arguments=arguments, requested_by=requested_by
    )


def _attempt(task_pk: int) -> Attempt:
    """The newest attempt of the task; `log` is empty while it is not known to have started."""
    attempt = (
        Attempt.objects.filter(task=task_pk).select_related("task__host").order_by("number").last()
    )
    if attempt is None or (attempt.ended_at is not None and not attempt.log):
        raise RequestFailed("There is no log: the task has not started.")
    return attempt
