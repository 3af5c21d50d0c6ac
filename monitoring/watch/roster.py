"""The hosts of one shard, as the loop keeps them: when each is due, and its kept connection."""

from __future__ import annotations

import datetime as dt
import random
import secrets
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings
from django.utils import timezone

from monitoring import probe, ssh, states
from monitoring.models import Host, HostKey
from monitoring.services.storing import Answer
from monitoring.services.targets import targets_of
from monitoring.snapshot import Snapshot

_PMON_EVERY = 12  # rounds; pmon measures for a second, so it is asked rarely
_SLOW_LOOKS = 3


@dataclass
class Watched:
    """One host in the loop. Only its `look` runs in another thread, one at a time."""

    host_id: int
    place: tuple[Any, ...]
    shell: ssh.Shell
    due_at: float  # monotonic
    is_busy: bool = False
    failures: int = 0
    rounds: int = 0
    asked_at: dt.datetime | None = None  # the "probe now" that was seen to
    stuck_times: int = 0
    gpus_left_alone_until: float = 0.0
    driver: str | None = None
    elapsed: deque[float] = field(default_factory=lambda: deque(maxlen=_SLOW_LOOKS))

    def look(self) -> Answer:
        """Ask the host once. Runs in a thread of the pool; touches no row."""
        nonce = secrets.token_hex(8)
        line = probe.request_line(
            nonce,
            first=self.driver is None,
            pmon=self.rounds % _PMON_EVERY == _PMON_EVERY - 1,
            skip_gpu=time.monotonic() < self.gpus_left_alone_until,
        )
        result = self.shell.ask(
            line,
            end_marker=probe.end_marker(nonce),
            deadline=settings.SSH_DEADLINE.total_seconds(),
            max_bytes=probe.MAX_BYTES,
        )
        snapshot = probe.read_snapshot(result.stdout, nonce) if result.ok else None
        self._learn(result, snapshot)
        return Answer(
            host_id=self.host_id,
            # The bytes were read; they are not carried about.
            result=ssh.Result(
                status=result.status,
                phase=result.phase,
                elapsed=result.elapsed,
                reason=result.reason,
                seen_keys=result.seen_keys,
            ),
            snapshot=snapshot,
            taken_at=timezone.now(),
            interval_seconds=states.interval_for(
                self.elapsed if len(self.elapsed) == _SLOW_LOOKS else (), normal=_normal_interval()
            ),
            address=self.shell.target.address.host,
            port=self.shell.target.address.port,
        )

    def schedule(self, answer: Answer) -> None:
        """When to look again, after this answer."""
        good = isinstance(answer.snapshot, Snapshot)
        self.failures = 0 if good else self.failures + 1
        delay = states.connection_delay(
            self.failures,
            interval=answer.interval_seconds or _normal_interval(),
            chance=random.random(),  # noqa: S311  jitter
        )
        # From when it was due, so that the rhythm does not drift; skipped rather than piled up.
        base = self.due_at if good else time.monotonic()
        self.due_at = max(base + delay, time.monotonic() + 0.1)
        self.is_busy = False

    def _learn(self, result: ssh.Result, snapshot: object) -> None:
        self.rounds += 1
        if not isinstance(snapshot, Snapshot):
            return
        if states.is_stuck(snapshot.sections):
            self.stuck_times += 1
            chance = random.random()  # noqa: S311  jitter
            self.gpus_left_alone_until = time.monotonic() + states.stuck_delay(
                self.stuck_times, chance=chance
            )
        elif snapshot.gpus:
            self.stuck_times = 0
            self.driver = snapshot.gpus[0].driver_version or ""
            self.elapsed.append(result.elapsed)


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
        keys = HostKey.objects.exclude(accepted_at=None).values_list(
            "host_id", "address", "port", "key_type", "public_key"
        )
        pins: dict[int, list[tuple[Any, ...]]] = {}
        for host_id, *pin in keys:
            pins.setdefault(host_id, []).append(tuple(pin))
        places = {host.pk: _place(host, pins.get(host.pk, [])) for host in rows}
        changed = [host for host in rows if self._is_other(host.pk, places[host.pk])]
        targets = targets_of(changed) if changed else {}
        for gone in self.hosts.keys() - places.keys():
            self.hosts.pop(gone).shell.close()
        for position, host in enumerate(changed):
            self._add(host, places[host.pk], targets[host.pk], position, len(changed))
        for host in rows:
            self._hurry(self.hosts[host.pk], host.probe_requested_at)

    def due(self) -> Iterator[Watched]:
        """Hosts to look at now, the longest waiting first; none that is still being looked at."""
        now = time.monotonic()
        waiting = [one for one in self.hosts.values() if not one.is_busy and one.due_at <= now]
        yield from sorted(waiting, key=lambda one: one.due_at)

    def close(self) -> None:
        for one in self.hosts.values():
            one.shell.close()

    def _is_other(self, host_id: int, place: tuple[Any, ...]) -> bool:
        known = self.hosts.get(host_id)
        return known is None or known.place != place

    def _add(
        self, host: Host, place: tuple[Any, ...], target: ssh.Target, position: int, count: int
    ) -> None:
        if (old := self.hosts.pop(host.pk, None)) is not None:
            old.shell.close()
        # Spread over the interval, so that connects and writes have no peak.
        offset = _normal_interval() * position / count if count > 4 else 0.0
        self.hosts[host.pk] = Watched(
            host_id=host.pk,
            place=place,
            shell=ssh.Shell(target, preamble=probe.function_text()),
            due_at=time.monotonic() + offset,
            asked_at=host.probe_requested_at,
        )

    @staticmethod
    def _hurry(one: Watched, asked_at: dt.datetime | None) -> None:
        """A look that was asked for comes when it was asked for, whatever the back-off says."""
        if asked_at is None or asked_at == one.asked_at:
            return
        one.asked_at = asked_at
        wait = max((asked_at - timezone.now()).total_seconds(), 0.0)
        one.due_at = min(one.due_at, time.monotonic() + wait)
        if wait == 0.0:
            one.gpus_left_alone_until = 0.0


def _place(host: Host, pins: list[tuple[Any, ...]]) -> tuple[Any, ...]:
    """Everything that a kept connection depends on."""
    return (
        *(host.address, host.port, host.user, host.jump_address, host.jump_port, host.jump_user),
        tuple(sorted(pins)),
    )


def _normal_interval() -> float:
    return settings.PROBE_INTERVAL.total_seconds()
