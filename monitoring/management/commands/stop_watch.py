"""Ask the watches on this machine to end; they do so at their next tick."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from monitoring.watch.leases import request_stop


class Command(BaseCommand):
    help = "Ask the watches on this machine to give their leases back, before the cluster stops."

    def handle(self, *args: Any, **options: Any) -> None:
        self.stdout.write(f"{request_stop()} asked to stop.")
