"""What an administrator looks at first when something is wrong."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import environ
from django.conf import settings
from django.core.checks import ERROR, CheckMessage, run_checks
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from monitoring import ssh
from tensorhive_site import health, secrets_file

_SETTING = re.compile(r"^#? ?([A-Z][A-Z_]+)=", re.MULTILINE)
_SECRET = re.compile(r"SECRET|KEY$|TOKEN$|PASSWORD")
_PASSWORD_IN_URL = re.compile(r"(://[^/@]*:)[^/@]*@")


class Command(BaseCommand):
    help = "Check the installation: settings and their sources, keys, database, clusters, probes."
    requires_system_checks = []  # they are the subject

    def handle(self, *args: Any, **options: Any) -> None:
        self.stdout.write("Settings that differ from their defaults")
        for name, value, source in _chosen_settings():
            self.stdout.write(f"  {name}={value}  ({source})")
        self.stdout.write("Parts")
        parts = dict(_parts())
        for name, problem in parts.items():
            self.stdout.write(f"  {name}: {problem or 'ok'}")
        checked = run_checks(include_deployment_checks=True, databases=["default"])
        found = [message for message in checked if not message.is_silenced()]
        self.stdout.write("Checks")
        for message in found:
            self.stdout.write(f"  {_line(message)}")
        errors = sum(message.level >= ERROR for message in found) + sum(map(bool, parts.values()))
        if errors:
            raise CommandError(f"{errors} problems need a hand.")
        self.stdout.write("  nothing that must be mended")


def _chosen_settings() -> Iterator[tuple[str, str, str]]:
    """Name, value with secrets masked, and where it comes from."""
    files = {
        ".env": _read(secrets_file.env_file()),
        "secrets.env": _read(settings.DATA_DIR / "secrets.env"),
    }
    example = (settings.BASE_DIR / ".env.example").read_text()
    for name in dict.fromkeys([*_SETTING.findall(example), *files["secrets.env"]]):
        if (value := os.environ.get(name)) is None:
            continue
        # The environment wins over the files, and what is in it came from one of the three.
        sources = [file for file, values in files.items() if values.get(name) == value]
        yield name, _masked(name, value), sources[0] if sources else "environment"


def _read(path: Path) -> dict[str, str]:
    class File(environ.Env):
        ENVIRON: dict[str, str] = {}

    if path.exists():
        File.read_env(path)
    return File.ENVIRON


def _masked(name: str, value: str) -> str:
    return "•••" if _SECRET.search(name) else _PASSWORD_IN_URL.sub(r"\1•••@", value)


def _parts() -> Iterator[tuple[str, str | None]]:
    for path in (settings.OBSERVING_KEY, settings.ACTING_KEY):
        yield f"{path.name} key", ssh.check_key_file(path)
    for name, part in health.report(timezone.now()).items():
        yield name.replace("_", " "), None if part["ok"] else part["reason"]


def _line(message: CheckMessage) -> str:
    kind = "ERROR" if message.level >= ERROR else "warning"
    hint = f" {message.hint}" if message.hint else ""
    return f"{kind} {message.id}: {message.msg}{hint}"
