"""Each fault of a lab host does what it says, as seen through the OpenSSH client."""

import contextlib
import os
import subprocess
from collections.abc import Iterator

import pytest

from tests.lab import Lab
from tests.lab.processes import wait_until

pytestmark = pytest.mark.lab


@pytest.fixture(autouse=True)
def _needs_root() -> None:
    if os.geteuid() != 0:
        pytest.fail("the tests of the lab need root")


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """Inside, ssh gets no answer within two seconds."""
    with pytest.raises(subprocess.TimeoutExpired):
        yield


def test_stalled_host_accepts_connections_but_says_nothing_until_resumed(lab: Lab) -> None:
    host = lab["gpu01"]
    bob = host.open_terminal(user="bob")
    bob.wait_for("$ ")
    host.stall()
    with silence():
        host.ssh("bob", "true", seconds=2)
    bob.type("echo $((6 * 7))\r")
    assert bob.read_output(0.5) == ""
    assert lab["gpu02"].ssh("bob", "true").returncode == 0
    host.resume()
    bob.wait_for("\r42\r\n")
    assert host.ssh("bob", "true").returncode == 0


def test_stopped_host_refuses_but_keeps_its_sessions(lab: Lab) -> None:
    host = lab["gpu01"]
    bob = host.open_terminal(user="bob")
    host.stop()
    assert "refused" in host.ssh("bob", "true").stderr
    bob.type("echo $((6 * 7))\r")
    bob.wait_for("\r42\r\n")
    host.start()
    assert host.ssh("bob", "true").returncode == 0


@pytest.mark.parametrize("stalled", [False, True])
def test_ended_sessions_are_closed_and_new_ones_begin(lab: Lab, stalled: bool) -> None:
    host = lab["gpu01"]
    bob = host.open_terminal(user="bob")
    if stalled:
        host.stall()
    host.end_sessions()
    wait_until(lambda: not bob.is_open, "bob's client has noticed")
    assert host.sessions() == set()
    host.resume()
    assert host.ssh("bob", "true").returncode == 0


def test_changed_key_is_met_by_new_connections_before_any_authentication(lab: Lab) -> None:
    host = lab["gpu01"]
    bob = host.open_terminal(user="bob")
    pinned, fingerprint = host.known_hosts, host.fingerprint
    host.change_key()
    host.forget_log()
    refused = host.ssh("bob", "true", known_hosts=pinned)
    assert refused.returncode == 255
    assert host.fingerprint in refused.stderr
    assert host.fingerprint != fingerprint
    assert host.authentication_attempts() == []
    assert bob.is_open
    assert host.ssh("bob", "true").returncode == 0
    assert any("bob" in line for line in host.authentication_attempts())


def test_refused_key_counts_as_attempt(lab: Lab) -> None:
    host = lab["gpu01"]
    host.ssh("bob", "true", key=lab.observing_key)
    assert any("bob" in line for line in host.authentication_attempts())


def test_rebooted_host_has_a_new_boot_id_and_nothing_of_what_ran(lab: Lab) -> None:
    host = lab["gpu01"]
    before = host.boot_id
    bob = host.open_terminal(user="bob")
    process = host.start_process(user="bob", gpu=0)
    other = lab["gpu02"].start_process(user="bob", gpu=0)
    host.ssh("bob", "screen -dmS training sleep 60; touch /tmp/mark ~/mark")
    host.reboot()
    assert not bob.is_open
    assert not process.is_running
    assert other.is_running
    said = host.ssh("bob", "cat /proc/sys/kernel/random/boot_id; ls /tmp/mark; ls; screen -ls")
    assert said.stdout.startswith(f"{host.boot_id}\nmark\nNo Sockets")
    assert host.boot_id != before
    assert host.smi.apps == []
