"""The hosts of one shard, as the loop keeps them: equal to the rows, and which are due."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Collection, Mapping
from typing import Any

from django.conf import settings
from django.utils import timezone

from monitoring import probe, ssh
from monitoring.models import Host, HostKey, HostSnapshot
from monitoring.services.targets import targets_of
from monitoring.watch.watched import Watched, normal_interval

# Hosts that do not answer hold their threads for long, so they never get more than this many.
_FAILING_AT_ONCE = 32


class Roster:
    """Keeps the loop's hosts equal to the rows, with two queries each time."""

    def __init__(self, shard: int) -> None:
        self.shard = shard
        self.hosts: dict[int, Watched] = {}

    def refresh(self) -> None:
        """Add, replace and drop hosts as the rows say; see to "probe now"."""
        rows = [
            host
            for host in Host.objects.watched()
            if host.shard(settings.WATCH_SHARDS) == self.shard
        ]
        pins = _pins()
        places = {host.pk: _place(host, pins.get(host.pk, [])) for host in rows}
        for gone in self.hosts.keys() - places.keys():
            self.hosts.pop(gone).drop()
        self._replace([host for host in rows if self._is_other(host.pk, places[host.pk])], places)
        now = timezone.now()
        for host in rows:
            _see_to_wish(self.hosts[host.pk], host.probe_requested_at, now)

    def due(self) -> list[Watched]:
        """Hosts to look at now, none that is still being looked at.

        Those that answered last time come first, the longest waiting of them before the others;
        of the rest only so many as leave threads for the healthy ones.
        """
        now = time.monotonic()
        waiting = sorted(
            (one for one in self.hosts.values() if not one.is_busy and one.due_at <= now),
            key=lambda one: one.due_at,
        )
        busy = sum(one.is_busy and one.failures > 0 for one in self.hosts.values())
        failing = [one for one in waiting if one.failures]
        healthy = [one for one in waiting if not one.failures]
        return healthy + failing[: max(_FAILING_AT_ONCE - busy, 0)]

    def close(self) -> None:
        for one in self.hosts.values():
            one.drop()

    def _is_other(self, host_id: int, place: tuple[Any, ...]) -> bool:
        known = self.hosts.get(host_id)
        return known is None or known.place != place

    def _replace(self, changed: list[Host], places: Mapping[int, tuple[Any, ...]]) -> None:
        if not changed:
            return
        targets, left_alone = targets_of(changed), _left_alone(changed)
        now = timezone.now()
        for position, host in enumerate(changed):
            if (old := self.hosts.pop(host.pk, None)) is not None:
                old.drop()
            times, until = left_alone.get(host.pk, (0, None))
            spread = normal_interval() * position / len(changed) if len(changed) > 4 else 0.0
            self.hosts[host.pk] = Watched(
                host_id=host.pk,
                place=places[host.pk],
                shell=ssh.Shell(targets[host.pk], preamble=probe.function_text()),
                due_at=time.monotonic() + _first_wait(host, now=now, spread=spread),
                asked_at=host.probe_requested_at,
                failures=host.failures_in_a_row,
                stuck_times=times,
                gpus_left_alone_until=until,
            )


def _first_wait(host: Host, *, now: dt.datetime, spread: float) -> float:
    """Seconds until a host that is new in the loop is looked at.

    It goes on in the rhythm that another watch had, so that hand-overs leave no gap and make no
    peak; otherwise it waits for its own place in the interval.
    """
    wait = spread
    if host.last_probe_at is not None:
        rest = (host.last_probe_at + host.current_interval - now).total_seconds()
        if 0 < rest <= host.current_interval.total_seconds():
            wait = rest
    asked = host.probe_requested_at
    if asked is not None and (host.last_probe_at is None or asked > host.last_probe_at):
        wait = min(wait, max((asked - now).total_seconds(), 0.0))
    return wait


def _see_to_wish(one: Watched, asked_at: dt.datetime | None, now: dt.datetime) -> None:
    """A look that was asked for comes when it was asked for, whatever the back-off says."""
    if asked_at is None or asked_at == one.asked_at:
        return
    one.asked_at = asked_at
    wait = max((asked_at - now).total_seconds(), 0.0)
    one.hurry(time.monotonic() + wait)
    if wait == 0.0:
        one.gpus_left_alone_until = None


def _left_alone(hosts: Collection[Host]) -> dict[int, tuple[int, dt.datetime]]:
    """Host -> how often nvidia-smi hung there, and until when an earlier watch left it alone."""
    rows = HostSnapshot.objects.filter(host__in=hosts).values_list(
        "host_id", "data__gpus_left_alone"
    )
    return {
        host_id: (left["times"], dt.datetime.fromisoformat(left["until"]))
        for host_id, left in rows
        if left
    }


def _pins() -> dict[int, list[tuple[Any, ...]]]:
    """Host -> its accepted keys."""
    pins: dict[int, list[tuple[Any, ...]]] = {}
    for host_id, *pin in HostKey.objects.exclude(accepted_at=None).values_list(
        "host_id", "address", "port", "key_type", "public_key"
    ):
        pins.setdefault(host_id, []).append(tuple(pin))
    return pins


def _place(host: Host, pins: list[tuple[Any, ...]]) -> tuple[Any, ...]:
    """Everything that a kept connection depends on."""
    return (
        *(host.address, host.port, host.user, host.jump_address, host.jump_port, host.jump_user),
        tuple(sorted(pins)),
    )
