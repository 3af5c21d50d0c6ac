"""The watchdog of the clusters on this machine, run by the process manager beside them."""

from __future__ import annotations

import logging
import signal
import socket
import threading
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand
from django.db import DatabaseError, close_old_connections
from django.utils import timezone

from monitoring.tasks import ring_watches
from tensorhive_site import processes
from tensorhive_site.watchdog import Watchdog

logger = logging.getLogger(__name__)


class Command(BaseCommand):
    help = "Watch the clusters' heartbeats and have a frozen cluster restarted."

    def handle(self, *args: Any, **options: Any) -> None:
        processes.end_with_parent()
        ended = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: ended.set())
        watchdog = Watchdog(socket.gethostname(), timezone.now())
        while not ended.is_set():
            try:
                # django-q first looks at its schedules after half a minute; a watch that was
                # killed, or not started yet, should not wait so long.
                ring_watches()
                watchdog.look(timezone.now())
            except DatabaseError:
                logger.exception("the database does not answer; looking again later")
            close_old_connections()
            ended.wait(settings.HEARTBEAT_INTERVAL.total_seconds())
