"""The hosts in the loop of a watch: which are due, when again, and what a look asks for."""

from __future__ import annotations

import datetime as dt
import queue
import threading
import time
from typing import Any

import pytest
from django.utils import timezone

from monitoring.models import Host, HostKey
from monitoring.services import hosts, watching
from monitoring.ssh import Result, Status
from monitoring.watch.roster import Roster
from monitoring.watch.watched import Watched
from tests import make
from tests.monitoring.looks import look, silence, snapshot
from tests.monitoring.shells import Shell, framed, hanging, stand_in

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def shells(monkeypatch: pytest.MonkeyPatch) -> list[Shell]:
    return stand_in(monkeypatch)


def refreshed(roster: Roster) -> set[int]:
    roster.refresh()
    return set(roster.hosts)


def test_the_roster_follows_the_rows(shells: list[Shell], settings: Any) -> None:
    roster, host, other = Roster(0), make.host(), make.host()
    assert refreshed(roster) == {host.pk, other.pk}
    hosts.change(host, actor=None, in_maintenance=True)
    hosts.change(other, actor=None, is_enabled=False)
    assert refreshed(roster) == set()
    assert [shell.closed for shell in shells] == [1, 1]
    hosts.change(host, actor=None, in_maintenance=False)
    assert refreshed(roster) == {host.pk}
    assert [one.host_id for one in roster.due()] == [host.pk]


@pytest.mark.parametrize(
    "change",
    [{"address": "127.0.9.9"}, {"port": 2222}, {"user": "another"}, {"jump_user": "hop"}],
    ids=str,
)
def test_a_host_that_moved_gets_a_new_connection_at_once(
    shells: list[Shell], change: dict[str, Any]
) -> None:
    roster, host = Roster(0), make.host(jump_address="127.0.9.1", jump_user="jump")
    roster.refresh()
    hosts.change(host, actor=None, **change)
    roster.refresh()
    old, new = shells
    assert (old.closed, new.closed) == (1, 0)
    assert [one.shell for one in roster.due()] == [new]


def test_a_key_that_is_accepted_is_used_at_once(shells: list[Shell]) -> None:
    roster, host = Roster(0), make.host(state="key_unknown", failures_in_a_row=7)
    roster.refresh()
    assert shells[0].target.pins == ()
    now = timezone.now()
    HostKey.objects.create(
        host=host,
        address=host.address,
        port=host.port,
        key_type="ssh-ed25519",
        public_key="AAAA",
        fingerprint="SHA256:x",
        seen_at=now,
        accepted_at=now,
    )
    roster.refresh()
    assert shells[1].target.pins == ("ssh-ed25519 AAAA",)
    assert len(roster.due()) == 1


def test_hosts_are_shared_out_among_the_shards(settings: Any) -> None:
    settings.WATCH_SHARDS = 3
    everyone = {make.host().pk for _ in range(30)}
    shares = [refreshed(Roster(shard)) for shard in range(3)]
    assert set().union(*shares) == everyone
    assert sum(map(len, shares)) == 30
    assert all(shares)


def test_many_new_hosts_are_spread_over_the_interval(settings: Any) -> None:
    settings.PROBE_INTERVAL = dt.timedelta(seconds=50)
    for _ in range(50):
        make.host()
    roster = Roster(0)
    roster.refresh()
    now = time.monotonic()
    waits = sorted(one.due_at - now for one in roster.hosts.values())
    assert waits[0] <= 0
    assert 40 < waits[-1] <= 50
    # In no stretch of a tenth of the interval more than a fifth of them.
    assert max(sum(start <= wait < start + 5 for wait in waits) for start in range(50)) <= 10


def test_a_successor_goes_on_in_the_rhythm_and_knowledge_of_the_watch_before(
    settings: Any,
) -> None:
    settings.PROBE_INTERVAL = dt.timedelta(seconds=50)
    now = timezone.now()
    host = make.host(last_probe_at=now - dt.timedelta(seconds=20), failures_in_a_row=3)
    until = now + dt.timedelta(minutes=8)
    left = {"times": 4, "until": until.isoformat()}
    make.snapshot(host, data={"gpus_left_alone": left})
    overdue = make.host(last_probe_at=now - dt.timedelta(seconds=90))
    make.snapshot(overdue, data={"gpus_left_alone": None})
    roster = Roster(0)
    roster.refresh()
    one = roster.hosts[host.pk]
    assert 20 < one.due_at - time.monotonic() <= 30
    assert (one.failures, one.stuck_times, one.gpus_left_alone_until) == (3, 4, until)
    assert [due.host_id for due in roster.due()] == [overdue.pk]


def test_silent_hosts_never_take_all_threads() -> None:
    for number in range(100):
        make.host(failures_in_a_row=0 if number % 10 else 2)
        make.host(failures_in_a_row=5)
    roster = Roster(0)
    roster.refresh()
    for one in roster.hosts.values():
        one.due_at = 0.0
    due = roster.due()
    assert [one.failures > 0 for one in due] == [False] * 90 + [True] * 32
    for one in due:
        one.is_busy = True
    assert roster.due() == []
    due[-1].is_busy = False
    assert len(roster.due()) == 1


def test_a_probe_that_is_asked_for_comes_whatever_the_back_off_says() -> None:
    roster, host = Roster(0), make.host()
    roster.refresh()
    one = roster.hosts[host.pk]
    one.due_at = time.monotonic() + 60
    one.gpus_left_alone_until = timezone.now() + dt.timedelta(minutes=9)
    hosts.request_probe(host)
    roster.refresh()
    assert roster.due() == [one]
    assert one.gpus_left_alone_until is None
    one.due_at = time.monotonic() + 60
    roster.refresh()
    assert roster.due() == []  # one wish, one look


