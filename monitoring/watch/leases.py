"""Who watches a shard: taken, renewed and given back by conditional UPDATEs only.

Times are the database's, which all machines share; none of them needs a right clock for this.
"""

from __future__ import annotations

import datetime as dt
import os
import secrets
import socket

from django.conf import settings
from django.db.models import Q
from django.db.models.functions import Now

from monitoring.models import WatchLease

_LONG_AGO = dt.datetime(2000, 1, 1, tzinfo=dt.UTC)


class LeaseLost(Exception):
    """Somebody else watches this shard now: stop at once and write nothing more."""


class Lease:
    """The lease of one shard, as one holder sees it."""

    def __init__(self, shard: int) -> None:
        self.shard = shard
        self.holder = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(6)}"

    def take(self) -> bool:
        """Take the shard if nobody holds it. The count of changed rows tells who won."""
        WatchLease.objects.get_or_create(shard=self.shard, defaults={"expires_at": _LONG_AGO})
        free = WatchLease.objects.filter(~_held(), shard=self.shard)
        return bool(
            free.update(
                holder=self.holder,
                machine=socket.gethostname(),
                expires_at=Now() + settings.WATCH_LEASE,
                beat_at=Now(),
                stop_requested=False,
                version=settings.CODE_VERSION,
            )
        )

    def renew(self) -> bool:
        """Hold on for another while; True when a stop is requested. Raises LeaseLost.

        Inside a transaction this is the fence: what is written with it is written by the holder.
        One that ran out and that nobody took is still ours.
        """
        mine = WatchLease.objects.filter(shard=self.shard, holder=self.holder)
        if not mine.update(expires_at=Now() + settings.WATCH_LEASE, beat_at=Now()):
            raise LeaseLost
        return WatchLease.objects.values_list("stop_requested", flat=True).get(shard=self.shard)

    def give_back(self) -> None:
        """Let the next one take it at once; nothing happens if it was lost already."""
        WatchLease.objects.filter(shard=self.shard, holder=self.holder).update(
            expires_at=_LONG_AGO, holder=""
        )


def abandoned_shards() -> list[int]:
    """Shards that nobody watches now, of all that there should be."""
    held = set(WatchLease.objects.filter(_held()).values_list("shard", flat=True))
    return [shard for shard in range(settings.WATCH_SHARDS) if shard not in held]


def request_stop() -> int:
    """Ask the watches on this machine to give their leases back. Returns how many."""
    return WatchLease.objects.filter(_held(), machine=socket.gethostname()).update(
        stop_requested=True
    )


def _held() -> Q:
    """Not run out. One that would last much longer than any lease is from before the clock was
    set back; nobody renews it, or it would be shorter.
    """
    return Q(expires_at__gte=Now(), expires_at__lte=Now() + 2 * settings.WATCH_LEASE)
