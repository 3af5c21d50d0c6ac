"""Ringing the bell of a cluster. The row is the truth; losing a bell costs one sweep."""

from __future__ import annotations

import functools
from typing import Any

from django.conf import settings
from django.db import transaction
from django_q.tasks import async_task


def ring(task: str, *arguments: Any, cluster: str = "actions") -> None:
    """Queue the background task, by its dotted path, with plain keys as arguments.

    In the database the queued row commits together with the change that caused it; Redis is told
    after the commit, or a worker could look for a row that is not there yet.
    """
    queue = functools.partial(async_task, task, *arguments, cluster=cluster)
    if settings.REDIS_URL:
        transaction.on_commit(queue)
    else:
        queue()
