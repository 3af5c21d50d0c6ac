"""Looks from outside whether each cluster still runs tasks, and has a frozen one restarted.

A killed idle worker freezes a django-q2 cluster for good while it looks alive, and it then ignores
SIGTERM too; only tasks that end prove life (see monitoring.services.heartbeats).
"""

from __future__ import annotations

import datetime as dt
import logging
import os
from pathlib import Path

from django.conf import settings

from monitoring.services import heartbeats
from tensorhive_site.run_cluster import RESTART_SIGNAL, leader_of

logger = logging.getLogger(__name__)
_TIME_TO_START = dt.timedelta(seconds=30)


class Watchdog:
    """Keeps when each cluster was last given a new chance; one on each machine."""

    def __init__(self, machine: str, now: dt.datetime) -> None:
        self.machine = machine
        self.fresh_since = dict.fromkeys(settings.CLUSTER_SIZES, now)

    def look(self, now: dt.datetime) -> list[str]:
        """Ask every cluster for a beat; restart and return those whose beats are missing."""
        frozen = [name for name in settings.CLUSTER_SIZES if self._is_frozen(name, now)]
        for name in frozen:
            self._restart(name, now)
        for name in settings.CLUSTER_SIZES:
            heartbeats.ask(name)
        return frozen

    def _is_frozen(self, cluster: str, now: dt.datetime) -> bool:
        patience = heartbeats.patience(cluster)
        last = heartbeats.last(cluster, self.machine)
        if last is None or last < self.fresh_since[cluster]:
            # It may still be starting.
            return now - self.fresh_since[cluster] > max(patience, _TIME_TO_START)
        return now - last > patience

    def _restart(self, cluster: str, now: dt.datetime) -> None:
        self.fresh_since[cluster] = now
        pid = leader_of(Path(settings.DATA_DIR), cluster)
        if pid is None:
            logger.warning("cluster %s: no beats, and it does not run on this machine", cluster)
            return
        logger.warning("cluster %s: its last beats are missing; restarting it", cluster)
        try:
            os.kill(pid, RESTART_SIGNAL)
        except ProcessLookupError:
            logger.warning("cluster %s: its leader is gone already", cluster)
