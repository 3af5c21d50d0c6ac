"""Clusters survive the sudden end of any of their processes, and leave nothing when stopped."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django_q.models import OrmQ
from django_q.tasks import async_task

from monitoring.models import Heartbeat, HostSnapshot, WatchLease
from tensorhive_site.run_cluster import leader_of
from tests.lab import Lab, LabHost
from tests.monitoring import watching
from tests.site.cluster_site import ClusterSite, running, stop, wait_until

INTERVAL = 1.0
SHORT = {
    # A frozen cluster is noticed after three of them.
    "HEARTBEAT_SECONDS": "3",
    "PROBE_INTERVAL_SECONDS": str(INTERVAL),
    "WATCH_LEASE_SECONDS": "4",
    "QUEUE_POLL_SECONDS": "0.1",
}


def busy_worker(site: ClusterSite, name: str) -> int:
    """The one that watches: the lease names it."""
    holder = wait_until(
        lambda: WatchLease.objects.exclude(holder="").values_list("holder", flat=True).first(),
        "a watch",
    )
    return int(holder.split(":")[1])


def idle_worker(site: ClusterSite, name: str) -> int:
    busy = busy_worker(site, name)
    return next(pid for pid in site.stat(name).workers if pid != busy)


VICTIMS: dict[str, Callable[[ClusterSite, str], int | None]] = {
    "main": lambda site, name: site.stat(name).pid,
    "sentinel": lambda site, name: site.stat(name).sentinel,
    "pusher": lambda site, name: site.stat(name).pusher,
    "monitor": lambda site, name: site.stat(name).monitor,
    "idle worker": idle_worker,
    "busy worker": busy_worker,
    "leader": lambda site, name: leader_of(site.data_dir, name),
}


@pytest.mark.lab
@pytest.mark.django_db(transaction=True)
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "kinds",
    [
        pytest.param(["idle worker", "sentinel", "leader"], id="some"),
        pytest.param(list(VICTIMS), id="all", marks=pytest.mark.long),
    ],
)
def test_a_killed_process_of_the_watch_comes_back_and_hosts_are_watched_once(
    kinds: list[str], lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = lab["gpu01"]
    watching.add(lab, seen)
    keys = str(lab.observing_key.parent)
    with running(tmp_path, monkeypatch, "watch", KEYS_DIR=keys, **SHORT) as site:
        site.wait_until_complete()
        wait_until_fresh_since(time.time())
        for kind in kinds:
            pid = VICTIMS[kind](site, "watch")
            assert pid is not None
            killed_at = time.time()
            seen.smi.forget_starts()
            os.kill(pid, signal.SIGKILL)
            wait_until_fresh_since(killed_at + 2)
            wait_for_mark(tmp_path / f"mark after {kind}", "watch")
            site.wait_until_complete()
            assert pid not in [one.pid for one in site.processes()], kind
            time.sleep(5)
            assert_watched_once(seen, time.time() - killed_at)


@pytest.mark.django_db(transaction=True)
@pytest.mark.timeout(600)
def test_stopping_waits_for_what_runs_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(tmp_path, monkeypatch, "watch", "actions", **SHORT) as site:
        site.wait_until_complete()
        held = tmp_path / "held"
        async_task("tests.site.marks.hold_and_mark", str(held), 5.0, cluster="actions")
        wait_until(held.exists, "the task's begin")
        stop(site)
        assert held.read_text().splitlines() == ["begin", "end"]


@pytest.mark.django_db(transaction=True)
@pytest.mark.timeout(600)
def test_with_redis_the_clusters_take_their_tasks_from_there(
    redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(tmp_path, monkeypatch, "slow", REDIS_URL=redis_url, **SHORT):
        # Asked for by the watchdog, through Redis; written when the task has ended.
        wait_until(Heartbeat.objects.filter(cluster="slow").exists, "a beat")
        assert not OrmQ.objects.exists()


@pytest.fixture
def redis_url(tmp_path: Path) -> Iterator[str]:
    """A server of the test's own, on a socket in its directory."""
    socket = tmp_path / "redis.sock"
    options = {"--port": "0", "--unixsocket": str(socket), "--save": "", "--dir": str(tmp_path)}
    command = ["redis-server", *itertools.chain.from_iterable(options.items())]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        wait_until(socket.exists, "Redis")
        yield f"unix://{socket}"
    finally:
        server.terminate()
        server.wait(30)


def wait_until_fresh_since(moment: float) -> None:
    wait_until(
        lambda: any(row.taken_at.timestamp() > moment for row in HostSnapshot.objects.all()),
        "a fresh probe",
    )


def wait_for_mark(path: Path, name: str) -> None:
    """Queue tasks until one runs: those a frozen cluster had fetched wait for their retry."""

    def ran() -> bool:
        async_task("tests.site.marks.mark", str(path), cluster=name)
        time.sleep(1)
        return path.exists()

    wait_until(ran, f"a task in {name}")


def assert_watched_once(seen: LabHost, seconds: float) -> None:
    """Two watches at once would ask twice as often."""
    asked = [line for line in seen.smi.starts() if "--query-gpu" in line]
    assert len(asked) <= seconds / INTERVAL * 1.3 + 2, (seconds, asked)
