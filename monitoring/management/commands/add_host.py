"""Add a host from the command line."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError

from monitoring.models import Host
from monitoring.services import checking, host_keys, hosts, importing


class Command(BaseCommand):
    help = (
        "Add a host and show the fingerprint of its key. Nothing logs in there until the key is"
        " accepted: with --accept-key, or in the console."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name", help="or, with --from-ssh-config, a pattern such as gpu*")
        parser.add_argument("--address", help="host name or IP address")
        parser.add_argument("--port", type=int, default=22)
        parser.add_argument("--user", help="the observing account there")
        parser.add_argument("--jump", metavar="USER@HOST:PORT", help="a host to go through")
        parser.add_argument(
            "--accept-key", action="store_true", help="trust the key that the host offers now"
        )
        parser.add_argument(
            "--from-ssh-config",
            metavar="FILE",
            type=Path,
            help="add the hosts of this OpenSSH configuration that fit; it is read, not obeyed",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["from_ssh_config"] is not None:
            self._import(options)
            return
        if not options["address"] or not options["user"]:
            raise CommandError("Give --address and --user, or --from-ssh-config FILE.")
        host = self._added(options)
        report = self._look(host, accept=options["accept_key"])
        for finding in report.findings:
            mark = {True: "ok  ", False: "FAIL", None: "note"}[finding.ok]
            self.stdout.write(f"{mark}  {finding.name}: {finding.text}")
        if not report.ok:
            raise CommandError(self._what_now(host), returncode=1)
        self.stdout.write(f"{host.name} is watched from now on.")

    def _import(self, options: dict[str, Any]) -> None:
        try:
            text = options["from_ssh_config"].read_text(errors="replace")
        except OSError as error:
            raise CommandError(f"The file cannot be read: {error.strerror}.") from None
        found = importing.import_ssh_config(
            text, pattern=options["name"], user=options["user"], actor=None
        )
        added = [one.host for one in found if one.host is not None]
        for one in found:
            self.stdout.write(one.reason or f"{one.alias} is added.")
        for host in added if options["accept_key"] else ():
            report = self._look(host, accept=True)
            self.stdout.write(f"{host.name}: {'is watched' if report.ok else self._what_now(host)}")
        self.stdout.write(f"{len(added)} hosts added.")
        if failed := [one for one in found if one.host is None and not one.was_there]:
            raise CommandError(f"{len(failed)} could not be added; see above.")

    def _added(self, options: dict[str, Any]) -> Host:
        try:
            jump = hosts.parse_jump(options["jump"]) if options["jump"] else {}
            fields = {field: options[field] for field in ("name", "address", "port", "user")} | jump
            return self._known(fields) or hosts.add(actor=None, **fields)
        except ValidationError as error:
            raise CommandError(" ".join(error.messages)) from None

    @staticmethod
    def _known(fields: dict[str, Any]) -> Host | None:
        """The same host from an earlier run, of which no key is trusted yet."""
        host = Host.objects.filter(name=fields["name"]).first()
        if host is None:
            return None
        direct = {"jump_address": "", "jump_user": ""}
        is_same = all(getattr(host, field) == value for field, value in (direct | fields).items())
        # A key that was trusted once is replaced by a person who compares, never by a script.
        if is_same and not host.keys.exclude(accepted_at=None).exists():
            return host
        raise CommandError(
            f"There is a host {host.name} already, {host.user}@{host.address}:{host.port}. Change"
            f" it in the console; manage.py check_hosts {host.name} says what works."
        )

    def _look(self, host: Host, *, accept: bool) -> checking.Report:
        report = checking.fetch_keys(host)
        # Twice where there is a jump host: its key opens the way to the host's own.
        for _ in range(2 if host.jump_address else 1):
            if not accept or not host_keys.accept_all_pending(host, actor=None):
                break
            report = checking.check(host)
        else:
            return report
        self._mark_key_unknown(host)
        return report

    @staticmethod
    def _mark_key_unknown(host: Host) -> None:
        if keys := host_keys.pending(host):
            hosts.set_key_unknown(host, keys[0])

    @staticmethod
    def _what_now(host: Host) -> str:
        if host_keys.pending(host):
            return (
                f"{host.name} is stored, but nothing logs in there until an administrator accepts"
                f" its key: in the console, or here by the same command with --accept-key."
            )
        return f"{host.name} is stored but cannot be watched yet; it is tried again by itself."
