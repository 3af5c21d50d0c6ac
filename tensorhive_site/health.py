"""`/healthz`: whether database, clusters and probes are fresh, and which is not."""

from __future__ import annotations

import datetime as dt
from typing import Any

from django.conf import settings
from django.db import DatabaseError, connection
from django.db.models import F
from django.db.models.functions import Coalesce
from django.http import HttpRequest, JsonResponse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from monitoring.models import Host, WatchLease
from monitoring.services import heartbeats

# The longest pause between two looks at a host that does not answer, and some.
_LONGEST_BACK_OFF = dt.timedelta(seconds=90)


@never_cache
@require_safe
def healthz(request: HttpRequest) -> JsonResponse:
    """200 while everything is fresh, else 503; public, so it names no host."""
    parts = report(timezone.now())
    ok = all(part["ok"] for part in parts.values())
    return JsonResponse({"ok": ok, **parts}, status=200 if ok else 503)


def report(now: dt.datetime) -> dict[str, dict[str, Any]]:
    """Part -> {ok, age_seconds, reason}; the age is null where nothing has an age."""
    try:
        connection.ensure_connection()
        clusters = {f"cluster_{name}": _cluster(name, now) for name in settings.CLUSTER_SIZES}
        return {"database": _part(True), **clusters, "probes": _probes(now)}
    except DatabaseError:
        return {"database": _part(False, reason="The database does not answer.")}


def _cluster(name: str, now: dt.datetime) -> dict[str, Any]:
    last = heartbeats.last(name)
    if last is None:
        return _part(False, reason="It has not run any task yet.")
    if now - last <= heartbeats.patience(name):
        return _part(True, now - last)
    return _part(False, now - last, "Its last heartbeats are missing.")


def _probes(now: dt.datetime) -> dict[str, Any]:
    """Every shard has a watch that beats, and every host was looked at, whatever it answered."""
    hosts = Host.objects.watched()
    if not hosts.exists():
        return _part(True, reason="There are no hosts to watch.")
    beats = dict(WatchLease.objects.values_list("shard", "beat_at"))
    shards = [beats.get(shard) for shard in range(settings.WATCH_SHARDS)]
    if None in shards:
        return _part(False, reason="The hosts are not watched yet.")
    beat = now - min(beat for beat in shards if beat)
    if beat > 2 * settings.WATCH_LEASE:
        return _part(False, beat, "Nobody watches the hosts.")
    looked_at = hosts.annotate(at=Coalesce(F("last_probe_at"), F("created_at")))
    ages = {host.pk: now - host.at for host in looked_at}
    late = sum(ages[host.pk] > _longest_pause(host) for host in looked_at)
    oldest = max(ages.values())
    if late:
        return _part(False, oldest, f"{late} of {len(ages)} hosts were not looked at for too long.")
    return _part(True, oldest)


def _longest_pause(host: Host) -> dt.timedelta:
    return max(3 * host.current_interval, _LONGEST_BACK_OFF) + settings.SSH_DEADLINE


def _part(ok: bool, age: dt.timedelta | None = None, reason: str = "") -> dict[str, Any]:
    seconds = None if age is None else round(age.total_seconds(), 1)
    return {"ok": ok, "age_seconds": seconds, "reason": reason}
