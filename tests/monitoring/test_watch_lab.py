"""The watch on real hosts: freshness, faults of one host, leases, hand-over, prompt stop."""

from __future__ import annotations

import datetime as dt
import time
from typing import Any

import pytest
from django.utils import timezone
from django_q.models import OrmQ

from monitoring.models import Gpu, Host, HostSample, HostSnapshot, WatchLease
from monitoring.services import host_keys, hosts
from monitoring.watch.leases import Lease, LeaseLost
from monitoring.watch.loop import watch
from tests.lab import Lab
from tests.monitoring.watching import add, state_of, use_keys_of, wait_until, watched

pytestmark = [pytest.mark.lab, pytest.mark.django_db(transaction=True)]


@pytest.fixture(autouse=True)
def quick(lab: Lab, settings: Any) -> None:
    use_keys_of(lab, settings)
    settings.PROBE_INTERVAL = dt.timedelta(seconds=1)
    settings.SSH_DEADLINE = dt.timedelta(seconds=3)
    settings.AFTER_PROBE = []


def test_hosts_are_seen_with_gpus_processes_and_history(lab: Lab) -> None:
    host = add(lab, lab["gpu01"])
    process = lab["gpu01"].start_process(user="bob", gpu=2, command="python train.py")
    with watched():
        wait_until(lambda: HostSample.objects.filter(host=host).count() >= 3)
    snapshot = HostSnapshot.objects.get(host=host)
    assert [row["pid"] for row in snapshot.data["processes"]] == [process.pid]
    assert snapshot.data["processes"][0]["owner_confidence"] == "certain"
    assert snapshot.previous_data is not None
    assert snapshot.previous_data["processes"][0]["pid"] == process.pid
    assert snapshot.data["cpu_percent"] is not None
    assert Gpu.objects.filter(host=host, state="ok").count() == 4
    host.refresh_from_db()
    assert host.state == Host.State.OK
    assert not host.is_stale(snapshot.taken_at)


def test_a_stalled_host_turns_unreachable_and_recovers_while_the_other_stays_fresh(
    lab: Lab,
) -> None:
    first, second = add(lab, lab["gpu01"]), add(lab, lab["gpu02"])
    with watched():
        wait_until(lambda: state_of(first) == state_of(second) == "ok")
        lab["gpu01"].stall()
        wait_until(lambda: state_of(first) == "unreachable")
        first.refresh_from_db()
        assert first.reason
        assert first.state_since is not None
        second.refresh_from_db()
        assert not second.is_stale(timezone.now())
        lab["gpu01"].resume()
        hosts.request_probe(first)
        wait_until(lambda: state_of(first) == "ok")


def test_one_failed_look_is_not_yet_unreachable(lab: Lab) -> None:
    host = add(lab, lab["gpu01"])
    with watched():
        wait_until(lambda: state_of(host) == "ok")
        lab["gpu01"].end_sessions()
        wait_until(lambda: HostSample.objects.filter(host=host).count() >= 4)
        assert state_of(host) == "ok"


def test_a_changed_key_stops_every_login_until_it_is_accepted(lab: Lab) -> None:
    host, machine = add(lab, lab["gpu01"]), lab["gpu01"]
    with watched():
        wait_until(lambda: state_of(host) == "ok")
        machine.change_key()
        machine.forget_log()
        machine.end_sessions()
        wait_until(lambda: state_of(host) == "key_changed")
        assert machine.authentication_attempts() == []
        (key,) = host_keys.pending(host)
        assert key.fingerprint == machine.fingerprint
        host_keys.accept(key, actor=None)
        wait_until(lambda: state_of(host) == "ok")


def test_a_host_without_an_accepted_key_is_never_logged_in_to(lab: Lab) -> None:
    host, machine = add(lab, lab["gpu01"], accept=False), lab["gpu01"]
    machine.forget_log()
    with watched():
        wait_until(lambda: state_of(host) == "key_unknown")
    assert machine.authentication_attempts() == []
    assert host_keys.pending(host)


def test_a_slow_host_does_not_delay_the_other(lab: Lab) -> None:
    slow, other = add(lab, lab["gpu01"]), add(lab, lab["gpu02"])
    lab["gpu01"].smi.delay(2.5)
    with watched():
        wait_until(lambda: state_of(other) == "ok")
        before = HostSample.objects.filter(host=other).count()
        time.sleep(5)
        seen = HostSample.objects.filter(host=other).count() - before
    assert seen >= 3
    assert HostSample.objects.filter(host=slow).count() < seen


def test_disabled_hosts_are_left_alone(lab: Lab) -> None:
    host = add(lab, lab["gpu01"])
    with watched():
        wait_until(lambda: state_of(host) == "ok")
        hosts.change(host, actor=None, is_enabled=False)
        time.sleep(2)
        lab["gpu01"].smi.forget_starts()
        time.sleep(3)
        assert lab["gpu01"].smi.starts() == []
        assert state_of(host) == "disabled"


def test_two_watches_never_watch_one_shard(lab: Lab) -> None:
    add(lab, lab["gpu01"])
    with watched():
        assert watch(0, segment=1) == "held"


def test_a_watch_that_lost_its_lease_writes_nothing_more(lab: Lab) -> None:
    host = add(lab, lab["gpu01"])
    with watched() as thread:
        wait_until(lambda: state_of(host) == "ok")
        WatchLease.objects.update(
            holder="another", expires_at=timezone.now() + dt.timedelta(minutes=5)
        )
        thread.join(10)
        assert not thread.is_alive()
        before = HostSample.objects.count()
        time.sleep(1.5)
        assert HostSample.objects.count() == before
        assert WatchLease.objects.get().holder == "another"


def test_a_segment_ends_with_its_successor_rung_for(lab: Lab) -> None:
    add(lab, lab["gpu01"])
    assert watch(0, segment=1.5) == "segment"
    assert OrmQ.objects.get().func() == "monitoring.tasks.watch"
    assert Lease(0).take()


def test_a_lease_goes_to_one_of_two_and_is_fenced(db: None) -> None:
    first, second = Lease(0), Lease(0)
    assert first.take()
    assert not second.take()
    WatchLease.objects.update(expires_at=timezone.now() - dt.timedelta(seconds=1))
    assert second.take()
    with pytest.raises(LeaseLost):
        first.renew()
    first.give_back()
    assert not second.renew()


def test_a_hanging_nvidia_smi_leaves_the_rest_of_the_host_watched(lab: Lab, settings: Any) -> None:
    settings.SSH_DEADLINE = dt.timedelta(seconds=20)
    host = add(lab, lab["gpu01"])
    lab["gpu01"].smi.hang()
    with watched():
        wait_until(lambda: state_of(host) == "partial", seconds=40)
        count = HostSample.objects.filter(host=host).count()
        wait_until(lambda: HostSample.objects.filter(host=host).count() >= count + 3)
    host.refresh_from_db()
    assert "hang" in host.reason or "left out" in host.reason
