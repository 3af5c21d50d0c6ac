"""`nvidia-smi -L`: cards and their MIG instances."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from monitoring.nvidia_smi import cells
from monitoring.nvidia_smi.faults import Fault, classify, fault
from monitoring.nvidia_smi.query import section_of
from monitoring.snapshot import GpuReading, Section

# The name may end with a bracket of its own; the closing one may be lost.
_CARD = re.compile(r"^GPU (\d{1,3}): (.{1,120}) \(UUID: ([^)\s]{1,96})\)?\s*\Z", re.ASCII)
_INSTANCE = re.compile(
    r"^\s+MIG (\S{1,40})\s+Device\s+(\d{1,3}): \(UUID: ([^)\s]{1,96})\)?\s*\Z", re.ASCII
)


@dataclass(frozen=True, slots=True)
class MigDevice:
    """An instance: `device` counts within its card and changes when instances are made anew."""

    gpu_index: int
    profile: str
    device: int
    uuid: str


@dataclass(frozen=True, slots=True)
class Listing:
    gpus: tuple[GpuReading, ...] = ()
    mig_devices: tuple[MigDevice, ...] = ()
    section: Section = field(default_factory=Section)
    fault: Fault | None = None


def parse_list(text: str, status: int | None = 0) -> Listing:
    """Cards by index, instances under the card they stand below."""
    gpus: list[GpuReading] = []
    devices: list[MigDevice] = []
    for line in text.split("\n")[:4096]:
        if (card := _CARD.match(line)) and cells.is_uuid(card[3]):
            gpus.append(GpuReading(uuid=card[3], index=int(card[1]), name=cells.clean(card[2])))
        elif gpus and (found := _INSTANCE.match(line)) and cells.is_uuid(found[3]):
            parent = gpus[-1].index or 0
            devices.append(MigDevice(parent, cells.clean(found[1]), int(found[2]), found[3]))
    found_fault = None if gpus else classify(text, status) or fault("no-data")
    return Listing(
        tuple(gpus), tuple(devices), section_of(found_fault, has_rows=bool(gpus)), found_fault
    )
