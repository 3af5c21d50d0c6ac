"""The rows of GPUs, kept equal to what the hosts describe: added, moved, lost, disputed."""

from __future__ import annotations

import datetime as dt
import logging
from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import Any

from django.db.models import Q

from monitoring import audit, states
from monitoring.models import Gpu, Host, HostSample
from monitoring.snapshot import GpuReading, Snapshot
from monitoring.states import GpuVerdict

logger = logging.getLogger(__name__)

# `last_seen_at` of a GPU that does not change is written this often only.
_SEEN_EVERY = dt.timedelta(minutes=1)
_LONGEST_STALE = dt.timedelta(minutes=3)


class GpuRows:
    """The rows that one round of answers is about; `meet` each answer, then `write` once."""

    def __init__(self, hosts: Mapping[int, Host], found: Mapping[int, Snapshot]) -> None:
        uuids = [one.uuid for snapshot in found.values() for one in snapshot.gpus if one.uuid]
        self._rows = {
            gpu.uuid: gpu for gpu in Gpu.objects.filter(Q(host__in=found) | Q(uuid__in=uuids))
        }
        self._of_host: defaultdict[int, list[Gpu]] = defaultdict(list)
        for gpu in self._rows.values():
            self._of_host[gpu.host_id].append(gpu)
        missing = self._of_host.keys() - hosts.keys()
        self._hosts = {**hosts, **(Host.objects.in_bulk(missing) if missing else {})}
        self._claimants = self._earlier_claimants(found)
        self._new: list[Gpu] = []
        self._changed: dict[int, Gpu] = {}
        self._seen: list[tuple[int, dt.datetime]] = []

    def meet(self, host: Host, snapshot: Snapshot, now: dt.datetime) -> dict[str, GpuVerdict]:
        """Match one answer with the rows. Returns the verdicts on GPUs that two hosts claim."""
        described: set[str] = set()
        disputes: dict[str, GpuVerdict] = {}
        for reading in snapshot.gpus:
            if reading.uuid is None or reading.uuid in described:
                continue
            described.add(reading.uuid)
            if (gpu := self._rows.get(reading.uuid)) is None:
                self._add(host, reading.uuid, reading, now)
                continue
            if gpu.host_id != host.pk and not self._is_held(gpu, now):
                self._move(gpu, host, now)
            if (dispute := self._dispute(gpu, host)) is not None:
                disputes[gpu.uuid] = dispute
            if gpu.host_id == host.pk:
                self._see(gpu, reading, now)
            self._judge(gpu, dispute or states.judge_gpu(reading), now)
        for gpu in self._of_host[host.pk]:
            if gpu.host_id == host.pk and gpu.uuid not in described and not gpu.is_retired:
                verdict = states.judge_missing_gpu(
                    bus_id=gpu.bus_id, answer=snapshot, lost=snapshot.lost_gpus
                )
                self._judge(gpu, verdict, now)
        return disputes

    def write(self) -> None:
        """The round in one statement a kind of change."""
        if self._new:
            Gpu.objects.bulk_create(self._new)
        if self._seen:
            keys = [pk for pk, _ in self._seen]
            Gpu.objects.filter(pk__in=keys).update(last_seen_at=max(at for _, at in self._seen))
        if self._changed:
            # Locked in key order, as bookings do, so that neither waits for the other in a circle.
            rows = Gpu.objects.filter(pk__in=self._changed).order_by("pk")
            list(rows.select_for_update(no_key=True).values_list("pk"))
            Gpu.objects.bulk_update(
                self._changed.values(),
                [
                    *("host", "index", "name", "bus_id", "driver_version", "memory_total_mib"),
                    *("state", "reason", "state_since", "last_seen_at", "is_retired"),
                ],
            )

    def _earlier_claimants(self, found: Mapping[int, Snapshot]) -> dict[str, str]:
        """UUID -> another host that showed it lately, for GPUs that would become well now.

        So a dispute lasts as long as both go on, whoever of them answered last.
        """
        recovering = [uuid for uuid in _well(found) if self._is_partial(uuid, owners=found)]
        if not recovering:
            return {}
        newest = max(host.last_good_at for host in self._hosts.values() if host.last_good_at)
        samples = HostSample.objects.filter(
            taken_at__gt=newest - _LONGEST_STALE, gpus__has_any_keys=recovering
        ).select_related("host")
        return {
            uuid: sample.host.name
            for sample in samples.order_by("taken_at")
            for uuid in recovering
            if uuid in sample.gpus
            and sample.host_id != self._rows[uuid].host_id
            and newest - sample.taken_at <= sample.host.stale_after
        }

    def _is_partial(self, uuid: str, *, owners: Collection[int]) -> bool:
        gpu = self._rows.get(uuid)
        return gpu is not None and gpu.state == Gpu.State.PARTIAL and gpu.host_id in owners

    def _is_held(self, gpu: Gpu, now: dt.datetime) -> bool:
        """Whether the host that has the GPU still answers, and showed it not long ago."""
        owner = self._hosts[gpu.host_id]
        return not owner.is_stale(now) and now - gpu.last_seen_at <= owner.stale_after + _SEEN_EVERY

    def _dispute(self, gpu: Gpu, host: Host) -> GpuVerdict | None:
        """The verdict on a GPU that this host shows and another one too; None when it is its."""
        if gpu.host_id != host.pk:
            self._claimants[gpu.uuid] = host.name
        claimant = self._claimants.get(gpu.uuid)
        owner = self._hosts[gpu.host_id]
        return None if claimant is None else states.disputed(owner.name, claimant)

    def _add(self, host: Host, uuid: str, reading: GpuReading, now: dt.datetime) -> None:
        verdict = states.judge_gpu(reading)
        gpu = Gpu(
            uuid=uuid,
            host=host,
            first_seen_at=now,
            last_seen_at=now,
            state=verdict.state,
            reason=verdict.reason,
            state_since=now,
            parent=self._rows.get(reading.parent_uuid) if reading.parent_uuid else None,
        )
        _describe(gpu, reading)
        if gpu.parent is not None and gpu.parent.pk is None:
            # A card and its instances that are new together: the card's row must be there first.
            self._new.remove(gpu.parent)
            gpu.parent.save(force_insert=True)
        self._rows[uuid] = gpu
        self._of_host[host.pk].append(gpu)
        self._new.append(gpu)

    def _see(self, gpu: Gpu, reading: GpuReading, now: dt.datetime) -> None:
        before = _description(gpu)
        _describe(gpu, reading)
        gpu.is_retired = False
        if _description(gpu) != before:
            gpu.last_seen_at = now
            self._mark_changed(gpu)
        elif now - gpu.last_seen_at > _SEEN_EVERY and gpu.pk is not None:
            gpu.last_seen_at = now
            self._seen.append((gpu.pk, now))

    def _move(self, gpu: Gpu, host: Host, now: dt.datetime) -> None:
        before = self._hosts[gpu.host_id].name
        logger.warning("GPU %s moved from host %s to %s", gpu.uuid, before, host.name)
        gpu.host, gpu.last_seen_at = host, now
        self._claimants.pop(gpu.uuid, None)
        audit.record(
            actor=None, action="gpu.move", target=gpu, changes={"host": [before, host.name]}
        )
        self._mark_changed(gpu)

    def _judge(self, gpu: Gpu, verdict: GpuVerdict, now: dt.datetime) -> None:
        if (gpu.state, gpu.reason) == (verdict.state, verdict.reason[:500]):
            return
        if gpu.state != verdict.state:
            gpu.state_since = now
        gpu.state, gpu.reason = verdict.state, verdict.reason[:500]
        self._mark_changed(gpu)

    def _mark_changed(self, gpu: Gpu) -> None:
        if gpu.pk is not None:
            self._changed[gpu.pk] = gpu


def _well(found: Mapping[int, Snapshot]) -> set[str]:
    """UUIDs of what was described without any fault."""
    return {
        one.uuid
        for snapshot in found.values()
        for one in snapshot.gpus
        if one.uuid and states.judge_gpu(one).state is Gpu.State.OK
    }


def _describe(gpu: Gpu, reading: GpuReading) -> None:
    gpu.index = reading.index
    gpu.name = (reading.name or gpu.name)[:120]
    gpu.bus_id = (reading.bus_id or gpu.bus_id)[:32]
    gpu.driver_version = (reading.driver_version or gpu.driver_version)[:32]
    if reading.memory_total_mib is not None:
        gpu.memory_total_mib = reading.memory_total_mib


def _description(gpu: Gpu) -> tuple[Any, ...]:
    return (
        *(gpu.index, gpu.name, gpu.bus_id, gpu.driver_version),
        *(gpu.memory_total_mib, gpu.is_retired),
    )
