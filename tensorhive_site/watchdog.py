"""Looks from outside whether each cluster still runs tasks, and has a frozen one restarted.

A killed idle worker freezes a django-q2 cluster for good while it looks alive; only a task that
runs proves life. So every interval a small task is queued in each cluster, and its row is read.
"""

from __future__ import annotations

import datetime as dt
import logging
import os
from pathlib import Path

from django.conf import settings
from django.utils import timezone
from django_q.models import OrmQ
from django_q.tasks import async_task

from monitoring.models import Heartbeat
from monitoring.services.heartbeats import MISSED_BEATS
from tensorhive_site.run_cluster import RESTART_SIGNAL, pid_file

logger = logging.getLogger(__name__)
_BEAT = "monitoring.tasks.beat"


class Watchdog:
    """Keeps when each cluster was last given a new chance; one on each machine."""

    def __init__(self, machine: str, now: dt.datetime) -> None:
        self.machine = machine
        self.fresh_since = dict.fromkeys(settings.CLUSTER_SIZES, now)

    def look(self, now: dt.datetime) -> list[str]:
        """Ask every cluster for a beat; restart those whose last three are missing."""
        frozen = [name for name in settings.CLUSTER_SIZES if self._is_frozen(name, now)]
        for name in frozen:
            self._restart(name, now)
        for name in settings.CLUSTER_SIZES:
            async_task(_BEAT, name, timezone.now().isoformat(), cluster=name)
        return frozen

    def _is_frozen(self, cluster: str, now: dt.datetime) -> bool:
        patience = MISSED_BEATS * settings.HEARTBEAT_INTERVAL
        if now - self.fresh_since[cluster] <= patience:
            return False
        row = Heartbeat.objects.filter(cluster=cluster, machine=self.machine).first()
        if row is None or now - row.beat_at > patience:
            return True
        # Beats that ran but stay in the queue: nobody acknowledges, so every task runs again.
        return _unacknowledged(cluster) > MISSED_BEATS

    def _restart(self, cluster: str, now: dt.datetime) -> None:
        self.fresh_since[cluster] = now
        _forget_beats(cluster)
        pid = _leader(pid_file(Path(settings.DATA_DIR), cluster))
        if pid is None:
            logger.warning("cluster %s: no beats, and it is not running here", cluster)
            return
        logger.warning(
            "cluster %s: its last %s beats are missing; restarting", cluster, MISSED_BEATS
        )
        try:
            os.kill(pid, RESTART_SIGNAL)
        except ProcessLookupError:
            logger.warning("cluster %s: its leader is gone already", cluster)


def _leader(path: Path) -> int | None:
    try:
        text = path.read_text().strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None


def _beats(cluster: str) -> list[OrmQ]:
    return [row for row in OrmQ.objects.filter(key=cluster)[:1000] if row.func() == _BEAT]


def _unacknowledged(cluster: str) -> int:
    return 0 if settings.REDIS_URL else len(_beats(cluster))


def _forget_beats(cluster: str) -> None:
    """Old beats tell nothing, and a fresh cluster should not begin with a pile of them."""
    if not settings.REDIS_URL:
        OrmQ.objects.filter(pk__in=[row.pk for row in _beats(cluster)]).delete()
