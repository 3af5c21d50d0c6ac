"""Background tasks of jobs."""

from __future__ import annotations

from django.utils import timezone

from jobs.services import following, launching, stopping


def keep_time() -> None:
    """Start and stop what is due, ring again for unanswered starts, look at all that runs."""
    now = timezone.now()
    launching.start_due(now)
    stopping.stop_due(now)
    launching.relaunch_overdue(now)
    following.look_everywhere(now)


SCHEDULES = {
    "jobs-keep-time": {
        "func": "jobs.tasks.keep_time",
        "schedule_type": "I",
        "minutes": 1,
        "cluster": "actions",
    },
}
