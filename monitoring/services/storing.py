"""Storing what a round of probes brought: few statements however many hosts answered."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from monitoring import answers, states
from monitoring.models import Gpu, Host, HostSample, HostSnapshot
from monitoring.probe import BrokenAnswer
from monitoring.services import host_keys
from monitoring.snapshot import CpuCounters, GpuReading, Snapshot
from monitoring.ssh import Result


@dataclass(frozen=True, slots=True)
class Answer:
    """One look at one host. `taken_at` is when its answer arrived, by the manager's clock."""

    host_id: int
    result: Result
    snapshot: Snapshot | BrokenAnswer | None
    taken_at: dt.datetime
    interval_seconds: float | None = None  # the host's own interval from now on; None: normal
    address: str = ""
    port: int = 22


@dataclass(slots=True)
class _Round:
    """The rows that the answers are about."""

    hosts: Mapping[int, Host]
    snapshots: Mapping[int, HostSnapshot]
    gpus: dict[str, Gpu]
    new_gpus: list[Gpu] = field(default_factory=list)
    changed_gpus: list[Gpu] = field(default_factory=list)


def store(found: Sequence[Answer]) -> list[int]:
    """Write all answers down, inside the caller's transaction. Returns the hosts that were good.

    A host that was deleted, disabled or put into maintenance meanwhile is left alone.
    """
    rows = _rows(found)
    good: list[int] = []
    for answer in found:
        host = rows.hosts.get(answer.host_id)
        if host is None or not host.is_enabled or host.in_maintenance:
            continue
        verdict = states.judge(
            answer.result, answer.snapshot, earlier_failures=host.failures_in_a_row
        )
        if verdict.is_good and isinstance(answer.snapshot, Snapshot):
            _store_good(host, answer, answer.snapshot, rows)
            good.append(host.pk)
        elif answer.result.seen_keys:
            host_keys.record_seen(
                host,
                address=answer.address or host.address,
                port=answer.port,
                lines=answer.result.seen_keys,
                now=answer.taken_at,
            )
        _store_state(host, verdict, answer)
    _write(rows, good, {answer.host_id: answer for answer in found})
    return good


def _rows(found: Sequence[Answer]) -> _Round:
    ids = [answer.host_id for answer in found]
    uuids = {
        reading.uuid
        for answer in found
        if isinstance(answer.snapshot, Snapshot)
        for reading in answer.snapshot.gpus
        if reading.uuid
    }
    gpus = Gpu.objects.filter(host__in=ids) | Gpu.objects.filter(uuid__in=uuids)
    return _Round(
        hosts=Host.objects.in_bulk(ids),
        snapshots={row.host_id: row for row in HostSnapshot.objects.filter(host__in=ids)},
        gpus={gpu.uuid: gpu for gpu in gpus.select_related("host")},
    )


def _store_state(host: Host, verdict: states.Verdict, answer: Answer) -> None:
    """The host's row: one short UPDATE, since most of it changes with every answer."""
    changes: dict[str, Any] = {
        "last_probe_at": answer.taken_at,
        "failures_in_a_row": verdict.failures,
    }
    state = verdict.state
    if state is None and host.state == Host.State.PENDING and verdict.failures:
        changes["reason"] = f"The first look failed: {verdict.reason}"[:500]
    if state is not None:
        changes |= {"state": state, "reason": verdict.reason[:500]}
        if state != host.state:
            changes["state_since"] = answer.taken_at
    if verdict.is_good and isinstance(answer.snapshot, Snapshot):
        changes |= {
            "last_good_at": answer.taken_at,
            "interval_seconds": answer.interval_seconds,
            "boot_id": answer.snapshot.boot_id or "",
            "machine_id": answer.snapshot.machine_id or "",
        }
    Host.objects.filter(pk=host.pk).update(**changes)


