"""The loop of a watch: send what is due, gather what came, store it in one transaction."""

from __future__ import annotations

import logging
import queue
import time
from concurrent.futures import Future, ThreadPoolExecutor

from django.conf import settings
from django.db import DatabaseError, InterfaceError, connection, transaction
from django.utils import timezone

from monitoring import hooks
from monitoring.bell import ring
from monitoring.services.storing import Answer, store
from monitoring.watch.leases import Lease, LeaseLost, abandoned_shards
from monitoring.watch.roster import Roster
from monitoring.watch.watched import Watched

logger = logging.getLogger(__name__)

TICK_SECONDS = 1.0
_THREADS = 64
_AFTER_OUR_FAULT_SECONDS = 60.0


def watch(shard: int, *, segment: float | None = None) -> str:
    """Watch one shard for a segment. Returns why it ended.

    "held" (somebody else watches), "stopped", "lost" (the lease went to another, or could not be
    renewed for its whole time), or "segment": then a successor was rung for.
    """
    lease = Lease(shard)
    if not lease.take():
        return "held"
    seconds = settings.WATCH_SEGMENT.total_seconds() if segment is None else segment
    run = _Watch(lease, ends_at=time.monotonic() + seconds)
    try:
        ended = run.until_ended()
    except LeaseLost:
        logger.warning("shard %s: the lease was lost; nothing more is written", shard)
        return "lost"
    finally:
        run.close()
        lease.give_back()
    if ended == "segment":
        ring("monitoring.tasks.watch", shard, cluster="watch")
    return ended


class _Watch:
    def __init__(self, lease: Lease, *, ends_at: float) -> None:
        self.lease = lease
        self.ends_at = ends_at
        self.renewed_at = self.rung_at = time.monotonic()
        self.roster = Roster(lease.shard)
        # Not as a context manager: leaving one waits for threads that hang.
        self.pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="probe")
        self.arrived: queue.SimpleQueue[tuple[Watched, Answer]] = queue.SimpleQueue()

    def until_ended(self) -> str:
        next_tick = time.monotonic()
        while time.monotonic() < self.ends_at:
            next_tick += TICK_SECONDS
            try:
                if self._tick(next_tick):
                    return "stopped"
            except (DatabaseError, InterfaceError):
                logger.exception("shard %s: a tick could not be stored", self.lease.shard)
                self._recover()
                time.sleep(max(next_tick - time.monotonic(), 0.0))
            # Skipped rather than piled up when a tick took too long.
            next_tick = max(next_tick, time.monotonic())
        return "segment"

    def close(self) -> None:
        self.pool.shutdown(wait=False, cancel_futures=True)
        self.roster.close()

    def _tick(self, until: float) -> bool:
        """True when a stop is requested."""
        self.roster.refresh()
        for one in self.roster.due():
            self._send(one)
        if self._write(self._gather(until)):
            return True
        self._ring_for_others()
        return False

    def _send(self, one: Watched) -> None:
        one.is_busy = True

        def arrived(future: Future[Answer | None]) -> None:
            if future.cancelled():
                return
            if (error := future.exception()) is not None:
                logger.error("host %s: the look failed inside", one.host_id, exc_info=error)
                one.due_at = time.monotonic() + _AFTER_OUR_FAULT_SECONDS
                one.is_busy = False
            elif (answer := future.result()) is not None:
                self.arrived.put((one, answer))

        self.pool.submit(one.look).add_done_callback(arrived)

    def _gather(self, until: float) -> list[Answer]:
        """What arrives before the tick's end; late answers belong to a later tick."""
        found: list[Answer] = []
        while (left := until - time.monotonic()) > 0:
            try:
                one, answer = self.arrived.get(timeout=left)
            except queue.Empty:
                break
            one.schedule(answer)
            # A host that was changed or dropped meanwhile has another entry, or none.
            if self.roster.hosts.get(one.host_id) is one:
                found.append(answer)
        return found

    def _write(self, found: list[Answer]) -> bool:
        """Store the tick under the fence, then tell who wants to know. True: stop is requested."""
        with transaction.atomic():
            stop_requested = self.lease.renew()
            seen = store(found) if found else []
        self.renewed_at = time.monotonic()
        if seen:
            hooks.call_all("AFTER_PROBE", seen, timezone.now())
        return stop_requested

    def _ring_for_others(self) -> None:
        """Other shards that nobody watches: rung for now and then, not piled up in the queue."""
        if time.monotonic() - self.rung_at < settings.WATCH_LEASE.total_seconds() / 3:
            return
        self.rung_at = time.monotonic()
        for shard in abandoned_shards():
            if shard != self.lease.shard:
                ring("monitoring.tasks.watch", shard, cluster="watch")

    def _recover(self) -> None:
        """The database went away for a moment: begin anew with it, as long as the lease lasts."""
        connection.close()
        if time.monotonic() - self.renewed_at > settings.WATCH_LEASE.total_seconds():
            raise LeaseLost
