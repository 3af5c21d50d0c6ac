"""Draws pictures: rows, JSON of a snapshot and what other apps know in, plain values out.

Pure: nothing here asks the database or the clock. Text from hosts is made printable here.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from monitoring.models import Gpu, Host
from monitoring.naming import printable
from monitoring.picture import (
    ANSWERING,
    Booking,
    Disk,
    Fault,
    GpuPicture,
    HostPicture,
    Login,
    ProcessPicture,
    Sample,
    Usage,
)

BUSY_PERCENT = 5  # up to here a GPU without processes counts as idle


@dataclass(frozen=True, slots=True)
class Viewer:
    """Who looks: decides what of a command line is shown."""

    username: str
    is_administrator: bool


@dataclass(frozen=True, slots=True)
class Known:
    """What the pictures of one host are drawn from."""

    host: Host
    now: dt.datetime
    viewer: Viewer
    taken_at: dt.datetime | None
    data: Mapping[str, Any]
    contexts: Mapping[str, Mapping[str, Any]]  # GPU UUID -> what GPU_CONTEXT says of it
    people: Mapping[str, str]  # Unix login -> username


def host_picture(known: Known, gpus: Sequence[Gpu]) -> HostPicture:
    host, data = known.host, known.data
    cpu = data.get("cpu") or {}
    return HostPicture(
        id=host.pk,
        name=host.name,
        address=host.address,
        port=host.port,
        state=host.state,
        reason=_host_reason(known),
        since=host.state_since,
        last_good_at=host.last_good_at,
        is_stale=host.is_stale(known.now),
        gpus=gpu_pictures(known, gpus),
        cpu_percent=data.get("cpu_percent"),
        cpu_cores=cpu.get("cores"),
        memory_total_mib=data.get("memory_total_mib"),
        memory_used_mib=data.get("memory_used_mib"),
        load=tuple(data.get("load") or ()),
        disks=tuple(
            Disk(printable(disk["path"]), disk["total_mib"], disk["used_mib"])
            for disk in data.get("disks") or ()
        ),
        logins=_logins(data),
        uptime_seconds=data.get("uptime_seconds"),
        clock_skew_seconds=data.get("clock_skew_seconds"),
        faults=_faults(data),
    )


def gpu_pictures(known: Known, gpus: Sequence[Gpu]) -> tuple[GpuPicture, ...]:
    """The given GPUs of the host, in the given order."""
    readings = {reading["uuid"]: reading for reading in known.data.get("gpus") or ()}
    running: dict[str, list[Mapping[str, Any]]] = {}
    for process in known.data.get("processes") or ():
        running.setdefault(process["gpu_uuid"], []).append(process)
    return tuple(
        _gpu_picture(known, gpu, readings.get(gpu.uuid), running.get(gpu.uuid, ())) for gpu in gpus
    )


def _gpu_picture(
    known: Known,
    gpu: Gpu,
    reading: Mapping[str, Any] | None,
    processes: Iterable[Mapping[str, Any]],
) -> GpuPicture:
    context = known.contexts.get(gpu.uuid, {})
    reservation = _booking(context.get("reservation"))
    sample = _sample(reading, known.taken_at)
    state, reason = _gpu_state(known, gpu)
    pictures = tuple(_process_picture(known, gpu, reservation, item) for item in processes)
    return GpuPicture(
        id=gpu.pk,
        uuid=gpu.uuid,
        host=known.host.name,
        index=gpu.index,
        name=gpu.name,
        memory_total_mib=gpu.memory_total_mib,
        state=state,
        reason=reason,
        last_good_at=known.taken_at if reading else gpu.last_seen_at,
        sample=sample,
        reservation=reservation,
        next_reservation=_booking(context.get("next_reservation")),
        processes=pictures,
        usage=usage_of(
            is_known=state in (Gpu.State.OK, Gpu.State.PARTIAL) and sample is not None,
            has_processes=bool(pictures),
            processes_known=_section_state(known.data, "processes") == "ok",
            utilization_percent=sample.utilization_percent if sample else None,
            is_reserved=reservation is not None,
        ),
    )


def usage_of(
    *,
    is_known: bool,
    has_processes: bool,
    processes_known: bool,
    utilization_percent: float | None,
    is_reserved: bool,
) -> Usage:
    """What the GPU is doing. Without a list of processes only a working GPU is known to be busy."""
    if not is_known:
        return Usage.UNKNOWN
    if has_processes or (utilization_percent or 0) > BUSY_PERCENT:
        return Usage.BUSY
    if not processes_known:
        return Usage.UNKNOWN
    return Usage.RESERVED if is_reserved else Usage.FREE


def program_name(name: str | None, command: str | None) -> str | None:
    """The program without its directory and arguments: what everybody may see."""
    for text in (name, command):
        words = (text or "").split()
        if words and (base := PurePosixPath(words[0]).name):
            return printable(base, 60)
    return None


def _process_picture(
    known: Known, gpu: Gpu, reservation: Booking | None, item: Mapping[str, Any]
) -> ProcessPicture:
    login = item.get("login")
    confidence = item.get("owner_confidence") or "unknown"
    person = known.people.get(login) if login else None
    is_mine = person == known.viewer.username and confidence == "certain"
    may_read = is_mine or known.viewer.is_administrator or bool(reservation and reservation.is_mine)
    command = item.get("command") if may_read else None
    return ProcessPicture(
        pid=item["pid"],
        gpu=gpu.uuid,
        gpu_index=gpu.index,
        host=known.host.name,
        owner=printable(login, 40) if login else None,
        owner_confidence=confidence,
        person=person,
        is_mine=is_mine,
        command=printable(command, 500)
        if command
        else program_name(item.get("name"), item.get("command")),
        memory_used_mib=item.get("memory_used_mib"),
        started_at=_moment(item.get("started_at")),
    )


def _gpu_state(known: Known, gpu: Gpu) -> tuple[str, str | None]:
    """The GPU's state and sentence; what is not fresh is unknown, whatever it was before."""
    if known.host.is_stale(known.now) and gpu.state != Gpu.State.LOST:
        return Gpu.State.UNKNOWN, _host_reason(known)
    return gpu.state, gpu.reason or None


