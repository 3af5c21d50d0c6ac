"""A watch on the lab's hosts for tests: rows made, the loop run beside the test."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.db import connection

from monitoring import ssh
from monitoring.models import Host, HostKey, WatchLease
from monitoring.watch.leases import request_stop
from monitoring.watch.loop import watch
from tests.lab import Lab, LabHost


def use_keys_of(lab: Lab, settings: Any) -> None:
    """Log in with the lab's keys, quickly enough for a test."""
    settings.OBSERVING_KEY = lab.observing_key
    settings.ACTING_KEY = lab.acting_key


def add(lab: Lab, of: LabHost, *, accept: bool = True, **fields: Any) -> Host:
    """The row of a lab host, its key accepted."""
    from django.utils import timezone

    host = Host.objects.create(
        name=of.name, address=of.address, port=of.port, user=lab.observer, **fields
    )
    now = timezone.now()
    for line in of.public_keys:
        key_type, public_key = line.split()[:2]
        HostKey.objects.create(
            host=host,
            address=of.address,
            port=of.port,
            key_type=key_type,
            public_key=public_key,
            fingerprint=ssh.fingerprint(line),
            seen_at=now,
            accepted_at=now if accept else None,
        )
    return host


@contextmanager
def watched(seconds: float = 60.0, shard: int = 0) -> Iterator[threading.Thread]:
    """The loop in a thread of its own while the test goes on; asked to stop at the end."""
    ended: list[str] = []

    def run() -> None:
        try:
            ended.append(watch(shard, segment=seconds))
        finally:
            connection.close()

    thread = threading.Thread(target=run, name="watch")
    thread.start()
    wait_until(lambda: WatchLease.objects.filter(shard=shard).exclude(holder="").exists() or ended)
    try:
        yield thread
    finally:
        request_stop()
        thread.join(30)
        assert not thread.is_alive(), "the watch did not stop"


_PROGRAM = """
import pathlib, sys, django
django.setup()
from django.conf import settings
from django.db import connection
from monitoring.watch.loop import watch
connection.settings_dict["NAME"] = sys.argv[1]
settings.OBSERVING_KEY = pathlib.Path(sys.argv[2])
settings.AFTER_PROBE = []
print(watch(0))
"""


@contextmanager
def watching_process(lab: Lab, **environment: str) -> Iterator[subprocess.Popen[str]]:
    """A watch in a process of its own; on its standard output stands why it ended."""
    process = subprocess.Popen(
        [sys.executable, "-c", _PROGRAM, connection.settings_dict["NAME"], lab.observing_key],
        env={**os.environ, **environment},
        cwd=Path(__file__).resolve().parent.parent.parent,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def wait_until(holds: Callable[[], object], *, seconds: float = 30.0, what: str = "") -> Any:
    """Wait until the condition holds, and give its value; fail after the (generous) time."""
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        if value := holds():
            return value
        time.sleep(0.1)
    raise AssertionError(f"{what or 'the condition'} did not hold within {seconds} s")


def state_of(host: Host) -> str:
    return Host.objects.values_list("state", flat=True).get(pk=host.pk)
