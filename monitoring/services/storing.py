"""Storing what a round of probes brought: few statements however many hosts answered."""

from __future__ import annotations

import datetime as dt
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.db import DatabaseError, OperationalError, transaction

from monitoring import answers, states
from monitoring.models import Host, HostSample, HostSnapshot
from monitoring.probe import BrokenAnswer
from monitoring.services import host_keys
from monitoring.services.gpu_rows import GpuRows
from monitoring.snapshot import CpuCounters, Snapshot
from monitoring.ssh import Result

logger = logging.getLogger(__name__)

_HOST_FIELDS = (
    *("state", "reason", "state_since", "last_probe_at", "last_good_at", "failures_in_a_row"),
    *("interval_seconds", "boot_id", "machine_id"),
)


@dataclass(frozen=True, slots=True)
class Answer:
    """One look at one host. `taken_at` is when its answer arrived, by the manager's clock."""

    host_id: int
    result: Result
    snapshot: Snapshot | BrokenAnswer | None
    taken_at: dt.datetime
    interval_seconds: float | None = None  # the host's own interval from now on; None: normal
    left_alone: states.LeftAlone | None = None


@dataclass(frozen=True, slots=True)
class _Earlier:
    taken_at: dt.datetime
    data: Mapping[str, Any]


def store(found: Sequence[Answer]) -> list[int]:
    """Write the answers down, inside the caller's transaction. Returns the hosts that were good.

    One answer for a host at most. A host that was deleted, disabled or put into maintenance
    meanwhile is left alone. An answer that the database does not take costs only its own host.
    """
    try:
        with transaction.atomic():
            return _store(found)
    except OperationalError:
        raise  # that is the database's trouble, not the answers'
    except (DatabaseError, ValueError, OverflowError, TypeError) as error:
        if len(found) > 1:
            return [pk for answer in found for pk in store([answer])]
        (answer,) = found
        if not isinstance(answer.snapshot, Snapshot):
            raise
        logger.exception("host %s: its answer could not be stored", answer.host_id)
        broken = BrokenAnswer(f"Its answer could not be stored ({type(error).__name__}).")
        return store([replace(answer, snapshot=broken)])


def _store(found: Sequence[Answer]) -> list[int]:
    hosts = _watched(found)
    standing = [answer for answer in found if answer.host_id in hosts]
    verdicts = {
        answer.host_id: states.judge(
            answer.result,
            answer.snapshot,
            earlier_failures=hosts[answer.host_id].failures_in_a_row,
        )
        for answer in standing
    }
    good = {
        answer.host_id: (answer, answer.snapshot)
        for answer in standing
        if verdicts[answer.host_id].is_good and isinstance(answer.snapshot, Snapshot)
    }
    for answer in standing:
        _restate(hosts[answer.host_id], verdicts[answer.host_id], answer)
        _record_keys(hosts[answer.host_id], answer)
    if hosts:
        _write_hosts(hosts.values())
    if good:
        _store_good(hosts, good)
    return list(good)


def _watched(found: Sequence[Answer]) -> dict[int, Host]:
    """The hosts' rows, locked in key order, so that nobody disables one in between."""
    rows = Host.objects.watched().filter(pk__in=[answer.host_id for answer in found])
    return {host.pk: host for host in rows.select_for_update(no_key=True).order_by("pk")}


def _restate(host: Host, verdict: states.Verdict, answer: Answer) -> None:
    """Put into the row what the look means for the host."""
    if verdict.state is not None:
        if verdict.state != host.state:
            host.state_since = answer.taken_at
        host.state, host.reason = verdict.state, verdict.reason[:500]
    elif host.state == Host.State.PENDING:
        host.reason = f"The first look failed: {verdict.reason}"[:500]
    host.last_probe_at, host.failures_in_a_row = answer.taken_at, verdict.failures
    if verdict.is_good and isinstance(answer.snapshot, Snapshot):
        host.last_good_at, host.interval_seconds = answer.taken_at, answer.interval_seconds
        host.boot_id = answer.snapshot.boot_id or ""
        host.machine_id = answer.snapshot.machine_id or ""


def _record_keys(host: Host, answer: Answer) -> None:
    """Keys that are not trusted, at the host or at the jump host that showed them."""
    if (where := answer.result.seen_at) is not None:
        host_keys.record_seen(
            host,
            address=where.host,
            port=where.port,
            lines=answer.result.seen_keys,
            now=answer.taken_at,
        )


def _write_hosts(hosts: Iterable[Host]) -> None:
    # An upsert of rows that are there and locked: one statement, much cheaper than bulk_update.
    Host.objects.bulk_create(
        hosts, update_conflicts=True, unique_fields=["id"], update_fields=_HOST_FIELDS
    )


def _store_good(hosts: Mapping[int, Host], good: Mapping[int, tuple[Answer, Snapshot]]) -> None:
    earlier = {
        host_id: _Earlier(taken_at, data)
        for host_id, taken_at, data in HostSnapshot.objects.filter(host__in=good).values_list(
            "host_id", "taken_at", "data"
        )
    }
    gpus = GpuRows(hosts, {host_id: snapshot for host_id, (_, snapshot) in good.items()})
    rows = []
    for host_id, (answer, snapshot) in good.items():
        verdicts = gpus.meet(hosts[host_id], snapshot, answer.taken_at)
        rows.append(_snapshot_row(answer, snapshot, earlier.get(host_id), verdicts))
    gpus.write()
    _write_snapshots(rows)


def _snapshot_row(
    answer: Answer,
    snapshot: Snapshot,
    earlier: _Earlier | None,
    verdicts: Mapping[str, states.GpuVerdict],
) -> HostSnapshot:
    data = answers.as_data(
        snapshot,
        taken_at=answer.taken_at,
        earlier_cpu=_earlier_cpu(earlier, snapshot),
        verdicts=verdicts,
        left_alone=answer.left_alone,
    )
    return HostSnapshot(
        host_id=answer.host_id,
        taken_at=answer.taken_at,
        probe_seconds=answer.result.elapsed,
        data=data,
        previous_taken_at=earlier.taken_at if earlier else None,
        previous_data=answers.remembered(earlier.data) if earlier else None,
    )


def _earlier_cpu(earlier: _Earlier | None, snapshot: Snapshot) -> CpuCounters | None:
    """The counters before, unless the host was rebooted in between."""
    if earlier is None or not (cpu := earlier.data.get("cpu")):
        return None
    if earlier.data.get("boot_id") != snapshot.boot_id:
        return None
    return CpuCounters(**cpu)


def _write_snapshots(rows: Sequence[HostSnapshot]) -> None:
    HostSnapshot.objects.bulk_create(
        rows,
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
            for row in rows
        ],
        ignore_conflicts=True,
    )
