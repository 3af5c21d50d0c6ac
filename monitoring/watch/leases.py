"""Who watches a shard: taken, renewed and given back by conditional UPDATEs only."""

from __future__ import annotations

import datetime as dt
import os
import secrets
import socket

from django.conf import settings
from django.utils import timezone

from monitoring.models import WatchLease


class LeaseLost(Exception):
    """Somebody else watches this shard now: stop at once and write nothing more."""


class Lease:
    """The lease of one shard, as one holder sees it."""

    def __init__(self, shard: int) -> None:
        self.shard = shard
        self.holder = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(6)}"

    def take(self) -> bool:
        """Take the shard if nobody holds it. The count of changed rows tells who won."""
        now = timezone.now()
        WatchLease.objects.get_or_create(
            shard=self.shard, defaults={"expires_at": now - dt.timedelta(seconds=1)}
        )
        free = WatchLease.objects.filter(shard=self.shard, expires_at__lt=now)
        return bool(
            free.update(
                holder=self.holder,
                machine=socket.gethostname(),
                expires_at=now + settings.WATCH_LEASE,
                beat_at=now,
                stop_requested=False,
                version=settings.CODE_VERSION,
            )
        )

    def renew(self) -> bool:
        """Hold on for another while; True when a stop is requested. Raises LeaseLost.

        Inside a transaction this is the fence: what is written with it is written by the holder.
        """
        now = timezone.now()
        mine = WatchLease.objects.filter(shard=self.shard, holder=self.holder, expires_at__gt=now)
        if not mine.update(expires_at=now + settings.WATCH_LEASE, beat_at=now):
            raise LeaseLost
        return WatchLease.objects.values_list("stop_requested", flat=True).get(shard=self.shard)

    def give_back(self) -> None:
        """Let the next one take it at once; nothing happens if it was lost already."""
        WatchLease.objects.filter(shard=self.shard, holder=self.holder).update(
            expires_at=timezone.now() - dt.timedelta(seconds=1), holder=""
        )


def abandoned_shards(now: dt.datetime) -> list[int]:
    """Shards that nobody watches now, of all that there should be."""
    held = set(WatchLease.objects.filter(expires_at__gte=now).values_list("shard", flat=True))
    return [shard for shard in range(settings.WATCH_SHARDS) if shard not in held]


def request_stop() -> int:
    """Ask the watches on this machine to give their leases back. Returns how many."""
    return WatchLease.objects.filter(
        machine=socket.gethostname(), expires_at__gte=timezone.now()
    ).update(stop_requested=True)
