"""A snapshot as the JSON that is stored: the shapes that pages, API and decisions read."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from monitoring import owners, states
from monitoring.models import Gpu
from monitoring.snapshot import (
    CpuCounters,
    Disk,
    GpuReading,
    LoginSession,
    ProcessReading,
    Section,
    Snapshot,
)

# The numbers of HostSample.gpus, in this order.
SAMPLED = (
    "utilization_percent",
    "memory_used_mib",
    "memory_utilization_percent",
    "temperature_celsius",
    "power_watts",
    "fan_percent",
)
# dataclasses.asdict copies deeply, which took a third of the time of storing.
_FIELDS = {
    shape: tuple(field.name for field in fields(shape) if field.name != "extra")
    for shape in (CpuCounters, Disk, GpuReading, LoginSession, Section)
}
_PROCESS_FIELDS = (
    *("gpu_uuid", "pid", "uid", "login", "start_ticks", "memory_used_mib", "name", "command"),
    *("cgroup", "container_id", "container_runtime", "login_uid", "kind"),
)
# What a decision needs of the answer before: identities, no texts.
_REMEMBERED = ("gpu_uuid", "pid", "uid", "login", "start_ticks", "owner_confidence")


def as_data(
    snapshot: Snapshot,
    *,
    taken_at: dt.datetime,
    earlier_cpu: CpuCounters | None,
    verdicts: Mapping[str, states.GpuVerdict] | None = None,
    left_alone: states.LeftAlone | None = None,
) -> dict[str, Any]:
    """The stored form (HostSnapshot.data); unknown is null. `taken_at` is the manager's clock.

    `verdicts` on GPUs win over what follows from the answer alone.
    """
    skew = None
    if snapshot.clock_seconds is not None:
        skew = round(snapshot.clock_seconds - taken_at.timestamp(), 1)
    return {
        "gpus": [_gpu(reading, verdicts or {}) for reading in snapshot.gpus],
        "gpus_left_alone": _left_alone(left_alone),
        "processes": [_process(process, taken_at) for process in snapshot.processes],
        "logins": [_plain(session) for session in snapshot.logins],
        "logins_source": snapshot.logins_source,
        "sections": {name: _plain(section) for name, section in snapshot.sections.items()},
        "cpu": _plain(snapshot.cpu) if snapshot.cpu else None,
        "cpu_percent": snapshot.cpu.utilization_percent(earlier_cpu) if snapshot.cpu else None,
        "memory_total_mib": snapshot.memory_total_mib,
        "memory_used_mib": snapshot.memory_used_mib,
        "load": [snapshot.load_1m, snapshot.load_5m, snapshot.load_15m],
        "disks": [_plain(disk) for disk in snapshot.disks],
        "boot_id": snapshot.boot_id,
        "machine_id": snapshot.machine_id,
        "uptime_seconds": snapshot.uptime_seconds,
        "clock_skew_seconds": skew,
        "uid_min": snapshot.uid_min,
    }


def remembered(data: Mapping[str, Any]) -> dict[str, Any]:
    """The part of an answer that is kept beside the next one (HostSnapshot.previous_data)."""
    return {
        "boot_id": data.get("boot_id"),
        "sections": data.get("sections", {}),
        "processes": [
            {name: process[name] for name in _REMEMBERED} for process in data.get("processes", ())
        ],
    }


def sampled(data: Mapping[str, Any]) -> dict[str, list[float | None]]:
    """UUID -> its numbers in the order of SAMPLED."""
    return {gpu["uuid"]: [gpu[name] for name in SAMPLED] for gpu in data["gpus"] if gpu["uuid"]}


def _plain(value: Any) -> dict[str, Any]:
    return {name: getattr(value, name) for name in _FIELDS[type(value)]}


def _gpu(reading: GpuReading, verdicts: Mapping[str, states.GpuVerdict]) -> dict[str, Any]:
    verdict = verdicts.get(reading.uuid or "") or states.judge_gpu(reading)
    state = verdict.state if reading.uuid else Gpu.State.UNKNOWN
    row = _plain(reading)
    return {**row, "absent": dict(reading.absent), "state": state.value, "reason": verdict.reason}


def _left_alone(left_alone: states.LeftAlone | None) -> dict[str, Any] | None:
    if left_alone is None:
        return None
    return {"times": left_alone.times, "until": left_alone.until.isoformat()}


def _process(process: ProcessReading, taken_at: dt.datetime) -> dict[str, Any]:
    row = {name: getattr(process, name) for name in _PROCESS_FIELDS}
    started_at = None
    if process.age_seconds is not None:
        began = taken_at - dt.timedelta(seconds=process.age_seconds)
        started_at = began.strftime("%Y-%m-%dT%H:%M:%SZ")
    return {**row, "started_at": started_at, "owner_confidence": owners.confidence(process)}
