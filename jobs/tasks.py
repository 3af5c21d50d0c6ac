"""Background tasks of jobs."""

from __future__ import annotations

from django.utils import timezone

from jobs.services import following, launching


def keep_time() -> None:
    """Start and stop what is due, and ring again for starts that nobody answered."""
    now = timezone.now()
    launching.start_due(now)
    following.stop_due(now)
    launching.relaunch_overdue(now)


SCHEDULES = {
    "jobs-keep-time": {
        "func": "jobs.tasks.keep_time",
        "schedule_type": "I",
        "minutes": 1,
        "cluster": "actions",
    },
}
