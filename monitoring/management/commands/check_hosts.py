"""Check hosts from the command line: a table, and a status for scripts."""

from __future__ import annotations

from argparse import ArgumentParser
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import connection

from monitoring.models import Host
from monitoring.services import checking


class Command(BaseCommand):
    help = (
        "Log in to every enabled host (or those named) and say what works. Status 1 if any fails."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("names", nargs="*", metavar="NAME")
        parser.add_argument("--verbose", action="store_true", help="every finding, not only faults")

    def handle(self, *args: Any, **options: Any) -> None:
        hosts = self._hosts(options["names"])
        if not hosts:
            self.stdout.write("There are no hosts yet. Add one: manage.py add_host --help")
            return
        with ThreadPoolExecutor(max_workers=16) as pool:
            reports = list(pool.map(_checked, hosts))
        width = max(len(host.name) for host in hosts)
        for host, report in zip(hosts, reports, strict=True):
            self._print(host, report, width=width, verbose=options["verbose"])
        if failed := [
            host.name for host, report in zip(hosts, reports, strict=True) if not report.ok
        ]:
            raise CommandError(f"{len(failed)} of {len(hosts)} failed: {', '.join(failed)}.")

    def _hosts(self, names: list[str]) -> list[Host]:
        if not names:
            return list(Host.objects.filter(is_enabled=True))
        found = list(Host.objects.filter(name__in=names))
        if unknown := sorted(set(names) - {host.name for host in found}):
            raise CommandError(f"No such host: {', '.join(unknown)}.")
        return found

    def _print(self, host: Host, report: checking.Report, *, width: int, verbose: bool) -> None:
        faults = [finding for finding in report.findings if finding.ok is False]
        summary = faults[0].text if faults else _gpus(report)
        self.stdout.write(f"{host.name:<{width}}  {'ok  ' if report.ok else 'FAIL'}  {summary}")
        shown = report.findings if verbose else faults[1:]
        for finding in shown:
            mark = {True: "ok  ", False: "FAIL", None: "note"}[finding.ok]
            self.stdout.write(f"{'':<{width}}  {mark}  {finding.name}: {finding.text}")


def _checked(host: Host) -> checking.Report:
    try:
        return checking.check(host)
    finally:
        connection.close()


def _gpus(report: checking.Report) -> str:
    return next((f.text for f in report.findings if f.name == "GPUs"), "")
