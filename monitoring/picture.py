"""What is known of hosts, GPUs and processes at one moment, for one viewer, as plain values.

Immutable and hashable; they hold no ages but moments, so pictures of unchanged hosts stay equal
while time passes. `None` always means "not known". `monitoring.drawing` makes them.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from enum import StrEnum

from monitoring.models import Host

HOT_CELSIUS = 85
STATES: dict[str, str] = {
    Host.State.PENDING: "waiting for the first probe",
    Host.State.OK: "ok",
    Host.State.PARTIAL: "partly known",
    Host.State.UNREACHABLE: "unreachable",
    Host.State.KEY_UNKNOWN: "key not accepted",
    Host.State.KEY_CHANGED: "host key changed",
    Host.State.AUTH_FAILED: "login refused",
    Host.State.NO_DRIVER: "no driver",
    Host.State.DRIVER_MISMATCH: "driver mismatch",
    Host.State.NO_GPUS: "no GPUs",
    Host.State.MAINTENANCE: "maintenance",
    Host.State.DISABLED: "disabled",
}
ANSWERING = frozenset({Host.State.OK, Host.State.PARTIAL})


class Usage(StrEnum):
    """What a GPU is doing, as the dashboard counts it."""

    FREE = "free"  # idle, and nobody has it reserved now
    RESERVED = "reserved"  # idle, and reserved now
    BUSY = "busy"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Sample:
    """The numbers of one GPU at `taken_at`."""

    taken_at: dt.datetime
    utilization_percent: float | None = None
    memory_used_mib: int | None = None
    memory_utilization_percent: float | None = None
    temperature_celsius: float | None = None
    power_watts: float | None = None
    power_limit_watts: float | None = None
    fan_percent: float | None = None


@dataclass(frozen=True, slots=True)
class Booking:
    """A reservation as far as a GPU shows it."""

    id: int
    title: str
    owner: str
    starts_at: dt.datetime
    ends_at: dt.datetime
    is_mine: bool


@dataclass(frozen=True, slots=True)
class ProcessPicture:
    """A process on a GPU. `command` has arguments only where the viewer may read them."""

    pid: int
    gpu: str
    gpu_index: int | None
    host: str
    owner: str | None
    owner_confidence: str
    person: str | None
    is_mine: bool
    command: str | None
    memory_used_mib: int | None
    started_at: dt.datetime | None


@dataclass(frozen=True, slots=True)
class GpuPicture:
    """A GPU with its last sample, kept while its host is silent; `state` then is unknown."""

    id: int
    uuid: str
    host: str
    index: int | None
    name: str
    memory_total_mib: int | None
    state: str
    reason: str | None
    last_good_at: dt.datetime | None
    sample: Sample | None
    reservation: Booking | None
    next_reservation: Booking | None
    processes: tuple[ProcessPicture, ...]
    usage: Usage

    @property
    def is_mine(self) -> bool:
        return self.reservation is not None and self.reservation.is_mine

    @property
    def is_hot(self) -> bool:
        degrees = self.sample.temperature_celsius if self.sample else None
        return degrees is not None and degrees >= HOT_CELSIUS


@dataclass(frozen=True, slots=True)
class Disk:
    path: str
    total_mib: int
    used_mib: int


@dataclass(frozen=True, slots=True)
class Login:
    """Somebody logged in on the host."""

    login: str
    terminal: str | None
    origin: str | None


@dataclass(frozen=True, slots=True)
class Fault:
    """A part of the last answer that did not come out, and why."""

    section: str
    reason: str


@dataclass(frozen=True, slots=True)
class HostPicture:
    """A host, the GPUs of it that the viewer may see, and its own figures."""

    id: int
    name: str
    address: str
    port: int
    state: str
    reason: str | None
    since: dt.datetime | None
    last_good_at: dt.datetime | None
    is_stale: bool
    gpus: tuple[GpuPicture, ...]
    cpu_percent: float | None
    cpu_cores: int | None
    memory_total_mib: int | None
    memory_used_mib: int | None
    load: tuple[float | None, ...]
    disks: tuple[Disk, ...]
    logins: tuple[Login, ...] | None
    uptime_seconds: float | None
    clock_skew_seconds: float | None
    faults: tuple[Fault, ...]

    @property
    def is_answering(self) -> bool:
        return not self.is_stale and self.state in ANSWERING

    @property
    def state_label(self) -> str:
        """The state in words; data without an age of its own is told apart from a fault."""
        return "no fresh data" if self.is_stale and self.state in ANSWERING else STATES[self.state]

    @property
    def processes(self) -> tuple[ProcessPicture, ...]:
        return tuple(process for gpu in self.gpus for process in gpu.processes)
