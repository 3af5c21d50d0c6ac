"""`nvidia-smi -q -x`: the way to see MIG instances and what runs on them.

Read with paths from the `gpu` element, since the first `fb_memory_usage` of the document may be an
instance's. Documents that declare entities are refused unread.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from xml.etree import ElementTree

from monitoring.nvidia_smi import cells
from monitoring.nvidia_smi.faults import Fault, classify, fault, lost_gpus
from monitoring.nvidia_smi.query import MAX_GPUS, section_of
from monitoring.snapshot import GpuReading, LostGpu, ProcessReading, Section

_DOCTYPE = re.compile(r"<!DOCTYPE[^>\[]*>")
_START = re.compile(r"<nvidia_smi_log[ >]")
_END = "</nvidia_smi_log>"
_FIELDS = {
    "name": ("product_name", "text"),
    "uuid": ("uuid", "uuid"),
    "fan_percent": ("fan_speed", "number"),
    "performance_state": ("performance_state", "text"),
    "memory_total_mib": ("fb_memory_usage/total", "integer"),
    "memory_used_mib": ("fb_memory_usage/used", "integer"),
    "memory_free_mib": ("fb_memory_usage/free", "integer"),
    "memory_reserved_mib": ("fb_memory_usage/reserved", "integer"),
    "utilization_percent": ("utilization/gpu_util", "number"),
    "memory_utilization_percent": ("utilization/memory_util", "number"),
    "temperature_celsius": ("temperature/gpu_temp", "number"),
    "mig_mode": ("mig_mode/current_mig", "text"),
}
# Renamed in R535 and split in R570; the first with a number counts.
_POWER = tuple(
    f"{group}/{name}"
    for group in ("gpu_power_readings", "power_readings")
    for name in ("power_draw", "average_power_draw", "instant_power_draw")
)


_LIMITS = tuple(
    f"{group}/{name}"
    for group in ("gpu_power_readings", "power_readings")
    for name in ("current_power_limit", "power_limit", "enforced_power_limit")
)


@dataclass(frozen=True, slots=True)
class MigReading:
    """An instance in the XML, which has no UUID there: joined with -L by device number."""

    card: str | None
    device: int | None
    gpu_instance: int | None
    compute_instance: int | None
    memory_total_mib: int | None
    memory_used_mib: int | None
    memory_free_mib: int | None


@dataclass(frozen=True, slots=True)
class XmlProcess:
    process: ProcessReading
    gpu_instance: int | None
    compute_instance: int | None


@dataclass(frozen=True, slots=True)
class XmlAnswer:
    gpus: tuple[GpuReading, ...] = ()
    mig_devices: tuple[MigReading, ...] = ()
    processes: tuple[XmlProcess, ...] = ()
    lost: tuple[LostGpu, ...] = ()
    section: Section = field(default_factory=Section)
    fault: Fault | None = None


def parse_xml(text: str, status: int | None = 0) -> XmlAnswer:
    """Read the first document in the text; prose instead of one is classified as such."""
    root = _root(text)
    if root is None:
        prose = classify(text, status) or fault("no-data")
        return XmlAnswer(section=section_of(prose, has_rows=False), fault=prose)
    cards = root.findall("gpu")[:MAX_GPUS]
    driver = _text(root, "driver_version")
    gpus = tuple(_reading(card, driver) for card in cards)
    lost = lost_gpus(_prose(text))
    if any(card.needs_reset for card in gpus):
        found: Fault | None = fault("needs-reset")
    elif lost or not gpus:
        found = fault("gpu-lost") if lost else classify("", status) or fault("no-devices")
    else:
        # 14 is a warning of the infoROM beside complete data.
        found = classify("", status) if status not in (0, 14, None) else None
    return XmlAnswer(
        gpus=gpus,
        mig_devices=tuple(device for card in cards for device in _instances(card)),
        processes=tuple(process for card in cards for process in _processes(card)),
        lost=lost,
        section=section_of(found, has_rows=bool(gpus)),
        fault=found,
    )


def _prose(text: str) -> list[str]:
    """The lines around the document; names of processes within it may say anything."""
    begin, end = _START.search(text), text.rfind(_END)
    before, after = text[: begin.start()] if begin else text, text[end:] if end >= 0 else ""
    return [*before.split("\n"), *after.split("\n")]


def _root(text: str) -> ElementTree.Element | None:
    begin, end = _START.search(text), text.find(_END)
    if begin is None or end < 0 or "<!ENTITY" in text:
        return None
    document = _DOCTYPE.sub("", text[begin.start() : end + len(_END)])
    try:
        return ElementTree.fromstring(document)  # noqa: S314  no entities, size capped by the caller
    except ElementTree.ParseError:
        return None


def _reading(card: ElementTree.Element, driver: str | None) -> GpuReading:
    values: dict[str, Any] = {}
    absent: dict[str, str] = {}
    for attribute, (path, kind) in _FIELDS.items():
        cell = _text(card, path)
        if cell is None:
            continue
        if reason := cells.absence(cell):
            absent[attribute] = reason
        else:
            values[attribute] = _value(cell, kind)
    return GpuReading(
        bus_id=cells.clean(card.get("id", ""), 32) or None,
        driver_version=cells.clean(driver, 40) if driver else None,
        power_watts=_first_number(card, _POWER),
        power_limit_watts=_first_number(card, _LIMITS),
        absent=absent,
        **values,
    )


def _value(cell: str, kind: str) -> Any:
    if kind == "uuid":
        return cell if cells.is_uuid(cell) else None
    if kind == "text":
        return cells.clean(cell)
    return cells.integer(cell) if kind == "integer" else cells.number(cell)


def _instances(card: ElementTree.Element) -> Iterator[MigReading]:
    uuid = _text(card, "uuid")
    for device in card.findall("mig_devices/mig_device")[:64]:
        yield MigReading(
            card=uuid if uuid and cells.is_uuid(uuid) else None,
            device=_integer(device, "index"),
            gpu_instance=_integer(device, "gpu_instance_id"),
            compute_instance=_integer(device, "compute_instance_id"),
            memory_total_mib=_integer(device, "fb_memory_usage/total"),
            memory_used_mib=_integer(device, "fb_memory_usage/used"),
            memory_free_mib=_integer(device, "fb_memory_usage/free"),
        )


def _processes(card: ElementTree.Element) -> Iterator[XmlProcess]:
    uuid = _text(card, "uuid")
    for element in card.findall("processes/process_info")[:4096]:
        pid = cells.process_id(_text(element, "pid") or "")
        if pid is None:
            continue
        name, kind = _text(element, "process_name"), _text(element, "type")
        process = ProcessReading(
            gpu_uuid=uuid if uuid and cells.is_uuid(uuid) else None,
            pid=pid,
            memory_used_mib=_integer(element, "used_memory"),
            name=None if name is None or cells.absence(name) else cells.clean(name, 200),
            kind=kind if kind in ("C", "G", "C+G") else None,
        )
        yield XmlProcess(
            process, _integer(element, "gpu_instance_id"), _integer(element, "compute_instance_id")
        )


def _text(element: ElementTree.Element, path: str) -> str | None:
    found = element.findtext(path)
    return None if found is None else found.strip()


def _number(element: ElementTree.Element, path: str) -> float | None:
    return cells.number(_text(element, path) or "")


def _first_number(element: ElementTree.Element, paths: tuple[str, ...]) -> float | None:
    return next((n for path in paths if (n := _number(element, path)) is not None), None)


def _integer(element: ElementTree.Element, path: str) -> int | None:
    return cells.integer(_text(element, path) or "")
