"""The watch without hosts: leases, ticks, what is due, hand-over, and what must not stop it."""

from __future__ import annotations

import datetime as dt
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from django.core.management import call_command
from django.db import OperationalError, connection
from django.utils import timezone
from django_q.models import OrmQ

from monitoring.models import Host, HostSample, HostSnapshot, WatchLease
from monitoring.ssh import Result
from monitoring.watch import loop
from monitoring.watch.leases import Lease, LeaseLost, abandoned_shards, request_stop
from monitoring.watch.loop import _Watch, watch
from monitoring.watch.roster import Roster
from tests import make
from tests.monitoring.looks import look, silence, snapshot
from tests.monitoring.shells import Shell, framed, stand_in
from tests.monitoring.watching import wait_until

pytestmark = pytest.mark.django_db
# Where another thread or connection takes part.
on_the_disk = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def shells(monkeypatch: pytest.MonkeyPatch, settings: Any) -> list[Shell]:
    settings.AFTER_PROBE = []
    settings.PROBE_INTERVAL = dt.timedelta(seconds=0.5)
    monkeypatch.setattr(loop, "TICK_SECONDS", 0.1)
    return stand_in(monkeypatch)


@pytest.fixture
def run() -> Iterator[_Watch]:
    """A watch that holds its lease; the test makes its ticks."""
    lease = Lease(0)
    assert lease.take()
    watching_now = _Watch(lease, ends_at=time.monotonic() + 60)
    yield watching_now
    watching_now.close()


def tick(run: _Watch, seconds: float = 0.2) -> bool:
    return run._tick(time.monotonic() + seconds)


def expire(lease: Lease) -> None:
    WatchLease.objects.filter(shard=lease.shard).update(
        expires_at=timezone.now() - dt.timedelta(seconds=1)
    )


# Leases


def test_a_lease_goes_to_one_of_two_and_is_fenced() -> None:
    first, second = Lease(0), Lease(0)
    assert first.take()
    assert not second.take()
    expire(first)
    assert second.take()
    with pytest.raises(LeaseLost):
        first.renew()
    first.give_back()
    assert not second.renew()


def test_a_lease_that_is_given_back_can_be_taken_at_once() -> None:
    for _ in range(3):
        lease = Lease(0)
        assert lease.take()
        lease.give_back()
    assert abandoned_shards() == [0]


def test_a_lease_that_ran_out_is_kept_where_nobody_took_it() -> None:
    lease = Lease(0)
    assert lease.take()
    expire(lease)
    assert not lease.renew()
    assert not Lease(0).take()


def test_shards_are_taken_one_by_one(settings: Any) -> None:
    settings.WATCH_SHARDS = 3
    assert abandoned_shards() == [0, 1, 2]
    assert Lease(1).take()
    assert abandoned_shards() == [0, 2]


def test_a_clock_that_is_set_back_does_not_keep_a_shard_unwatched() -> None:
    assert Lease(0).take()
    WatchLease.objects.update(expires_at=timezone.now() + dt.timedelta(hours=1))
    assert abandoned_shards() == [0]
    assert Lease(0).take()


def test_only_watches_on_this_machine_are_asked_to_stop() -> None:
    here, there = Lease(0), Lease(1)
    assert here.take()
    assert there.take()
    WatchLease.objects.filter(shard=1).update(machine="elsewhere")
    call_command("stop_watch")
    assert here.renew()
    assert not there.renew()


def test_a_stop_is_not_meant_for_the_next_holder() -> None:
    lease = Lease(0)
    assert lease.take()
    assert request_stop() == 1
    lease.give_back()
    successor = Lease(0)
    assert successor.take()
    assert not successor.renew()


# Whole watches


def test_a_segment_ends_with_its_successor_rung_for_and_all_closed(shells: list[Shell]) -> None:
    host = make.host()
    assert watch(0, segment=1.2) == "segment"
    assert OrmQ.objects.get().func() == "monitoring.tasks.watch"
    assert OrmQ.objects.get().task["args"] == (0,)
    assert HostSample.objects.filter(host=host).count() >= 2
    assert all(shell.closed for shell in shells)
    assert Lease(0).take()


def test_a_second_watch_leaves_at_once(shells: list[Shell]) -> None:
    make.host()
    assert Lease(0).take()
    assert watch(0, segment=5) == "held"
    assert shells == []


@on_the_disk
def test_a_stop_ends_a_watch_soon_and_without_successor() -> None:
    make.host()

    def ask() -> None:
        WatchLease.objects.update(stop_requested=True)
        connection.close()

    stopping = threading.Timer(0.5, ask)
    stopping.start()
    began = time.monotonic()
    assert watch(0, segment=60) == "stopped"
    assert time.monotonic() - began < 20
    assert not OrmQ.objects.exists()
    stopping.join()


