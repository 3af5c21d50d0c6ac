"""Reading a piece of a task's log from its host, with the acting key."""

from __future__ import annotations

from typing import Any

from jobs.models import Attempt, Task
from jobs.services.launching import REMOTE
from monitoring import requests, ssh
from monitoring.models import HostRequest
from monitoring.requests import RequestFailed
from monitoring.services.targets import target_of

_LOG = (REMOTE / "log.sh").read_text()
MAX_PIECE = 256 * 1024
_DEADLINE = 12.0


def ask(task: Task, *, offset: int, limit: int, requested_by: Any) -> HostRequest:
    """Ask for `limit` bytes from `offset`; an open request for the same piece is taken up again.

    A negative offset counts from the end.
    """
    arguments = {"task": task.pk, "offset": offset, "limit": min(limit, MAX_PIECE)}
    same = HostRequest.objects.filter(
        kind="read_log",
        arguments=arguments,
        requested_by=requested_by,
        state__in=(HostRequest.State.WAITING, HostRequest.State.RUNNING),
    ).first()
    return same or requests.ask(
        "read_log", host=task.host, arguments=arguments, requested_by=requested_by
    )


def handle_read_log(request: HostRequest) -> dict[str, Any]:
    """Answer: {offset, next_offset, size, text, complete}; `complete`: nothing more will come."""
    attempt = _attempt(request.arguments["task"])
    offset, limit = request.arguments["offset"], request.arguments["limit"]
    answer = ssh.run(
        target_of(attempt.task.host, key="acting", user=attempt.login),
        _LOG,
        arguments=[attempt.log, str(offset), str(limit)],
        deadline=_DEADLINE,
        max_bytes=MAX_PIECE + 1024,
    )
    if not answer.ok:
        raise RequestFailed(f"The log cannot be read now: {answer.reason}")
    head, _, piece = answer.stdout.partition(b"\n")
    if head.strip() == b"missing":
        raise RequestFailed("The log is not there any more; it may have been deleted on the host.")
    words = head.split()
    size, begin = int(words[1]), int(words[2])
    piece = _whole_characters(piece)
    following = begin + len(piece)
    return {
        "offset": begin,
        "next_offset": following,
        "size": size,
        # PostgreSQL holds no NUL in a text.
        "text": piece.decode(errors="replace").replace("\0", "\N{REPLACEMENT CHARACTER}"),
        "complete": attempt.ended_at is not None and following >= size,
    }


def _attempt(task_pk: int) -> Attempt:
    attempt = (
        Attempt.objects.filter(task=task_pk).select_related("task__host").order_by("number").last()
    )
    if attempt is None or not attempt.log:
        raise RequestFailed("There is no log yet: the task has not started.")
    return attempt


def _whole_characters(piece: bytes) -> bytes:
    """Without a UTF-8 character cut off at the end; it comes with the next piece."""
    for length in range(1, min(4, len(piece) + 1)):
        byte = piece[-length]
        if byte >= 0xC0:
            needs = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return piece[:-length] if needs > length else piece
        if byte < 0x80:
            break
    return piece
