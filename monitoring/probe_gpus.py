"""The part of a probe's answer about GPUs: cards, MIG instances and the processes on them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from monitoring import nvidia_smi
from monitoring.frame import Part
from monitoring.nvidia_smi.faults import Fault, fault
from monitoring.nvidia_smi.processes import ProcessAnswer
from monitoring.nvidia_smi.query import GpuAnswer
from monitoring.nvidia_smi.xml import MigReading, XmlAnswer, XmlProcess
from monitoring.snapshot import GpuReading, ProcessReading, Section, SectionState

_Instances = Mapping[tuple[str | None, int | None], nvidia_smi.MigDevice]


def read_gpus(parts: Mapping[str, Part]) -> tuple[GpuAnswer, ProcessAnswer]:
    """Cards and their processes, from CSV or, where there are MIG instances, from XML and -L."""
    if "xml" in parts:
        return _from_xml(parts)
    query, apps = parts.get("gpus"), parts.get("processes")
    if query is None:
        missing = _nothing_said()
        return missing, ProcessAnswer(section=missing.section)
    gpus = nvidia_smi.parse_gpu_query(query.text, query.status)
    if apps is None or (gpus.fault and not gpus.gpus):
        return gpus, ProcessAnswer(section=gpus.section)
    answer = nvidia_smi.parse_compute_apps(apps.text, apps.status)
    if pmon := parts.get("pmon"):
        answer = _with_pmon(answer, nvidia_smi.parse_pmon(pmon.text, pmon.status), gpus)
    return gpus, answer


def _nothing_said() -> GpuAnswer:
    found = Fault("no-data", "The host sent nothing about its GPUs.")
    return GpuAnswer(section=Section(SectionState.ERROR, found.kind, found.sentence), fault=found)


def _from_xml(parts: Mapping[str, Part]) -> tuple[GpuAnswer, ProcessAnswer]:
    xml, listing = parts["xml"], parts.get("list", Part("", 0))
    answer = nvidia_smi.parse_xml(xml.text, xml.status)
    if not answer.gpus and (query := parts.get("gpus")):
        gpus = nvidia_smi.parse_gpu_query(query.text, query.status)
        return gpus, ProcessAnswer(section=answer.section, fault=answer.fault)
    listed = nvidia_smi.parse_list(listing.text, listing.status)
    indices = {card.uuid: card.index for card in listed.gpus}
    cards = tuple(replace(card, index=indices.get(card.uuid)) for card in answer.gpus)
    devices = _listed_devices(listed)
    named = {device: devices.get((device.card, device.device)) for device in answer.mig_devices}
    found = answer.fault or (fault("mig-unnamed") if None in named.values() else None)
    section = nvidia_smi.section_of(found, has_rows=bool(cards))
    instances = tuple(_instances(cards, named))
    gpus = GpuAnswer((*cards, *instances), answer.lost, section, 0, found)
    return gpus, ProcessAnswer(processes=tuple(_placed(answer, named)), section=section)


def _listed_devices(listed: nvidia_smi.Listing) -> _Instances:
    """(UUID of the card, number of the device within it) -> the instance with its own UUID."""
    return {
        (card.uuid, device.device): device
        for card in listed.gpus
        for device in listed.mig_devices
        if device.gpu_index == card.index
    }


def _instances(
    cards: Iterable[GpuReading], named: Mapping[MigReading, nvidia_smi.MigDevice | None]
) -> Iterable[GpuReading]:
    """The instances that -L names; without a UUID nobody could book or recognise one."""
    by_uuid = {card.uuid: card for card in cards}
    for device, listed in named.items():
        card = by_uuid.get(device.card)
        if listed is not None and card is not None:
            yield GpuReading(
                uuid=listed.uuid,
                index=card.index,
                name=f"{card.name} MIG {listed.profile}",
                driver_version=card.driver_version,
                memory_total_mib=device.memory_total_mib,
                memory_used_mib=device.memory_used_mib,
                memory_free_mib=device.memory_free_mib,
                parent_uuid=device.card,
                absent={"utilization_percent": "na"},
            )


def _placed(
    answer: XmlAnswer, named: Mapping[MigReading, nvidia_smi.MigDevice | None]
) -> Iterable[ProcessReading]:
    """Each process on its instance; on the card where the instance is not known for certain."""
    places: dict[tuple[str | None, int | None, int | None], str] = {
        (device.card, device.gpu_instance, device.compute_instance): listed.uuid
        for device, listed in named.items()
        if listed is not None
    }
    for one in answer.processes:
        place = places.get((one.process.gpu_uuid, *_instance_ids(one)))
        yield replace(one.process, gpu_uuid=place or one.process.gpu_uuid)


def _instance_ids(one: XmlProcess) -> tuple[int | None, int | None]:
    return one.gpu_instance, one.compute_instance


def _with_pmon(apps: ProcessAnswer, pmon: ProcessAnswer, gpus: GpuAnswer) -> ProcessAnswer:
    """Kinds from pmon, and the processes that only draw, which compute-apps leaves out."""
    uuids = {card.index: card.uuid for card in gpus.gpus}
    kinds = {(uuids.get(row.gpu_index), row.pid): row for row in pmon.rows}
    known = {(process.gpu_uuid, process.pid) for process in apps.processes}
    processes = [
        replace(process, kind=row.kind)
        if (row := kinds.get((process.gpu_uuid, process.pid)))
        else process
        for process in apps.processes
    ]
    processes += [
        ProcessReading(uuid, pid, row.memory_used_mib, row.name, row.kind)
        for (uuid, pid), row in kinds.items()
        if uuid is not None and (uuid, pid) not in known
    ]
    return replace(apps, processes=tuple(processes))
