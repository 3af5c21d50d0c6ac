"""What one probe of one host brought, as plain values.

Everything here is immutable and knows nothing of the database, SSH or the clock. `None` always
means "not known"; where the host gave a reason it stands beside the value (`GpuReading.absent`,
`Section.reason`). Names carry their unit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class SectionState(StrEnum):
    """How one part of an answer came out."""

    OK = "ok"
    PARTIAL = "partial"  # usable rows beside a fault
    ERROR = "error"  # nothing usable
    UNAVAILABLE = "unavailable"  # the host has no such program or file; nothing is broken


@dataclass(frozen=True, slots=True)
class Section:
    """The outcome of one section: its state, the kind of fault as a token, and one sentence."""

    state: SectionState = SectionState.OK
    fault: str | None = None
    reason: str | None = None

    @property
    def is_complete(self) -> bool:
        return self.state is SectionState.OK


@dataclass(frozen=True, slots=True)
class GpuReading:
    """One GPU as `nvidia-smi --query-gpu` or `-q -x` describes it."""

    uuid: str | None = None
    index: int | None = None
    bus_id: str | None = None
    name: str | None = None
    driver_version: str | None = None
    fan_percent: float | None = None
    memory_total_mib: int | None = None
    memory_used_mib: int | None = None
    memory_free_mib: int | None = None
    memory_reserved_mib: int | None = None
    utilization_percent: float | None = None
    memory_utilization_percent: float | None = None
    temperature_celsius: float | None = None
    power_watts: float | None = None
    power_limit_watts: float | None = None
    performance_state: str | None = None
    mig_mode: str | None = None
    parent_uuid: str | None = None  # the card of a MIG instance
    # name of a missing field -> "na", "not-supported", "needs-reset", "unknown-error", …
    absent: Mapping[str, str] = field(default_factory=dict)
    # values of fields that have no attribute here, by the header's own name
    extra: Mapping[str, str | float | None] = field(default_factory=dict)

    @property
    def needs_reset(self) -> bool:
        return "needs-reset" in self.absent.values()


@dataclass(frozen=True, slots=True)
class LostGpu:
    """A card that the driver names but cannot reach."""

    index: int | None
    bus_id: str | None
    reason: str


@dataclass(frozen=True, slots=True)
class ProcessReading:
    """One process on one GPU; a process on two GPUs appears twice.

    Identity on the host is (boot id, pid, start_ticks, uid). `login` is None when the uid has no
    name or was not seen; `uid` is None when /proc did not show the process at all.
    """

    gpu_uuid: str | None
    pid: int
    memory_used_mib: int | None = None
    name: str | None = None  # as nvidia-smi calls it
    kind: str | None = None  # "C", "G" or "C+G"
    uid: int | None = None
    login: str | None = None
    start_ticks: int | None = None  # field 22 of /proc/PID/stat, since boot
    age_seconds: int | None = None
    command: str | None = None  # full command line, bounded
    cgroup: str | None = None  # path of the process, bounded
    container_id: str | None = None
    container_runtime: str | None = None
    login_uid: int | None = None  # /proc/PID/loginuid, None when unset
    gpu_index: int | None = None


@dataclass(frozen=True, slots=True)
class LoginSession:
    """Somebody logged in on the host; `terminal` is `pts/3` or `tty1`, None without one."""

    login: str
    terminal: str | None = None
    uid: int | None = None
    origin: str | None = None


@dataclass(frozen=True, slots=True)
class CpuCounters:
    """Sums of /proc/stat in ticks since boot; a percentage needs two of them."""

    busy: int
    idle: int
    cores: int | None = None

    def utilization_percent(self, earlier: CpuCounters | None) -> float | None:
        """Busy share between two readings in percent; None without an earlier, older one."""
        if earlier is None:
            return None
        busy, idle = self.busy - earlier.busy, self.idle - earlier.idle
        if busy < 0 or idle < 0 or busy + idle == 0:
            return None
        return round(100 * busy / (busy + idle), 1)


@dataclass(frozen=True, slots=True)
class Disk:
    """One file system as `df -Pk` shows it."""

    path: str
    total_mib: int
    used_mib: int


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything one probe brought.

    `sections` maps "gpus", "processes", "owners", "cpu", "memory", "load", "disks", "logins" to
    their outcome; "frame" is there only when the host answered twice. `host_fault` is set when the
    whole host deserves a state of its own (`no_driver`, `driver_mismatch`, `no_gpus`), `reason` is
    its sentence.
    """

    gpus: tuple[GpuReading, ...] = ()
    lost_gpus: tuple[LostGpu, ...] = ()
    processes: tuple[ProcessReading, ...] = ()
    logins: tuple[LoginSession, ...] = ()
    logins_source: str | None = None  # "loginctl", "who", "pts" or None when nobody could tell
    cpu: CpuCounters | None = None
    memory_total_mib: int | None = None
    memory_used_mib: int | None = None
    load_1m: float | None = None
    load_5m: float | None = None
    load_15m: float | None = None
    disks: tuple[Disk, ...] = ()
    boot_id: str | None = None
    machine_id: str | None = None
    uptime_seconds: float | None = None
    clock_seconds: float | None = None  # the host's own clock, seconds since the epoch
    uid_min: int | None = None
    clock_ticks_per_second: int | None = None
    sections: Mapping[str, Section] = field(default_factory=dict)
    host_fault: str | None = None
    reason: str | None = None