def _host_reason(known: Known) -> str | None:
    host = known.host
    if host.reason:
        return host.reason
    if host.state in ANSWERING and host.is_stale(known.now):
        return f"TensorHive has not had an answer from {host.name} lately; its workers may be down."
    if host.state == Host.State.PENDING:
        return "It has not been probed yet."
    return None


def _sample(reading: Mapping[str, Any] | None, taken_at: dt.datetime | None) -> Sample | None:
    if reading is None or taken_at is None:
        return None
    return Sample(
        taken_at=taken_at,
        **{
            field: reading.get(field)
            for field in (
                "utilization_percent",
                "memory_used_mib",
                "memory_utilization_percent",
                "temperature_celsius",
                "power_watts",
                "power_limit_watts",
                "fan_percent",
            )
        },
    )


def _booking(value: Mapping[str, Any] | None) -> Booking | None:
    if not value:
        return None
    return Booking(**{field: value[field] for field in Booking.__slots__})


def _logins(data: Mapping[str, Any]) -> tuple[Login, ...] | None:
    """Who is logged in; None where the host could not tell."""
    if data.get("logins_source") is None:
        return None
    return tuple(
        Login(
            printable(item["login"], 40),
            printable(item["terminal"], 20) if item.get("terminal") else None,
            printable(item["origin"], 60) if item.get("origin") else None,
        )
        for item in data.get("logins") or ()
    )


def _section_state(data: Mapping[str, Any], name: str) -> str | None:
    return ((data.get("sections") or {}).get(name) or {}).get("state")


# What people call the sections of an answer.
SECTIONS = {
    "gpus": "GPUs",
    "processes": "Processes",
    "owners": "Owners of processes",
    "cpu": "CPU",
    "memory": "Memory",
    "load": "Load",
    "disks": "Disks",
    "logins": "Logins",
}


def _faults(data: Mapping[str, Any]) -> tuple[Fault, ...]:
    return tuple(
        Fault(SECTIONS.get(name, name), printable(section.get("reason") or "not known", 300))
        for name, section in (data.get("sections") or {}).items()
        if section.get("state") in ("partial", "error")
    )


def _moment(text: str | None) -> dt.datetime | None:
    return dt.datetime.fromisoformat(text) if text else None
