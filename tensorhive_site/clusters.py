"""The django-q2 clusters and how their numbers follow from each other (no Django import here)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Size:
    """One cluster: worker processes, and the limit of one background task in seconds."""

    workers: int
    timeout: int
    recycle: int = 500
    # Its long tasks leave one worker idle, and may run twice because a lease guards them.
    has_spare_worker: bool = False

    @property
    def safe_retry(self) -> int:
        """Seconds after which a task that was not acknowledged runs again.

        django-q2 starts this clock when a task is fetched, not when it begins, so a short one runs
        a waiting task twice.
        """
        if self.has_spare_worker:
            return self.timeout + 60
        waiting_turns = math.ceil((self.workers + 1) / self.workers)
        return self.timeout * (waiting_turns + 1) + 60


def configuration(
    sizes: Mapping[str, Size], *, redis_url: str, poll: float, time_zone: str
) -> dict[str, Any]:
    """The Q_CLUSTER setting: what all clusters share, and each cluster by name.

    Tasks that name no cluster go to "actions", the one that answers people.
    """
    shared: dict[str, Any] = {
        "name": "actions",
        "bulk": 1,
        "max_attempts": 1,
        "ack_failures": True,
        "catch_up": False,
        "save_limit": -1,
        "poll": poll,
        "guard_cycle": 1,
        "time_zone": time_zone,
        "label": "Background tasks",
        "error_reporter": {},
    }
    if redis_url:
        shared["redis"] = redis_url
    else:
        shared["orm"] = "default"
    named = {
        name: {
            "workers": size.workers,
            "queue_limit": size.workers,
            "timeout": size.timeout,
            "retry": size.safe_retry,
            "recycle": size.recycle,
        }
        for name, size in sizes.items()
    }
    return {**shared, **named["actions"], "ALT_CLUSTERS": named}