def test_a_watch_that_lost_its_lease_ends_without_successor(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    host = make.host()

    def taken_by_another(*_args: object) -> None:
        WatchLease.objects.update(holder="another")

    monkeypatch.setattr(loop.hooks, "call_all", taken_by_another)
    assert watch(0, segment=60) == "lost"
    assert HostSample.objects.filter(host=host).count() == 1
    assert WatchLease.objects.get().holder == "another"
    assert not OrmQ.objects.exists()


def test_what_a_paused_watch_gathered_is_not_written_after_another_took_over(run: _Watch) -> None:
    host = make.host(state=Host.State.PENDING)
    expire(run.lease)
    assert Lease(0).take()
    with pytest.raises(LeaseLost):
        run._write([look(host, snapshot(), 0)])
    assert not HostSample.objects.exists()
    assert not HostSnapshot.objects.exists()
    assert Host.objects.get(pk=host.pk).state == Host.State.PENDING


@on_the_disk
def test_a_tick_that_cannot_be_stored_does_not_end_the_watch(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    host, store = make.host(), loop.store
    troubles = iter([OperationalError("database is locked")])

    def stubborn(found: Any) -> list[int]:
        for trouble in troubles:
            raise trouble
        return store(found)

    monkeypatch.setattr(loop, "store", stubborn)
    assert watch(0, segment=2.5) == "segment"
    assert "a tick could not be stored" in caplog.text
    assert HostSample.objects.filter(host=host).exists()


@on_the_disk
def test_a_database_that_stays_away_ends_the_watch_with_its_lease(
    monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.WATCH_LEASE = dt.timedelta(seconds=0.5)

    def away(_roster: Roster) -> None:
        raise OperationalError("the database is away")

    monkeypatch.setattr(Roster, "refresh", away)
    assert watch(0, segment=60) == "lost"


def test_hooks_hear_of_hosts_that_answered_and_their_trouble_stays_theirs(
    monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    host, silent = make.host(address="127.0.1.1"), make.host(address="127.0.1.2")
    heard: list[list[int]] = []

    def fails(host_ids: Any, now: dt.datetime) -> None:
        raise RuntimeError("ours")

    def listens(host_ids: Any, now: dt.datetime) -> None:
        heard.append(list(host_ids))

    monkeypatch.setattr(loop.hooks, "functions", lambda _name: [fails, listens])
    tick_of = {host.pk: snapshot()}
    lease = Lease(0)
    assert lease.take()
    run = _Watch(lease, ends_at=0)
    assert not run._write([look(host, tick_of[host.pk], 0), silence(silent, 0)])
    assert heard == [[host.pk]]
    run.close()


def test_bells_for_other_shards_do_not_pile_up(run: _Watch, settings: Any) -> None:
    settings.WATCH_SHARDS = 2
    settings.WATCH_LEASE = dt.timedelta(seconds=1.5)
    for _ in range(8):
        tick(run, 0.1)
    rung = [row.task["args"] for row in OrmQ.objects.all()]
    assert rung
    assert set(rung) == {(1,)}
    assert len(rung) <= 3


# Ticks


def test_a_look_that_fails_inside_costs_only_its_host(run: _Watch, shells: list[Shell]) -> None:
    broken, fine = make.host(address="127.0.1.1"), make.host(address="127.0.1.2")
    run.roster.refresh()

    def trouble() -> None:
        raise RuntimeError("ours")

    run.roster.hosts[broken.pk].look = trouble  # type: ignore[method-assign]
    for _ in range(2):
        tick(run)
    assert HostSample.objects.filter(host=fine).exists()
    assert not run.roster.hosts[broken.pk].is_busy
    assert run.roster.hosts[broken.pk].due_at > time.monotonic() + 30


def test_a_late_answer_holds_up_nobody_and_comes_later(run: _Watch, shells: list[Shell]) -> None:
    late, quick = make.host(address="127.0.1.1"), make.host(address="127.0.1.2")
    gate = threading.Event()
    run.roster.refresh()

    def slow(line: str, **_limits: Any) -> Result:
        gate.wait(30)
        return framed(line)

    shell = run.roster.hosts[late.pk].shell
    shell.ask = slow  # type: ignore[method-assign]
    for _ in range(8):
        tick(run)
    assert HostSample.objects.filter(host=quick).count() >= 2
    assert not HostSample.objects.filter(host=late).exists()
    assert run.roster.hosts[late.pk] not in run.roster.due()  # its look is not over
    gate.set()
    wait_until(lambda: (tick(run), HostSample.objects.filter(host=late).exists())[1])


def test_answers_of_a_host_that_was_dropped_meanwhile_are_not_stored(run: _Watch) -> None:
    host = make.host()
    run.roster.refresh()
    one = run.roster.hosts.pop(host.pk)
    answer = one.look()
    assert answer is not None
    run.arrived.put((one, answer))
    assert run._gather(time.monotonic() + 0.1) == []
