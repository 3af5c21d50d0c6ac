"""The watch on real hosts: freshness, faults of one host, leases, hand-over, prompt stop."""

from __future__ import annotations

import datetime as dt
import itertools
import signal
import threading
import time
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone
from django_q.models import OrmQ

from monitoring.models import Gpu, Host, HostSample, HostSnapshot, WatchLease
from monitoring.services import host_keys, hosts
from monitoring.tasks import ring_watches
from monitoring.watch.leases import abandoned_shards
from monitoring.watch.loop import watch
from tests.lab import Lab
from tests.monitoring.watching import (
    add,
    state_of,
    use_keys_of,
    wait_until,
    watched,
    watching_process,
)

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


def test_a_watch_that_was_paused_writes_nothing_after_another_took_over(
    lab: Lab, settings: Any
) -> None:
    settings.WATCH_LEASE = dt.timedelta(seconds=3)
    host = add(lab, lab["gpu01"])
    quick = {"PROBE_INTERVAL_SECONDS": "1", "WATCH_LEASE_SECONDS": "3"}
    with watching_process(lab, **quick) as process:
        wait_until(lambda: HostSample.objects.filter(host=host).count() >= 2)
        paused_holder = WatchLease.objects.get().holder
        process.send_signal(signal.SIGSTOP)
        paused_at = timezone.now()
        wait_until(abandoned_shards)
        with watched():
            wait_until(lambda: HostSample.objects.filter(taken_at__gt=paused_at).count() >= 2)
            process.send_signal(signal.SIGCONT)
            assert process.communicate(timeout=30)[0].split() == ["lost"]
            before = HostSample.objects.count()
            wait_until(lambda: HostSample.objects.count() >= before + 2)
            assert WatchLease.objects.get().holder != paused_holder
    taken = list(HostSample.objects.values_list("taken_at", flat=True).order_by("pk"))
    assert taken == sorted(taken)  # no older value came after a newer one


def test_a_watch_that_was_killed_is_followed_as_soon_as_its_lease_ran_out(
    lab: Lab, settings: Any
) -> None:
    settings.WATCH_LEASE = dt.timedelta(seconds=3)
    host = add(lab, lab["gpu01"])
    quick = {"PROBE_INTERVAL_SECONDS": "1", "WATCH_LEASE_SECONDS": "3"}
    with watching_process(lab, **quick) as process:
        wait_until(lambda: HostSample.objects.filter(host=host).exists())
        process.kill()
    wait_until(abandoned_shards)
    ring_watches()
    assert OrmQ.objects.get().func() == "monitoring.tasks.watch"
    count = HostSample.objects.count()
    with watched():
        wait_until(lambda: HostSample.objects.count() >= count + 2)


def test_across_hand_overs_and_rivals_a_host_is_never_probed_twice(lab: Lab) -> None:
    host, smi = add(lab, lab["gpu01"]), lab["gpu01"].smi
    smi.delay(0.3, only="query-gpu")  # long enough that two at once would meet
    ended: list[str] = []

    def rivals() -> None:
        try:
            for _ in range(4):
                ended.append(watch(0, segment=2.5))
                time.sleep(0.2)
        finally:
            connection.close()

    threads = [threading.Thread(target=rivals) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert ended.count("segment") >= 2
    assert set(ended) <= {"segment", "held"}
    queries = [line for line in smi.starts() if line.startswith("--query-gpu")]
    samples = HostSample.objects.filter(host=host).count()
    # One start a stored look; at the end of a segment a look may be cut off.
    assert samples <= len(queries) <= samples + ended.count("segment")
    taken = list(HostSample.objects.order_by("taken_at").values_list("taken_at", flat=True))
    gaps = [later - earlier for earlier, later in itertools.pairwise(taken)]
    assert min(gaps) > dt.timedelta(seconds=0.4)


def test_a_host_that_floods_is_told_apart_from_a_dead_one_and_the_other_stays_fresh(
    lab: Lab,
) -> None:
    flooding, other = add(lab, lab["gpu01"]), add(lab, lab["gpu02"])
    lab["gpu01"].smi.flood()
    with watched():
        wait_until(lambda: state_of(flooding) == "partial", seconds=60)
        before = HostSample.objects.filter(host=other).count()
        wait_until(lambda: HostSample.objects.filter(host=other).count() >= before + 3)
    other.refresh_from_db()
    assert other.state == Host.State.OK


def test_the_key_of_a_jump_host_is_recorded_as_the_jump_hosts(lab: Lab) -> None:
    jump, behind = lab["gpu02"], lab["gpu01"]
    host = add(
        lab,
        behind,
        jump_address=jump.address,
        jump_port=jump.port,
        jump_user=lab.observer,
    )
    with watched():
        wait_until(lambda: state_of(host) == "key_unknown")
        (key,) = host_keys.pending(host)
        assert (key.address, key.port) == (jump.address, jump.port)
        assert key.fingerprint == jump.fingerprint
        host_keys.accept(key, actor=None)
        wait_until(lambda: state_of(host) == "ok")


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
