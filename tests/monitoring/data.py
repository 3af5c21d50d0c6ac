"""Snapshots for tests of pages and API, in the shape that the watch stores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from monitoring.models import Gpu, Host, HostSnapshot
from tests import make


def reading(gpu: Gpu, **fields: Any) -> dict[str, Any]:
    """One GPU of an answer, half busy unless told otherwise."""
    defaults = {
        "uuid": gpu.uuid,
        "index": gpu.index,
        "name": gpu.name,
        "memory_total_mib": gpu.memory_total_mib,
        "memory_used_mib": 10240,
        "utilization_percent": 50.0,
        "memory_utilization_percent": 25.0,
        "temperature_celsius": 60.0,
        "power_watts": 200.0,
        "power_limit_watts": 400.0,
        "fan_percent": None,
        "absent": {"fan_percent": "na"},
        "state": "ok",
        "reason": None,
    }
    return {**defaults, **fields}


def process(gpu: Gpu, **fields: Any) -> dict[str, Any]:
    """One process of an answer, certainly alice's unless told otherwise."""
    defaults = {
        "gpu_uuid": gpu.uuid,
        "pid": 4242,
        "uid": 1001,
        "login": "alice",
        "start_ticks": 12345,
        "started_at": "2026-11-01T08:00:00Z",
        "memory_used_mib": 9000,
        "name": "/usr/bin/python3",
        "command": "python3 train.py --token s3cret",
        "owner_confidence": "certain",
        "kind": "C",
    }
    return {**defaults, **fields}


def answer(
    host: Host,
    gpus: Sequence[dict[str, Any]] = (),
    processes: Sequence[dict[str, Any]] = (),
    *,
    data: dict[str, Any] | None = None,
    **fields: Any,
) -> HostSnapshot:
    """A good answer of the host; `data` replaces parts of it, `fields` those of the row."""
    sections = ("gpus", "processes", "owners", "cpu", "memory", "load", "disks", "logins")
    good = {
        "gpus": list(gpus),
        "processes": list(processes),
        "logins": [{"login": "alice", "terminal": "pts/0", "uid": 1001, "origin": "10.0.0.7"}],
        "logins_source": "loginctl",
        "sections": {name: {"state": "ok", "fault": None, "reason": None} for name in sections},
        "cpu_percent": 12.5,
        "cpu": {"busy": 1000, "idle": 9000, "cores": 64},
        "memory_total_mib": 257_000,
        "memory_used_mib": 41_000,
        "load": [3.1, 2.9, 2.5],
        "disks": [{"path": "/", "total_mib": 476_000, "used_mib": 220_000}],
        "boot_id": "b3f1",
        "uptime_seconds": 860_000.0,
        "clock_skew_seconds": 0.02,
        "uid_min": 1000,
    }
    return make.snapshot(host, data={**good, **(data or {})}, **fields)
