"""Background tasks of monitoring: thin entries to services."""

from __future__ import annotations

from django.utils import timezone

from monitoring import requests
from monitoring.bell import ring
from monitoring.services import heartbeats, rolling
from monitoring.watch import watch as watch_shard
from monitoring.watch.leases import abandoned_shards


def watch(shard: int) -> None:
    """Watch one shard of the hosts for a segment; returns at once where somebody else does."""
    watch_shard(shard)


def ring_watches() -> None:
    """Ring for every shard that nobody watches: a broken chain is mended within a minute."""
    for shard in abandoned_shards():
        ring("monitoring.tasks.watch", shard, cluster="watch")


def beat(name: str, machine: str, handovers: int = 0) -> None:
    """Show that the cluster runs tasks (its name is not passed as "cluster": django-q takes it)."""
    heartbeats.beat(name, machine, handovers)


def answer_request(pk: int) -> None:
    """Answer what a person asked of a host."""
    requests.answer(pk)


def sweep_requests() -> None:
    requests.sweep(timezone.now())


def roll_up_samples() -> None:
    rolling.roll_up(timezone.now())


def prune_samples() -> None:
    rolling.prune(timezone.now())


SCHEDULES = {
    "monitoring-ring-watches": {
        "func": "monitoring.tasks.ring_watches",
        "schedule_type": "I",
        "minutes": 1,
        "cluster": "actions",
    },
    "monitoring-sweep-requests": {
        "func": "monitoring.tasks.sweep_requests",
        "schedule_type": "I",
        "minutes": 1,
        "cluster": "slow",
    },
    "monitoring-roll-up-samples": {
        "func": "monitoring.tasks.roll_up_samples",
        "schedule_type": "I",
        "minutes": 1,
        "cluster": "slow",
    },
    "monitoring-prune-samples": {
        "func": "monitoring.tasks.prune_samples",
        "schedule_type": "I",
        "minutes": 10,
        "cluster": "slow",
    },
}
