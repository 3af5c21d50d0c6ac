"""Background tasks of reservations and enforcement."""

from __future__ import annotations

from django.utils import timezone

from reservations.services import warning


def fail_overdue_steps() -> None:
    """End steps whose worker died in between."""
    warning.fail_overdue(timezone.now())


SCHEDULES = {
    "reservations-fail-overdue-steps": {
        "func": "reservations.tasks.fail_overdue_steps",
        "schedule_type": "I",
        "minutes": 1,
        "cluster": "slow",
    },
}
