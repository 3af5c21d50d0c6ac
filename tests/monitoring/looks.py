"""Looks at hosts for tests: what a probe brought, the short way."""

from __future__ import annotations

import datetime as dt
from typing import Any

from monitoring.models import Host
from monitoring.probe import BrokenAnswer
from monitoring.services.storing import Answer
from monitoring.snapshot import (
    CpuCounters,
    GpuReading,
    LoginSession,
    ProcessReading,
    Section,
    Snapshot,
)
from monitoring.ssh import Result, Status

NOON = dt.datetime(2026, 6, 1, 12, 0, tzinfo=dt.UTC)
SECTIONS = ("gpus", "processes", "owners", "cpu", "memory", "load", "disks", "logins")


def after(seconds: float) -> dt.datetime:
    return NOON + dt.timedelta(seconds=seconds)


def uuid(number: int) -> str:
    return f"GPU-{number:08x}-0000-4000-8000-000000000000"


def card(number: int = 0, **fields: Any) -> GpuReading:
    """A healthy GPU; its UUID, slot and index follow from the number."""
    usual: dict[str, Any] = {
        "uuid": uuid(number),
        "index": number,
        "bus_id": f"00000000:{number + 1:02X}:00.0",
        "name": "NVIDIA A100-SXM4-40GB",
        "driver_version": "570.124",
        "memory_total_mib": 40960,
        "memory_used_mib": 1000,
        "utilization_percent": 50.0,
        "absent": {"fan_percent": "na"},
    }
    return GpuReading(**{**usual, **fields})


def process(pid: int = 4242, **fields: Any) -> ProcessReading:
    usual: dict[str, Any] = {
        "gpu_uuid": uuid(0),
        "pid": pid,
        "uid": 1001,
        "login": "bob",
        "start_ticks": 77,
        "age_seconds": 60,
        "name": "python",
        "command": "python train.py",
    }
    return ProcessReading(**{**usual, **fields})


def snapshot(*gpus: GpuReading, **fields: Any) -> Snapshot:
    """A complete answer with these GPUs; `sections` replaces single outcomes."""
    sections = {name: Section() for name in SECTIONS} | fields.pop("sections", {})
    usual: dict[str, Any] = {
        "logins": (LoginSession("bob", "pts/0", 1001, "10.0.0.7"),),
        "logins_source": "who",
        "cpu": CpuCounters(1000, 9000, 64),
        "memory_total_mib": 257_000,
        "memory_used_mib": 41_000,
        "load_1m": 3.5,
        "boot_id": "boot-1",
        "machine_id": "machine-1",
    }
    return Snapshot(gpus=gpus, sections=sections, **{**usual, **fields})


def look(
    host: Host,
    found: Snapshot | BrokenAnswer | None,
    at: float = 0,
    *,
    result: Result | None = None,
    **fields: Any,
) -> Answer:
    """One look so many seconds after noon."""
    result = result or Result(Status.OK, elapsed=0.05)
    return Answer(host.pk, result, found, after(at), **fields)


def silence(host: Host, at: float = 0, *, status: Status = Status.TIMEOUT, **fields: Any) -> Answer:
    """A look that failed."""
    return look(host, None, at, result=Result(status, reason=f"It failed: {status}.", **fields))
