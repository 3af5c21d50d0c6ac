"""`nvidia-smi --query-gpu=… --format=csv[,noheader][,nounits]`: one row a card."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from monitoring.nvidia_smi import cells
from monitoring.nvidia_smi.faults import Fault, classify, fault, lost_gpus
from monitoring.snapshot import GpuReading, LostGpu, Section, SectionState

MAX_GPUS = 256
_FIELD_NAME = re.compile(r"^[a-z][A-Za-z]*(?:[._][A-Za-z0-9_]+)*\Z")
_PLAIN_NAMES = frozenset({"index", "name", "uuid", "count", "serial", "pstate", "timestamp"})
# Field of the driver -> attribute of GpuReading and how its cell is read.
QUERY_FIELDS: Mapping[str, tuple[str, str]] = {
    "index": ("index", "integer"),
    "uuid": ("uuid", "uuid"),
    "gpu_uuid": ("uuid", "uuid"),
    "pci.bus_id": ("bus_id", "text"),
    "gpu_bus_id": ("bus_id", "text"),
    "name": ("name", "text"),
    "gpu_name": ("name", "text"),
    "driver_version": ("driver_version", "text"),
    "fan.speed": ("fan_percent", "number"),
    "memory.total": ("memory_total_mib", "integer"),
    "memory.used": ("memory_used_mib", "integer"),
    "memory.free": ("memory_free_mib", "integer"),
    "memory.reserved": ("memory_reserved_mib", "integer"),
    "utilization.gpu": ("utilization_percent", "number"),
    "utilization.memory": ("memory_utilization_percent", "number"),
    "temperature.gpu": ("temperature_celsius", "number"),
    "power.draw": ("power_watts", "number"),
    "power.limit": ("power_limit_watts", "number"),
    "pstate": ("performance_state", "text"),
    "mig.mode.current": ("mig_mode", "text"),
}


@dataclass(frozen=True, slots=True)
class GpuAnswer:
    """The cards of one answer, those that could not be reached, and how it came out."""

    gpus: tuple[GpuReading, ...] = ()
    lost: tuple[LostGpu, ...] = ()
    section: Section = field(default_factory=Section)
    dropped_rows: int = 0
    fault: Fault | None = None


def parse_gpu_query(
    text: str, status: int | None = 0, *, fields: Sequence[str] | None = None
) -> GpuAnswer:
    """Read the answer. `fields` are those asked for, where no header names them."""
    lines = cells.lines_of(text)
    names, rest = _columns(lines, fields)
    rows = [cells.split_row(line) for line in rest]
    good = [row for row in rows if _is_row(row, names)][:MAX_GPUS]
    dropped = sum(_is_cut_off(row, names) for row in rows)
    gpus = tuple(_reading(dict(zip(names, row, strict=True))) for row in good)
    lost = lost_gpus(lines)
    found = _fault(text, status, gpus, lost, dropped)
    return GpuAnswer(gpus, lost, _section(found, gpus), dropped, found)


def section_of(found: Fault | None, *, has_rows: bool) -> Section:
    """The outcome: good, usable beside a fault, or nothing usable."""
    if found is None:
        return Section()
    state = SectionState.PARTIAL if has_rows else SectionState.ERROR
    if found.kind == "not-installed":
        state = SectionState.UNAVAILABLE
    return Section(state, found.kind, found.sentence)


def _columns(lines: list[str], fields: Sequence[str] | None) -> tuple[list[str], list[str]]:
    if fields is not None:
        return list(fields), lines
    for position, line in enumerate(lines):
        names = [cell.split(" [")[0] for cell in cells.split_row(line)]
        if all(_is_field(name) for name in names):
            return names, lines[position + 1 :]
    return [], lines


def _is_field(name: str) -> bool:
    return name in _PLAIN_NAMES or bool(_FIELD_NAME.match(name) and ("." in name or "_" in name))


def _is_row(row: list[str], names: list[str]) -> bool:
    if not names or len(row) != len(names):
        return False
    named = dict(zip(names, row, strict=True))
    if "index" in named and cells.integer(named["index"]) is None:
        return False
    uuid = named.get("uuid", named.get("gpu_uuid"))
    return uuid is None or cells.is_uuid(uuid) or cells.absence(uuid) is not None


def _is_cut_off(row: list[str], names: list[str]) -> bool:
    """A row that ends early: its last number may be half a number, so none of it is used."""
    if not names or len(row) >= len(names) or len(row) < 2 or names[0] != "index":
        return False
    return cells.integer(row[0]) is not None


def _reading(row: Mapping[str, str]) -> GpuReading:
    known: dict[str, Any] = {}
    extra: dict[str, str | float | None] = {}
    absent: dict[str, str] = {}
    for name, cell in row.items():
        attribute, kind = QUERY_FIELDS.get(name, (name, "any"))
        reason = cells.absence(cell)
        value = None if reason else _value(cell, kind)
        if reason:
            absent[attribute] = reason
        elif value is None:
            absent[attribute] = "unreadable"
        if name in QUERY_FIELDS:
            known[attribute] = value
        else:
            extra[name] = value
    return GpuReading(**known, absent=absent, extra=extra)


def _value(cell: str, kind: str) -> Any:
    if kind == "integer":
        return cells.integer(cell)
    if kind == "number":
        return cells.number(cell)
    if kind == "any" and (value := cells.number(cell)) is not None:
        return value
    return cells.clean(cell)


def _fault(
    text: str,
    status: int | None,
    gpus: Sequence[GpuReading],
    lost: Sequence[LostGpu],
    dropped: int,
) -> Fault | None:
    if gpus and any(reading.needs_reset for reading in gpus):
        return fault("needs-reset")
    if dropped:
        return Fault("truncated", "The answer was cut off in the middle of a row.")
    if lost or not gpus:
        return classify(text, status) or fault("no-data")
    # Rows beside a warning: 14 is a corrupted infoROM with complete data.
    return classify("", status) if status not in (0, 14, None) else None


def _section(found: Fault | None, gpus: Sequence[GpuReading]) -> Section:
    return section_of(found, has_rows=bool(gpus))
