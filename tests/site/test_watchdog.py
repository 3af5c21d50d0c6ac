"""When a cluster counts as frozen, whom the watchdog signals then, and that beats are few."""

from __future__ import annotations

import datetime as dt
import fcntl
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as django_settings
from django_q.models import OrmQ

from monitoring import tasks
from monitoring.models import Heartbeat
from monitoring.services import heartbeats
from tensorhive_site import run_cluster, watchdog
from tensorhive_site.watchdog import Watchdog

pytestmark = pytest.mark.django_db
START = dt.datetime(2026, 5, 4, 12, tzinfo=dt.UTC)
SECOND = dt.timedelta(seconds=1)
HERE = socket.gethostname()


@pytest.fixture
def signals(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """What was sent to whom."""
    sent: list[tuple[int, int]] = []
    monkeypatch.setattr(watchdog.os, "kill", lambda *told: sent.append(told))
    return sent


@pytest.fixture
def leader(data_dir: Path) -> Iterator[None]:
    """The file of a "slow" cluster whose leader, number 4711, lives: the lock is held."""
    path = data_dir / "run" / "slow.pid"
    path.parent.mkdir()
    with path.open("w") as file:
        file.write("4711\n")
        file.flush()
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def beat(cluster: str, at: dt.datetime, machine: str = HERE) -> None:
    Heartbeat.objects.update_or_create(
        cluster=cluster,
        machine=machine,
        defaults={"process_id": 7, "version": "1", "beat_at": at},
    )


def others_beat(at: dt.datetime) -> None:
    for name in django_settings.CLUSTER_SIZES.keys() - {"slow"}:
        beat(name, at)


@pytest.mark.usefixtures("leader")
def test_a_cluster_gets_its_time_to_start_and_then_again(signals: list[Any]) -> None:
    dog = Watchdog(HERE, START)
    patience = heartbeats.patience("slow")
    for now, frozen in (
        (START + patience, []),
        (START + patience + SECOND, ["slow"]),
        # Restarted just now: the same missing beats are no reason to do it again.
        (START + patience + 2 * SECOND, []),
        (START + 2 * patience + SECOND, []),
        (START + 2 * patience + 2 * SECOND, ["slow"]),
    ):
        others_beat(now)
        assert dog.look(now) == frozen, now - START
    assert signals == [(4711, run_cluster.RESTART_SIGNAL)] * 2


@pytest.mark.parametrize(
    ("age", "machine", "is_frozen"),
    [
        pytest.param(dt.timedelta(0), HERE, False, id="fresh"),
        pytest.param(-10 * SECOND, HERE, False, id="clock-was-set-back"),
        pytest.param(dt.timedelta(hours=1), HERE, True, id="old"),
        pytest.param(dt.timedelta(0), "another-machine", True, id="only-another-machine-beats"),
    ],
)
@pytest.mark.usefixtures("leader")
def test_only_beats_of_this_machine_prove_its_clusters_alive(
    signals: list[Any], age: dt.timedelta, machine: str, is_frozen: bool
) -> None:
    dog = Watchdog(HERE, START)
    now = START + dt.timedelta(hours=2)
    others_beat(now)
    beat("slow", now - age, machine)
    assert dog.look(now) == (["slow"] if is_frozen else [])
    assert bool(signals) == is_frozen


def test_a_leader_that_is_gone_is_not_signalled_even_if_its_number_is_left(
    signals: list[Any], data_dir: Path
) -> None:
    (data_dir / "run").mkdir()
    # Nobody holds the lock: the number may belong to anybody by now.
    (data_dir / "run" / "slow.pid").write_text(f"{os.getpid()}\n")
    dog = Watchdog(HERE, START)
    now = START + dt.timedelta(hours=1)
    assert sorted(dog.look(now)) == sorted(django_settings.CLUSTER_SIZES)
    assert signals == []


@pytest.mark.usefixtures("data_dir", "signals")
def test_beats_do_not_pile_up_where_nobody_takes_them() -> None:
    dog = Watchdog(HERE, START)
    for look in range(200):
        dog.look(START + look * dt.timedelta(minutes=1))
    waiting = {name: OrmQ.objects.filter(key=name).count() for name in ("watch", "actions", "slow")}
    assert max(waiting.values()) <= 10
    assert min(waiting.values()) >= 1


def test_a_beat_for_another_machine_is_passed_on_but_not_for_ever() -> None:
    tasks.beat("slow", HERE)
    assert not OrmQ.objects.exists()
    tasks.beat("slow", "another-machine")
    for _ in range(100):
        if not (row := OrmQ.objects.first()):
            break
        arguments = row.task["args"]
        row.delete()
        tasks.beat(*arguments)
    assert not OrmQ.objects.exists()


def test_a_task_that_ended_in_a_cluster_is_a_beat_and_elsewhere_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("Q_CLUSTER_NAME", raising=False)
    heartbeats.task_ended(task={})
    assert heartbeats.last("slow") is None
    monkeypatch.setenv("Q_CLUSTER_NAME", "slow")
    monkeypatch.setattr(heartbeats, "close_old_connections", lambda: None)
    heartbeats.task_ended(task={})
    assert Heartbeat.objects.get(cluster="slow", machine=HERE).process_id == os.getpid()
    assert heartbeats.last("slow") is not None
    assert heartbeats.last("slow", "another-machine") is None
