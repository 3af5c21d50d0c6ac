"""One host in the loop: its kept connection, when it is due, and what was learned of it."""

from __future__ import annotations

import datetime as dt
import random
import secrets
import threading
import time
from collections import deque
from dataclasses import dataclass, field, replace
from typing import Any

from django.conf import settings
from django.utils import timezone

from monitoring import probe, ssh, states
from monitoring.services.storing import Answer
from monitoring.snapshot import Snapshot

_PMON_EVERY = 12  # rounds; pmon measures for a second, so it is asked rarely
_SLOW_LOOKS = 3


@dataclass(eq=False)
class Watched:
    """One host in the loop. Only its `look` runs in another thread, one at a time."""

    host_id: int
    place: tuple[Any, ...]
    shell: ssh.Shell
    due_at: float  # monotonic
    asked_at: dt.datetime | None = None  # the "probe now" that was seen to
    failures: int = 0
    stuck_times: int = 0  # nvidia-smi hung, in a row
    gpus_left_alone_until: dt.datetime | None = None
    is_busy: bool = False  # from sending to gathering
    rounds: int = 0
    driver: str | None = None
    elapsed: deque[float] = field(default_factory=lambda: deque(maxlen=_SLOW_LOOKS))
    _wanted_at: float | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _is_looking: bool = False
    _is_dropped: bool = False

    def look(self) -> Answer | None:
        """Ask the host once; None when it was dropped meanwhile. Runs in a thread of the pool."""
        with self._lock:
            if self._is_dropped:
                return None
            self._is_looking = True
        try:
            return self._look()
        finally:
            with self._lock:
                self._is_looking = False
                if self._is_dropped:
                    self.shell.close()

    def drop(self) -> None:
        """Watch it no more. The connection is closed here, or by the look that still uses it."""
        with self._lock:
            self._is_dropped = True
            if self._is_looking:
                self.shell.cut()
            else:
                self.shell.close()

    def hurry(self, due_at: float) -> None:
        """Have it looked at then, if not earlier; a look that runs already does not count."""
        if self.is_busy:
            self._wanted_at = min(due_at, self._wanted_at or due_at)
        self.due_at = min(self.due_at, due_at)

    def schedule(self, answer: Answer) -> None:
        """When to look again, after this answer."""
        good = isinstance(answer.snapshot, Snapshot)
        self.failures = 0 if good else self.failures + 1
        delay = states.connection_delay(
            self.failures,
            interval=answer.interval_seconds or normal_interval(),
            chance=random.random(),  # noqa: S311  jitter
        )
        # From when it was due, so that the rhythm does not drift. A first failure that took its
        # time has waited enough: the second look, which decides, follows at once.
        now = time.monotonic()
        base = self.due_at if self.failures <= 1 else now
        due_at = base + delay if self._wanted_at is None else min(base + delay, self._wanted_at)
        # Skipped rather than piled up.
        self.due_at = max(due_at, now + 0.1)
        self._wanted_at, self.is_busy = None, False

    def _look(self) -> Answer:
        nonce = secrets.token_hex(8)
        line = probe.request_line(
            nonce,
            first=self.driver is None,
            pmon=self.rounds % _PMON_EVERY == _PMON_EVERY - 1,
            skip_gpu=self._leaves_gpus_alone(),
        )
        result = self.shell.ask(
            line,
            end_marker=probe.end_marker(nonce),
            deadline=settings.SSH_DEADLINE.total_seconds(),
            max_bytes=probe.MAX_BYTES,
        )
        snapshot = probe.read_snapshot(result.stdout, nonce) if result.ok else None
        taken_at = timezone.now()
        if isinstance(snapshot, Snapshot):
            self._learn(result.elapsed, snapshot, taken_at)
        self.rounds += 1
        return Answer(
            host_id=self.host_id,
            # The bytes were read; they are not carried about.
            result=replace(result, stdout=b"", stderr=b""),
            snapshot=snapshot,
            taken_at=taken_at,
            interval_seconds=self._stretched_interval(),
            left_alone=self._left_alone(),
        )

    def _learn(self, elapsed: float, snapshot: Snapshot, now: dt.datetime) -> None:
        if states.is_stuck(snapshot.sections):
            self.stuck_times += 1
            chance = random.random()  # noqa: S311  jitter
            delay = states.stuck_delay(self.stuck_times, chance=chance)
            self.gpus_left_alone_until = now + dt.timedelta(seconds=delay)
        elif snapshot.gpus:
            self.stuck_times, self.gpus_left_alone_until = 0, None
            self.driver = snapshot.gpus[0].driver_version or ""
            self.elapsed.append(elapsed)

    def _leaves_gpus_alone(self) -> bool:
        until, now = self.gpus_left_alone_until, timezone.now()
        # One that is further away than any is from before the clock was set back.
        return until is not None and now < until < now + states.LONGEST_STUCK_DELAY

    def _left_alone(self) -> states.LeftAlone | None:
        until = self.gpus_left_alone_until
        return None if until is None else states.LeftAlone(self.stuck_times, until)

    def _stretched_interval(self) -> float | None:
        known = self.elapsed if len(self.elapsed) == _SLOW_LOOKS else ()
        return states.interval_for(known, normal=normal_interval())


def normal_interval() -> float:
    """Seconds between two looks at a host that answers quickly."""
    return settings.PROBE_INTERVAL.total_seconds()
