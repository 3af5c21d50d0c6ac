"""What must hold besides Django's own checks, each in a sentence that says what to do."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register
from django.db import connections
from django.utils import timezone

from monitoring import ssh

_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_NOT_SHARED = ("locmem.LocMemCache", "dummy.DummyCache")


@register(Tags.security)
def keys_are_private(app_configs: Any, **options: Any) -> list[CheckMessage]:
    """Workers do not start with keys that others can read. `manage.py init` makes missing ones."""
    if settings.ROLE == "web":
        return []
    paths = [path for path in (settings.OBSERVING_KEY, settings.ACTING_KEY) if path.exists()]
    problems = [ssh.check_key_file(path) for path in paths]
    return [Error(problem, id="tensorhive.E001") for problem in problems if problem]


@register()
def tasks_run_once(app_configs: Any, **options: Any) -> list[CheckMessage]:
    """A task that merely waits in a worker's queue must not be fetched again meanwhile."""
    return [
        Error(
            f"Cluster {name}: retry must be at least {size.safe_retry} s.",
            hint="Tasks would run twice; leave it to tensorhive_site.clusters.",
            id="tensorhive.E002",
        )
        for name, size in settings.CLUSTER_SIZES.items()
        if settings.Q_CLUSTER["ALT_CLUSTERS"][name]["retry"] < size.safe_retry
    ]


@register()
def mail_has_a_limit(app_configs: Any, **options: Any) -> list[CheckMessage]:
    if settings.EMAIL_TIMEOUT:
        return []
    problem = "EMAIL_TIMEOUT is not set: a silent mail server would hold a worker for ever."
    return [Error(problem, id="tensorhive.E003")]


@register(Tags.security, deploy=True)
def throttles_count_together(app_configs: Any, **options: Any) -> list[CheckMessage]:
    backend = settings.CACHES["default"]["BACKEND"]
    if not backend.endswith(_NOT_SHARED):
        return []
    problem = "The cache is not shared: every web process would count failed logins alone."
    return [Warning(problem, hint="Set REDIS_URL, or use files.", id="tensorhive.W001")]


@register(Tags.security, deploy=True)
def passwords_are_not_sent_in_the_clear(app_configs: Any, **options: Any) -> list[CheckMessage]:
    if settings.IS_HTTPS or urlsplit(settings.PUBLIC_URL).hostname in _LOOPBACK:
        return []
    problem = f"People reach {settings.PUBLIC_URL} without TLS: passwords travel in the clear."
    return [Warning(problem, hint="Set PUBLIC_URL=https://…", id="tensorhive.W002")]


@register(Tags.database)
def sqlite_has_one_machine(
    app_configs: Any, databases: Sequence[str] | None = None, **options: Any
) -> list[CheckMessage]:
    """SQLite on a shared volume loses data; clusters of a second machine do not start."""
    from monitoring.models import Heartbeat
    from monitoring.services import heartbeats

    if "default" not in (databases or ()) or connections["default"].vendor != "sqlite":
        return []
    if Heartbeat._meta.db_table not in connections["default"].introspection.table_names():
        return []
    now = timezone.now()
    here = socket.gethostname()
    others = Heartbeat.objects.filter(cluster__in=settings.CLUSTER_SIZES).exclude(machine=here)
    alive = [one for one in others if now - one.beat_at <= heartbeats.patience(one.cluster)]
    return [
        Error(
            f"Clusters on {machine} use this SQLite database now.",
            hint="Several machines need PostgreSQL: set DATABASE_URL.",
            id="tensorhive.E004",
        )
        for machine in sorted({one.machine for one in alive})
    ]
