"""`/healthz`: whether database, clusters and probes are fresh, and which is not."""

from __future__ import annotations

import datetime as dt
from typing import Any

from django.conf import settings
from django.db import DatabaseError, connection
from django.http import HttpRequest, JsonResponse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from monitoring.models import Host, WatchLease
from monitoring.services import heartbeats


@never_cache
@require_safe
def healthz(request: HttpRequest) -> JsonResponse:
    """200 while everything is fresh, else 503; public, so it names no host."""
    parts = report(timezone.now())
    ok = all(part["ok"] for part in parts.values())
    return JsonResponse({"ok": ok, **parts}, status=200 if ok else 503)


def report(now: dt.datetime) -> dict[str, dict[str, Any]]:
    """Part -> {ok, age_seconds, reason}."""
    try:
        connection.ensure_connection()
        clusters = {f"cluster_{name}": _cluster(name, now) for name in settings.CLUSTER_SIZES}
        return {"database": _part(True), **clusters, "probes": _probes(now)}
    except DatabaseError:
        return {"database": _part(False, reason="The database does not answer.")}


def _cluster(name: str, now: dt.datetime) -> dict[str, Any]:
    age = heartbeats.age(name, now)
    if age is None:
        return _part(False, reason="It has not run any task yet.")
    limit = heartbeats.MISSED_BEATS * settings.HEARTBEAT_INTERVAL
    if age <= limit:
        return _part(True, age)
    return _part(False, age, f"Its last {heartbeats.MISSED_BEATS} heartbeats are missing.")


def _probes(now: dt.datetime) -> dict[str, Any]:
    """The watch of every shard beats; how single hosts are is not a matter of health."""
    if not Host.objects.watched().exists():
        return _part(True, reason="There are no hosts to watch.")
    beats = dict(WatchLease.objects.values_list("shard", "beat_at"))
    ages = [
        None if (beat := beats.get(shard)) is None else now - beat
        for shard in range(settings.WATCH_SHARDS)
    ]
    if any(age is None for age in ages):
        return _part(False, reason="The hosts are not watched yet.")
    oldest = max(age for age in ages if age is not None)
    if oldest <= 2 * settings.WATCH_LEASE:
        return _part(True, oldest)
    return _part(False, oldest, "Nobody watches the hosts.")


def _part(ok: bool, age: dt.timedelta | None = None, reason: str = "") -> dict[str, Any]:
    seconds = None if age is None else round(age.total_seconds(), 1)
    return {"ok": ok, "age_seconds": seconds, "reason": reason}