def _store_good(host: Host, answer: Answer, snapshot: Snapshot, rows: _Round) -> None:
    earlier = rows.snapshots.get(host.pk)
    data = answers.as_data(
        snapshot, taken_at=answer.taken_at, earlier_cpu=_earlier_cpu(earlier, snapshot)
    )
    if earlier is None:
        earlier = rows.snapshots[host.pk] = HostSnapshot(host=host)  # type: ignore[index]
    else:
        earlier.previous_taken_at = earlier.taken_at
        earlier.previous_data = answers.remembered(earlier.data)
    earlier.taken_at, earlier.data = answer.taken_at, data
    earlier.probe_seconds = answer.result.elapsed
    _meet_gpus(host, answer, snapshot, rows, {gpu["uuid"]: gpu for gpu in data["gpus"]})


def _earlier_cpu(earlier: HostSnapshot | None, snapshot: Snapshot) -> CpuCounters | None:
    """The counters before, unless the host was rebooted in between."""
    if earlier is None or not (cpu := earlier.data.get("cpu")):
        return None
    if earlier.data.get("boot_id") != snapshot.boot_id:
        return None
    return CpuCounters(**cpu)


def _meet_gpus(
    host: Host,
    answer: Answer,
    snapshot: Snapshot,
    rows: _Round,
    shown: Mapping[str, dict[str, Any]],
) -> None:
    """Match what was described with the known GPUs; new ones are added, missing ones flagged."""
    described: set[str] = set()
    for reading in snapshot.gpus:
        if reading.uuid is None or reading.uuid in described:
            continue
        described.add(reading.uuid)
        gpu = rows.gpus.get(reading.uuid)
        if gpu is None:
            _add_gpu(host, reading.uuid, reading, answer.taken_at, rows)
        elif gpu.host_id != host.pk and _is_claimed(gpu, answer.taken_at):
            _dispute(gpu, host, rows, answer.taken_at)
            shown[reading.uuid].update(state="partial", reason=gpu.reason)
        else:
            _see_gpu(gpu, host, reading, rows, answer.taken_at)
    for gpu in rows.gpus.values():
        if gpu.host_id == host.pk and gpu.uuid not in described and not gpu.is_retired:
            verdict = states.judge_missing_gpu(
                bus_id=gpu.bus_id, answer=snapshot, lost=snapshot.lost_gpus
            )
            _set_gpu_state(gpu, verdict, rows, answer.taken_at)


def _add_gpu(host: Host, uuid: str, reading: GpuReading, now: dt.datetime, rows: _Round) -> None:
    gpu = Gpu(uuid=uuid, host=host, first_seen_at=now, last_seen_at=now, state_since=now)
    _describe(gpu, host, reading)
    verdict = states.judge_gpu(reading)
    gpu.state, gpu.reason = verdict.state, verdict.reason
    gpu.parent = rows.gpus.get(reading.parent_uuid) if reading.parent_uuid else None
    rows.gpus[gpu.uuid] = gpu
    if gpu.parent is not None and gpu.parent.pk is None:
        # A card and its instances that are new together: the card's row must be there first.
        rows.new_gpus.remove(gpu.parent)
        gpu.parent.save(force_insert=True)
    rows.new_gpus.append(gpu)


def _see_gpu(gpu: Gpu, host: Host, reading: GpuReading, rows: _Round, now: dt.datetime) -> None:
    before = _described(gpu)
    _describe(gpu, host, reading)
    gpu.is_retired = False
    is_due = now - gpu.last_seen_at > dt.timedelta(minutes=1)
    if _described(gpu) != before or is_due:
        gpu.last_seen_at = now
        _mark_changed(gpu, rows)
    _set_gpu_state(gpu, states.judge_gpu(reading), rows, now)


def _describe(gpu: Gpu, host: Host, reading: GpuReading) -> None:
    gpu.host = host
    gpu.index = reading.index
    gpu.name = reading.name or gpu.name
    gpu.bus_id = (reading.bus_id or gpu.bus_id)[:32]
    gpu.driver_version = (reading.driver_version or gpu.driver_version)[:32]
    if reading.memory_total_mib is not None:
        gpu.memory_total_mib = reading.memory_total_mib


