"""Warnings on real terminals of real hosts, from the probe to what the person sees."""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from monitoring import requests
from monitoring.models import Gpu, Host, HostRequest
from reservations.models import Reservation, ViolationStep
from reservations.services.policy import change_policy
from tests import make
from tests.lab import Lab
from tests.monitoring.watching import add, use_keys_of, wait_until, watched

pytestmark = [pytest.mark.lab, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def watched_host(lab: Lab, settings: Any) -> Iterator[Host]:
    """gpu01 watched every second, requests answered as the actions cluster does."""
    use_keys_of(lab, settings)
    settings.PROBE_INTERVAL = dt.timedelta(seconds=1)
    settings.AFTER_PROBE = ["reservations.services.enforcing.after_probe"]
    settings.OWN_PROCESSES = []
    settings.PUBLIC_URL = "https://gpus.example.org"
    change_policy(actor=None, dry_run=False)
    host = add(lab, lab["gpu01"])
    ended = threading.Event()
    thread = threading.Thread(target=_answer_requests, args=(ended,))
    thread.start()
    try:
        with watched():
            wait_until(lambda: Gpu.objects.filter(host=host, state="ok").count() == 4)
            yield host
    finally:
        ended.set()
        thread.join(40)


def _answer_requests(ended: threading.Event) -> None:
    try:
        while not ended.wait(0.1):
            for pk in HostRequest.objects.filter(state="waiting").values_list("pk", flat=True):
                requests.answer(pk)
    finally:
        connection.close()


def reserve(host: Host, index: int = 0) -> Reservation:
    """Alice holds a GPU of the host from now on."""
    alice, _ = make.user("alice", time_zone="Europe/Warsaw"), make.user("bob")
    gpu = Gpu.objects.get(host=host, index=index)
    return make.reservation(gpu, owner=alice, starts_at=timezone.now() - dt.timedelta(minutes=5))


def settled_step() -> ViolationStep:
    return wait_until(
        lambda: ViolationStep.objects.filter(kind="terminal").exclude(result="").first(),
        seconds=40,
        what="a warning that was written or failed",
    )


def test_every_terminal_of_the_intruder_is_warned_and_nobody_elses(
    lab: Lab, watched_host: Host
) -> None:
    machine = lab["gpu01"]
    first, second = machine.open_terminal(user="bob"), machine.open_terminal(user="bob")
    owner, elsewhere = machine.open_terminal(user="alice"), lab["gpu02"].open_terminal(user="bob")
    reservation = reserve(watched_host)
    process = machine.start_process(user="bob", gpu=0, command="python train.py")
    for terminal in (first, second):
        shown = terminal.wait_for("calendar/", seconds=40)
        assert "gpu01 GPU 0 is reserved by alice until" in shown
        assert f"{process.pid}  python train.py" in shown
        assert f"{reservation.ends_at:%H:%M}" in shown
        assert "UTC" in shown
    step = settled_step()
    assert step.result == "done"
    assert first.terminal in step.text
    assert second.terminal in step.text
    assert "TensorHive" not in owner.read_output(1)
    assert "TensorHive" not in elsewhere.read_output(1)


def test_a_stopped_terminal_does_not_hold_the_warning_up(lab: Lab, watched_host: Host) -> None:
    machine = lab["gpu01"]
    stopped, other = machine.open_terminal(user="bob"), machine.open_terminal(user="bob")
    stopped.type("\x13")
    reserve(watched_host)
    machine.start_process(user="bob", gpu=0)
    other.wait_for("calendar/", seconds=40)
    assert settled_step().finished_at is not None


def test_without_a_terminal_the_step_says_so(lab: Lab, watched_host: Host) -> None:
    reserve(watched_host)
    lab["gpu01"].start_process(user="bob", gpu=0)
    step = settled_step()
    assert (step.result, "no terminal" in step.text) == ("skipped", True)


def test_the_acting_key_writes_where_the_observer_may_not(lab: Lab, watched_host: Host) -> None:
    machine = lab["gpu01"]
    machine.set_observer_in_tty(False)
    machine.end_sessions()
    person = machine.open_terminal(user="bob")
    reserve(watched_host)
    machine.start_process(user="bob", gpu=0)
    person.wait_for("reserved by alice", seconds=40)
    assert settled_step().result == "done"


def test_where_neither_key_may_write_the_step_fails_and_says_why(
    lab: Lab, watched_host: Host
) -> None:
    machine = lab["gpu01"]
    machine.set_observer_in_tty(False)
    machine.revoke_key("bob")
    machine.end_sessions()
    person = machine.open_terminal(user="bob")
    reserve(watched_host)
    machine.start_process(user="bob", gpu=0)
    step = settled_step()
    assert step.result == "failed"
    assert "acting key was not accepted" in step.text
    assert "TensorHive" not in person.read_output(1)


def test_names_of_processes_do_nothing_to_the_terminal(lab: Lab, watched_host: Host) -> None:
    machine = lab["gpu01"]
    person = machine.open_terminal(user="bob")
    reserve(watched_host)
    machine.start_process(user="bob", gpu=0, command="x\x1b]0;owned\x07 \u202e y")
    shown = person.wait_for("administrators can see", seconds=40)
    warning = shown[shown.index("*** TensorHive") :]
    assert not set("\x1b\x07\u202e") & set(warning)


def test_nothing_is_written_once_the_host_fell_silent(lab: Lab, watched_host: Host) -> None:
    machine = lab["gpu01"]
    person = machine.open_terminal(user="bob")
    reserve(watched_host)
    machine.stall()
    machine.start_process(user="bob", gpu=0)
    host = watched_host
    wait_until(lambda: Host.objects.get(pk=host.pk).is_stale(timezone.now()))
    assert not ViolationStep.objects.exists()
    machine.resume()
    assert "TensorHive" not in person.read_output(0.5)
