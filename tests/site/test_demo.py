"""The demo: its hosts answer the very probe, and its data keeps every rule."""

from __future__ import annotations

import contextlib
import datetime as dt
import random
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from accounts.models import User
from monitoring import probe, ssh
from monitoring.models import Gpu, Host, HostRollup
from monitoring.snapshot import Snapshot
from reservations.models import Reservation, ReservationGpu
from tensorhive_site.demo import seeding
from tensorhive_site.demo.answers import framed
from tensorhive_site.demo.fleet import FLEET, DemoHost, activity, bookings, slot_of
from tensorhive_site.demo.server import LOGIN, Fleet

NOW = dt.datetime(2026, 12, 1, 4, 30, tzinfo=dt.UTC)
HOUR = dt.timedelta(hours=1)


def read(host: DemoHost, moment: dt.datetime) -> Snapshot:
    found = probe.read_snapshot(framed(host, "w0rd", moment).encode(), "w0rd")
    assert isinstance(found, Snapshot), found
    return found


@pytest.mark.parametrize("host", FLEET, ids=lambda host: host.name)
@pytest.mark.parametrize("hours", range(0, 48, 5))
def test_every_host_answers_in_the_frame_of_the_probe(host: DemoHost, hours: int) -> None:
    moment = NOW + hours * HOUR
    found = read(host, moment)
    cards = [gpu for gpu in found.gpus if gpu.parent_uuid is None]
    assert len(cards) == host.gpus - (host.broken_gpu is not None)
    assert len(found.gpus) - len(cards) == (2 if host.mig_card is not None else 0)
    assert [lost.index for lost in found.lost_gpus] == (
        [host.broken_gpu] if host.broken_gpu is not None else []
    )
    working = [index for index in range(host.gpus) if activity(host, index, moment).login]
    assert len(found.processes) == len([index for index in working if index != host.broken_gpu])
    for process in found.processes:
        assert process.login
        assert process.uid
        assert process.command
        assert process.start_ticks
    assert found.cpu is not None
    assert found.memory_used_mib is not None


def test_an_intruder_works_on_what_alice_holds() -> None:
    host = FLEET[1]
    held = [one for one in bookings(host, slot_of(NOW)) if one.gpus == (2, 3)]
    assert [one.owner for one in held] == ["alice"]
    assert [activity(host, index, NOW).login for index in (2, 3)] == ["alice", "bob"]


@pytest.mark.django_db
def test_the_data_is_made_once_and_keeps_the_rules(tmp_path: Path) -> None:
    key = ssh.generate_key(tmp_path / "demo" / "host_key", "demo")
    fields: dict[str, Any] = {"password": "tensorhive-demo", "host_key": key, "first_port": 22200}
    assert seeding.seed(now=NOW, **fields)
    counts = [
        model.objects.count()
        for model in (User, Host, Gpu, Reservation, ReservationGpu, HostRollup)
    ]
    assert min(counts) > 0
    assert not seeding.seed(now=NOW, **fields)
    assert Host.objects.count() == len(FLEET)
    running = Reservation.objects.active_at(NOW)
    assert running.filter(owner__username="alice").exists()
    assert Reservation.objects.filter(starts_at__gt=NOW).exists()
    hours = HostRollup.objects.filter(seconds=3600, host__name="hive01")
    assert hours.count() == pytest.approx(28 * 24, abs=2)


def first_of_free_ports(count: int) -> int:
    """Below those that the kernel gives to clients, which come and go meanwhile."""
    for first in random.sample(range(20_000, 32_000 - count), 100):
        with contextlib.ExitStack() as stack, contextlib.suppress(OSError):
            for port in range(first, first + count):
                stack.enter_context(socket.create_server(("127.0.0.1", port)))
            return first
    raise AssertionError("no free ports")


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[tuple[Fleet, Path, str]]:
    ours = tmp_path / "keys" / "observing"
    line = ssh.generate_key(ours, "observing")
    host_key = ssh.generate_key(tmp_path / "demo" / "host_key", "demo")
    running = Fleet(
        host_key=tmp_path / "demo" / "host_key",
        let_in=line,
        first_port=first_of_free_ports(len(FLEET)),
    )
    try:
        yield running, ours, " ".join(host_key.split()[:2])
    finally:
        running.close()


def test_a_host_is_probed_over_real_ssh_and_runs_nothing_else(
    fleet: tuple[Fleet, Path, str], tmp_path: Path
) -> None:
    running, key, pin = fleet
    port = running.hosts[0].server.getsockname()[1]
    target = ssh.Target(ssh.Address("127.0.0.1", port, LOGIN), (pin,), key)
    shell = ssh.Shell(target, preamble=probe.function_text())
    for nonce in ("first", "second"):
        answer = shell.ask(
            probe.request_line(nonce), end_marker=probe.end_marker(nonce), deadline=20
        )
        assert answer.ok, answer
        assert isinstance(probe.read_snapshot(answer.stdout, nonce), Snapshot)
    shell.close()
    canary = tmp_path / "canary"
    ssh.run(target, f"touch {canary}", deadline=20)
    assert not canary.exists()
    stranger = ssh.run(
        ssh.Target(ssh.Address("127.0.0.1", port, "root"), (pin,), key), "true", deadline=20
    )
    assert stranger.status is ssh.Status.AUTH
