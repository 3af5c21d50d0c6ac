"""Bring the schedules in the database in line with the code; they are never edited by hand."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

from django.apps import apps
from django.core.management.base import BaseCommand
from django.db import transaction
from django_q.models import Schedule

# A schedule of ours is told from others by the beginning of what it calls.
_OURS = ("monitoring.", "accounts.", "reservations.", "jobs.", "tensorhive_site.")


def schedules() -> dict[str, dict[str, Any]]:
    """All SCHEDULES of the apps' tasks modules, by name."""
    found: dict[str, dict[str, Any]] = {}
    for config in apps.get_app_configs():
        name = f"{config.name}.tasks"
        if name.startswith(_OURS) and importlib.util.find_spec(name):
            found |= getattr(importlib.import_module(name), "SCHEDULES", {})
    return found


class Command(BaseCommand):
    help = "Create, update and remove the schedules of background tasks."

    @transaction.atomic
    def handle(self, *args: Any, **options: Any) -> None:
        wanted = schedules()
        # One at a time: nothing unique guards the names.
        known = {row.name: row for row in Schedule.objects.select_for_update()}
        for name, fields in wanted.items():
            row = known.get(name) or Schedule(name=name)
            for field, value in {"repeats": -1, **fields}.items():
                setattr(row, field, value)
            row.save()
        gone = [
            row.pk
            for name, row in known.items()
            if name not in wanted and row.func.startswith(_OURS)
        ]
        Schedule.objects.filter(pk__in=gone).delete()
        self.stdout.write(f"{len(wanted)} schedules are in place.")
