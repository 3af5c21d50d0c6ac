"""Print the line that lets TensorHive in."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from monitoring import ssh


class Command(BaseCommand):
    help = (
        "Print a line for ~/.ssh/authorized_keys: of the observing account on each host, or with"
        " --acting of a person who wants jobs to run in their name."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--acting", action="store_true", help="the key that opens people's own accounts"
        )
        parser.add_argument(
            "--jump", action="store_true", help="the line for a jump host, which must forward"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        path = settings.ACTING_KEY if options["acting"] else settings.OBSERVING_KEY
        if problem := ssh.check_key_file(path):
            raise CommandError(f"{problem} `manage.py init` creates the keys.")
        line = ssh.public_line(path)
        allowed = "restrict,port-forwarding" if options["jump"] else "restrict"
        self.stdout.write(f"{allowed} {line}")
        self.stderr.write(f"Fingerprint: {ssh.fingerprint(line)}")