def test_a_look_can_be_wished_for_in_the_future() -> None:
    roster, host = Roster(0), make.host()
    roster.refresh()
    one = roster.hosts[host.pk]
    one.due_at = time.monotonic() + 60
    watching.make_due([host.pk], timezone.now() + dt.timedelta(seconds=20))
    roster.refresh()
    assert 15 < one.due_at - time.monotonic() <= 20
    watching.make_due([], timezone.now())


def test_a_wish_during_a_look_is_not_met_by_that_look() -> None:
    roster, host = Roster(0), make.host()
    roster.refresh()
    one = roster.hosts[host.pk]
    one.failures, one.is_busy = 5, True
    hosts.request_probe(host)
    roster.refresh()
    one.schedule(silence(host))
    assert one.due_at - time.monotonic() < 1
    one.is_busy = True
    one.schedule(silence(host))
    assert one.due_at - time.monotonic() > 30


# One host


def watched_of(host: Host) -> Watched:
    roster = Roster(0)
    roster.refresh()
    return roster.hosts[host.pk]


def test_the_second_look_follows_at_once_after_a_long_failure_and_later_ones_back_off() -> None:
    host = make.host()
    one = watched_of(host)
    one.due_at = time.monotonic() - 15  # the look took that long
    one.schedule(silence(host))
    assert one.due_at - time.monotonic() < 1
    waits = []
    for _ in range(5):
        one.due_at = time.monotonic() - 15
        one.schedule(silence(host))
        waits.append(one.due_at - time.monotonic())
    assert waits[0] > 7
    assert waits[-1] > 45


def test_a_good_host_keeps_its_rhythm_and_skips_what_it_missed(settings: Any) -> None:
    settings.PROBE_INTERVAL = dt.timedelta(seconds=5)
    host = make.host()
    one = watched_of(host)
    due_at = one.due_at = time.monotonic() - 1
    one.schedule(look(host, snapshot()))
    assert one.due_at == due_at + 5
    one.due_at = time.monotonic() - 100
    one.schedule(look(host, snapshot()))
    assert 0 < one.due_at - time.monotonic() < 1
    one.schedule(look(host, snapshot(), interval_seconds=40.0))
    assert one.due_at - time.monotonic() > 35


def test_a_host_whose_nvidia_smi_is_slow_is_asked_less_often() -> None:
    one = watched_of(make.host())
    Shell.answer = staticmethod(
        lambda line: Result(Status.OK, stdout=framed(line).stdout, elapsed=2.5)
    )
    intervals = [answer.interval_seconds for _ in range(3) if (answer := one.look())]
    assert intervals == [None, None, 25.0]
    Shell.answer = staticmethod(framed)
    answer = one.look()
    assert answer is not None
    assert answer.interval_seconds is None


def test_only_the_hanging_nvidia_smi_is_left_alone(shells: list[Shell]) -> None:
    one = watched_of(make.host())
    Shell.answer = staticmethod(hanging)
    answers = [one.look() for _ in range(3)]
    asked = [line.split()[2:] for line in shells[0].asked]
    assert ["skip-gpu" in words for words in asked] == [False, True, True]
    for answer in answers:
        assert answer is not None
        assert answer.left_alone is not None
        assert answer.left_alone.times == 1
    one.gpus_left_alone_until = timezone.now()
    second = one.look()
    assert second is not None
    assert second.left_alone is not None
    assert second.left_alone.times == 2
    wait = second.left_alone.until - timezone.now()
    assert dt.timedelta(minutes=1.7) < wait < dt.timedelta(minutes=2.3)
    one.gpus_left_alone_until = None  # "probe now"
    Shell.answer = staticmethod(framed)
    healed = one.look()
    assert healed is not None
    assert healed.left_alone is None
    assert one.stuck_times == 0


def test_a_clock_that_is_set_back_does_not_leave_gpus_alone_for_longer() -> None:
    one = watched_of(make.host())
    one.gpus_left_alone_until = timezone.now() + dt.timedelta(hours=1)
    one.look()
    assert "skip-gpu" not in Shell.made[0].asked[0].split()


def test_pmon_is_asked_for_every_twelfth_time_and_the_list_at_first(shells: list[Shell]) -> None:
    one = watched_of(make.host())
    for _ in range(24):
        one.look()
    asked = [line.split()[2:] for line in shells[0].asked]
    assert [place for place, words in enumerate(asked) if "pmon" in words] == [11, 23]
    assert [place for place, words in enumerate(asked) if "first" in words] == [0]


def test_a_host_that_is_dropped_during_a_look_is_closed_when_the_look_ends(
    shells: list[Shell],
) -> None:
    one = watched_of(make.host())
    began, gate = threading.Event(), threading.Event()
    found: queue.SimpleQueue[object] = queue.SimpleQueue()

    def slow(line: str) -> Result:
        began.set()
        gate.wait(30)
        return framed(line)

    Shell.answer = staticmethod(slow)
    thread = threading.Thread(target=lambda: found.put(one.look()))
    thread.start()
    assert began.wait(30)
    one.drop()
    assert (shells[0].was_cut, shells[0].closed) == (1, 0)
    gate.set()
    thread.join(30)
    assert shells[0].closed == 1
    assert found.get() is not None


def test_a_host_that_was_dropped_is_not_asked_any_more(shells: list[Shell]) -> None:
    one = watched_of(make.host())
    one.drop()
    assert one.look() is None
    assert (shells[0].asked, shells[0].closed) == ([], 1)
