"""Create a person from the command line."""

from __future__ import annotations

import getpass
import os
import sys
from argparse import ArgumentParser
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError

from accounts.services.people import create_person


class Command(BaseCommand):
    help = (
        "Create a person. The password comes from TENSORHIVE_PASSWORD, from standard input, or is"
        " asked for."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name")
        parser.add_argument("--email", default="")
        parser.add_argument("--admin", action="store_true", help="an administrator")
        parser.add_argument("--unix-login", help="the login on the hosts; default: the name")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            person = create_person(
                actor=None,
                username=options["name"],
                password=_password(),
                email=options["email"],
                is_administrator=options["admin"],
                unix_login=options["unix_login"],
            )
        except ValidationError as error:
            raise CommandError(" ".join(error.messages)) from None
        role = "administrator" if person.is_administrator else "user"
        self.stdout.write(f"{person.username} is a {role} now.")


def _password() -> str:
    if password := os.environ.get("TENSORHIVE_PASSWORD"):
        return password
    if sys.stdin.isatty():
        return getpass.getpass("Password: ")
    return sys.stdin.readline().rstrip("\n")
