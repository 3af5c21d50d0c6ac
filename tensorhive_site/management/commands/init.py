"""Make an installation ready: idempotent, asks nothing. manage.py made the secrets before."""

from __future__ import annotations

import os
import secrets
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from accounts.models import User
from accounts.services.grants import ensure_open_grant
from accounts.services.people import create_person
from monitoring import ssh


class Command(BaseCommand):
    help = "Create database, keys, and the first administrator (ADMIN_USERNAME, ADMIN_PASSWORD)."

    def handle(self, *args: Any, **options: Any) -> None:
        call_command("migrate", interactive=False, verbosity=0)
        self._make_keys()
        ensure_open_grant(timezone.now())
        self._make_administrator()
        call_command("sync_schedules", stdout=self.stdout)

    def _make_keys(self) -> None:
        for path, purpose in (
            (settings.OBSERVING_KEY, "tensorhive-observing"),
            (settings.ACTING_KEY, "tensorhive-acting"),
        ):
            if not path.exists():
                ssh.generate_key(path, purpose)
            if problem := ssh.check_key_file(path):
                raise CommandError(problem)

    def _make_administrator(self) -> None:
        if User.objects.filter(is_staff=True).exists():
            return
        username = os.environ.get("ADMIN_USERNAME") or "admin"
        given = os.environ.get("ADMIN_PASSWORD")
        password = given or secrets.token_urlsafe(12)
        try:
            create_person(actor=None, username=username, password=password, is_administrator=True)
        except ValidationError as error:
            raise CommandError(
                f"ADMIN_PASSWORD or ADMIN_USERNAME: {' '.join(error.messages)}"
            ) from None
        shown = (
            "with the password from ADMIN_PASSWORD."
            if given
            else f"password: {password}\n"
            "It is shown this once. Change it under My account after signing in."
        )
        self.stdout.write(
            f"\nThe first administrator is {username}, {shown}\n"
            "Next: put the line that `manage.py ssh_key` prints into ~/.ssh/authorized_keys of an\n"
            "account on each GPU host, then add the hosts: `manage.py add_host --help`.\n"
        )
