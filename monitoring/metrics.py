"""`/metrics` for Prometheus: what is known of hosts and GPUs now, in base units.

What is not known has no sample: a gap there, never a zero. Data older than three intervals is left
out as well; its age is told instead.
"""

from __future__ import annotations

import datetime as dt
import hmac
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

from monitoring.models import Gpu, Host, HostSnapshot

_MIB = 1 << 20
_GPU_LABELS = ("host", "gpu", "uuid", "model")
# Field of a stored GPU -> name, what it is, factor to the base unit.
_GPU_FIELDS = (
    ("utilization_percent", "utilization_ratio", "Share of time in which the GPU worked.", 0.01),
    (
        "memory_utilization_percent",
        "memory_activity_ratio",
        "Share of time in which its memory was read or written.",
        0.01,
    ),
    ("memory_used_mib", "memory_used_bytes", "Memory in use.", _MIB),
    ("memory_total_mib", "memory_total_bytes", "Memory of the GPU.", _MIB),
    ("temperature_celsius", "temperature_celsius", "Temperature of the GPU.", 1),
    ("power_watts", "power_watts", "Power draw.", 1),
    ("power_limit_watts", "power_limit_watts", "Power limit.", 1),
    ("fan_percent", "fan_ratio", "Speed of the fan.", 0.01),
)


@never_cache
@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """The metrics, for who sends METRICS_TOKEN as Bearer; 404 where there is no token."""
    expected = settings.METRICS_TOKEN
    if not expected:
        return HttpResponse("Set METRICS_TOKEN to use this address.\n", status=404)
    given = request.headers.get("Authorization", "").removeprefix("Bearer ")
    if not hmac.compare_digest(given.encode(), expected.encode()):
        answer = HttpResponse("Send METRICS_TOKEN as Bearer.\n", status=401)
        answer["WWW-Authenticate"] = 'Bearer realm="metrics"'
        return answer
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Fleet(timezone.now()))
    return HttpResponse(generate_latest(registry), content_type=CONTENT_TYPE_LATEST)


class _Fleet(Collector):
    """All hosts and GPUs at one moment. Three queries."""

    def __init__(self, now: dt.datetime) -> None:
        self.now = now

    def collect(self) -> Iterable[Metric]:
        hosts = list(Host.objects.filter(is_enabled=True))
        snapshots = {
            row.host_id: row
            for row in HostSnapshot.objects.filter(host__in=hosts).defer("previous_data")
        }
        fresh = {
            host: snapshots[host.pk]
            for host in hosts
            if host.pk in snapshots and not host.is_stale(self.now)
        }
        yield from self._hosts(hosts, fresh)
        yield from self._gpus(fresh)

    def _hosts(
        self, hosts: list[Host], fresh: Mapping[Host, HostSnapshot]
    ) -> Iterator[GaugeMetricFamily]:
        up = _gauge("host_up", "Whether the host answers with fresh data.", ("host",))
        age = _gauge("host_data_age_seconds", "Age of the last good answer.", ("host",))
        state = _gauge("host_state", "1 for the state the host is in.", ("host", "state"))
        for host in hosts:
            up.add_metric([host.name], float(host in fresh))
            state.add_metric([host.name, host.state], 1)
            if (known := host.age(self.now)) is not None:
                age.add_metric([host.name], known.total_seconds())
        yield from (up, age, state)
        for name, text, value in _HOST_VALUES:
            family = _gauge(f"host_{name}", text, ("host",))
            for host, snapshot in fresh.items():
                if (number := value(snapshot)) is not None:
                    family.add_metric([host.name], number)
            yield family

    def _gpus(self, fresh: Mapping[Host, HostSnapshot]) -> Iterator[GaugeMetricFamily]:
        rows = [
            (gpu, [host.name, str(gpu["index"]), gpu["uuid"], gpu["name"] or ""])
            for host, snapshot in fresh.items()
            for gpu in snapshot.data.get("gpus", ())
            if gpu.get("uuid")
        ]
        for field, name, text, factor in _GPU_FIELDS:
            family = _gauge(f"gpu_{name}", text, _GPU_LABELS)
            for gpu, labels in rows:
                if gpu.get(field) is not None:
                    family.add_metric(labels, gpu[field] * factor)
            yield family
        yield self._processes(fresh, {labels[2]: labels for _, labels in rows})
        lost = _gauge(
            "gpu_lost", "1 for a GPU that its host does not show any more.", ("host", "uuid")
        )
        for gpu in Gpu.objects.present().filter(state=Gpu.State.LOST).select_related("host"):
            lost.add_metric([gpu.host.name, gpu.uuid], 1)
        yield lost

    @staticmethod
    def _processes(
        fresh: Mapping[Host, HostSnapshot], labels: Mapping[str, list[str]]
    ) -> GaugeMetricFamily:
        family = _gauge("gpu_processes", "Processes on the GPU.", _GPU_LABELS)
        counts = dict.fromkeys(labels, 0)
        for snapshot in fresh.values():
            for process in snapshot.data.get("processes", ()):
                if process["gpu_uuid"] in counts:
                    counts[process["gpu_uuid"]] += 1
        for uuid, count in counts.items():
            family.add_metric(labels[uuid], count)
        return family


def _load(snapshot: HostSnapshot) -> float | None:
    load = snapshot.data.get("load") or [None]
    return load[0]


def _scaled(field: str, factor: float) -> Any:
    def value(snapshot: HostSnapshot) -> float | None:
        number = snapshot.data.get(field)
        return None if number is None else number * factor

    return value


_HOST_VALUES = (
    ("probe_duration_seconds", "How long the last probe took.", lambda row: row.probe_seconds),
    ("cpu_ratio", "Share of time in which the processors worked.", _scaled("cpu_percent", 0.01)),
    ("memory_used_bytes", "Memory in use.", _scaled("memory_used_mib", _MIB)),
    ("memory_total_bytes", "Memory of the host.", _scaled("memory_total_mib", _MIB)),
    ("load1", "Load average of one minute.", _load),
    ("uptime_seconds", "Time since the host started.", _scaled("uptime_seconds", 1)),
    (
        "clock_skew_seconds",
        "The host's clock less the manager's.",
        _scaled("clock_skew_seconds", 1),
    ),
)


def _gauge(name: str, text: str, labels: tuple[str, ...]) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"tensorhive_{name}", text, labels=labels)
