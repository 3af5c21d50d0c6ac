"""The demo's data, and (with --hosts) its simulated hosts. `make demo` runs both."""

from __future__ import annotations

import os
import signal
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand
from django.utils import timezone

from monitoring import ssh
from tensorhive_site import processes
from tensorhive_site.demo import seeding
from tensorhive_site.demo.server import Fleet


class Command(BaseCommand):
    help = "Fill an empty installation with the demo, or answer as its simulated hosts (--hosts)."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--hosts", action="store_true", help="serve the hosts until stopped")
        parser.add_argument("--first-port", type=int, default=22200)

    def handle(self, *args: Any, **options: Any) -> None:
        path = Path(settings.DATA_DIR) / "demo" / "host_key"
        if not path.exists():
            ssh.generate_key(path, "tensorhive-demo-hosts")
        if options["hosts"]:
            self._serve(path, options["first_port"])
            return
        made = seeding.seed(
            now=timezone.now(),
            password=os.environ["DEMO_PASSWORD"],
            host_key=ssh.public_line(path),
            first_port=options["first_port"],
        )
        self.stdout.write("The demo is made." if made else "There are hosts already.")

    @staticmethod
    def _serve(path: Path, first_port: int) -> None:
        processes.end_with_parent()
        fleet = Fleet(
            host_key=path,
            let_in=ssh.public_line(settings.OBSERVING_KEY),
            first_port=first_port,
        )
        signal.sigwait({signal.SIGTERM, signal.SIGINT})
        fleet.close()