def _described(gpu: Gpu) -> tuple[Any, ...]:
    return (gpu.host_id, gpu.index, gpu.name, gpu.bus_id, gpu.memory_total_mib, gpu.is_retired)


def _is_claimed(gpu: Gpu, now: dt.datetime) -> bool:
    """Whether the host that has the GPU still answers and still describes it."""
    return not gpu.host.is_stale(now) and gpu.state != Gpu.State.LOST


def _dispute(gpu: Gpu, claimant: Host, rows: _Round, now: dt.datetime) -> None:
    """Two hosts show one GPU: it stays where it is, and nothing is enforced on it."""
    verdict = states.GpuVerdict(
        Gpu.State.PARTIAL,
        f"{gpu.host.name} and {claimant.name} both claim this GPU; an administrator must look.",
    )
    _set_gpu_state(gpu, verdict, rows, now)


def _set_gpu_state(gpu: Gpu, verdict: states.GpuVerdict, rows: _Round, now: dt.datetime) -> None:
    if (gpu.state, gpu.reason) == (verdict.state, verdict.reason):
        return
    if _is_disputed(gpu) and verdict.state == Gpu.State.OK and not _dispute_is_over(gpu, now):
        return
    if gpu.state != verdict.state:
        gpu.state_since = now
    gpu.state, gpu.reason = verdict.state, verdict.reason[:500]
    _mark_changed(gpu, rows)


def _is_disputed(gpu: Gpu) -> bool:
    return gpu.state == Gpu.State.PARTIAL and "both claim this GPU" in gpu.reason


def _dispute_is_over(gpu: Gpu, now: dt.datetime) -> bool:
    """It ends when only one host has shown the GPU for a minute: `last_seen_at` stands still."""
    return gpu.state_since is not None and now - gpu.state_since > dt.timedelta(minutes=1)


def _mark_changed(gpu: Gpu, rows: _Round) -> None:
    if gpu.pk is not None and gpu not in rows.changed_gpus:
        rows.changed_gpus.append(gpu)


def _write(rows: _Round, good: Sequence[int], found: Mapping[int, Answer]) -> None:
    """The rest of the round in one statement a table."""
    if rows.new_gpus:
        Gpu.objects.bulk_create(rows.new_gpus)
    if rows.changed_gpus:
        # Locked in key order, as bookings do, so that neither waits for the other in a circle.
        keys = [gpu.pk for gpu in rows.changed_gpus]
        locked = Gpu.objects.select_for_update(no_key=True).filter(pk__in=keys).order_by("pk")
        list(locked.values_list("pk"))
        Gpu.objects.bulk_update(
            rows.changed_gpus,
            [
                *("host", "index", "name", "bus_id", "driver_version", "memory_total_mib"),
                *("state", "reason", "state_since", "last_seen_at", "is_retired"),
            ],
        )
    snapshots = [rows.snapshots[pk] for pk in good]
    HostSnapshot.objects.bulk_create(
        [_fresh(row) for row in snapshots],
        update_conflicts=True,
        unique_fields=["host"],
        update_fields=["taken_at", "previous_taken_at", "probe_seconds", "data", "previous_data"],
    )
    HostSample.objects.bulk_create(
        [
            HostSample(
                host_id=row.host_id,
                taken_at=row.taken_at,
                gpus=answers.sampled(row.data),
                cpu_percent=row.data["cpu_percent"],
                memory_used_mib=row.data["memory_used_mib"],
                load_1m=row.data["load"][0],
            )
            for row in snapshots
        ],
        ignore_conflicts=True,
    )


def _fresh(row: HostSnapshot) -> HostSnapshot:
    return HostSnapshot(
        host_id=row.host_id,
        taken_at=row.taken_at,
        previous_taken_at=row.previous_taken_at,
        probe_seconds=row.probe_seconds,
        data=row.data,
        previous_data=row.previous_data,
    )

