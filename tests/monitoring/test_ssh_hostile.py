"""The door to the hosts, against servers that speak SSH and mean ill, or stop in the middle."""

from __future__ import annotations

import os
import random
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import paramiko
import pytest
from paramiko.common import (
    AUTH_FAILED,
    AUTH_SUCCESSFUL,
    OPEN_FAILED_RESOURCE_SHORTAGE,
    OPEN_SUCCEEDED,
)

from monitoring import ssh
from monitoring.ssh import Result, Status, Target, connecting
from tests.monitoring.test_ssh import MARKER, listener, silent

DENIAL = "Access denied by pam_slurm_adopt: you have no active jobs on this node"
GREETING = b"SSH-2.0-OpenSSH_9.2\r\n"


class Server(paramiko.ServerInterface):
    """Lets everybody in and runs nothing; subclasses misbehave. `over`: the test has ended."""

    banner: str | None = None

    def __init__(self, transport: paramiko.Transport, over: threading.Event) -> None:
        self.transport, self.over = transport, over

    def get_allowed_auths(self, username: str) -> str:
        return "publickey"

    def check_auth_publickey(self, username: str, key: paramiko.PKey) -> int:
        return AUTH_SUCCESSFUL

    def get_banner(self) -> tuple[str | None, str]:
        return self.banner, "en"

    def check_channel_request(self, kind: str, chanid: int) -> int:
        return OPEN_SUCCEEDED

    def check_channel_exec_request(self, channel: paramiko.Channel, command: bytes) -> bool:
        threading.Thread(target=self.converse, args=(channel,), daemon=True).start()
        return True

    def converse(self, channel: paramiko.Channel) -> None:
        """What the remote shell does, in a thread of its own."""

    def answer_first(self, channel: paramiko.Channel) -> None:
        channel.recv(100_000)
        channel.sendall(MARKER + b"\n")


class StallsInAuth(Server):
    def check_auth_publickey(self, username: str, key: paramiko.PKey) -> int:
        self.over.wait(30)
        return AUTH_FAILED


class HangsUpInAuth(Server):
    def check_auth_publickey(self, username: str, key: paramiko.PKey) -> int:
        self.transport.close()
        return AUTH_FAILED


class DeniesByPam(HangsUpInAuth):
    banner = f"** Property of the lab **\n{DENIAL}\x1b[31m\u202e\n" + "no news " * 900


class Denies(Server):
    banner = "** Property of the lab **"

    def check_auth_publickey(self, username: str, key: paramiko.PKey) -> int:
        return AUTH_FAILED


class RefusesSessions(Server):
    def check_channel_request(self, kind: str, chanid: int) -> int:
        return OPEN_FAILED_RESOURCE_SHORTAGE


class StallsInSession(Server):
    def check_channel_request(self, kind: str, chanid: int) -> int:
        self.over.wait(30)
        return OPEN_FAILED_RESOURCE_SHORTAGE


class RefusesCommands(Server):
    def check_channel_exec_request(self, channel: paramiko.Channel, command: bytes) -> bool:
        return False


class StallsInExec(Server):
    def check_channel_exec_request(self, channel: paramiko.Channel, command: bytes) -> bool:
        self.over.wait(30)
        return False


class StopsInKeyExchange(Server):
    """Answers one question, then asks for new keys and never sends its part of them."""

    def converse(self, channel: paramiko.Channel) -> None:
        self.answer_first(channel)
        transport: Any = self.transport
        transport._handler_table[20] = lambda _: self.over.wait(30)
        transport._send_kex_init()


class StopsReading(Server):
    """Answers one question, then leaves everything unread, so that our writes get stuck."""

    def converse(self, channel: paramiko.Channel) -> None:
        self.answer_first(channel)
        packetizer: Any = self.transport.packetizer
        packetizer.read_message = lambda: self.over.wait(30)


class RunsSomethingElse(Server):
    def converse(self, channel: paramiko.Channel) -> None:
        time.sleep(0.1)  # the command is confirmed first
        channel.sendall(b"This account is currently not available.\n")
        channel.send_exit_status(1)
        channel.close()


class WantsChannelsBack(Server):
    opened: list[str] = []

    def converse(self, channel: paramiko.Channel) -> None:
        for kind in ("forwarded-tcpip", "auth-agent@openssh.com", "x11", "session"):
            try:
                self.transport.open_channel(kind, ("a", 1), ("b", 2), timeout=5)
            except paramiko.ChannelException:
                continue
            self.opened.append(kind)
        self.answer_first(channel)


class Playing:
    """Targets that a server of ours answers."""

    def __init__(self, key_path: Path) -> None:
        self.host_key = paramiko.ECDSAKey.generate()
        self.pin = f"{self.host_key.get_name()} {self.host_key.get_base64()}"
        self.key_path, self.over = key_path, threading.Event()
        self._listeners: list[Any] = []

    def target(self, kind: type[Server]) -> Target:
        def serve(connection: socket.socket) -> None:
            transport = paramiko.Transport(connection)
            transport.add_server_key(self.host_key)
            try:
                transport.start_server(server=kind(transport, self.over))
            except (paramiko.SSHException, EOFError):
                return  # the client went away
            self.over.wait(30)
            transport.close()

        place = listener(serve)
        self._listeners.append(place)
        return Target(place.__enter__(), (self.pin,), self.key_path)

    def end(self) -> None:
        self.over.set()
        for place in self._listeners:
            place.__exit__(None, None, None)


@pytest.fixture
def playing(tmp_path: Path) -> Iterator[Playing]:
    ssh.generate_key(tmp_path / "keys" / "observing", "test")
    playing = Playing(tmp_path / "keys" / "observing")
    yield playing
    playing.end()


def in_time(act: Callable[[], Result], deadline: float) -> Result:
    began = time.monotonic()
    answer = act()
    assert time.monotonic() - began < deadline + 1
    return answer


# -- Servers that speak SSH -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "status", "phase"),
    [
        (StallsInAuth, Status.TIMEOUT, "auth"),
        (HangsUpInAuth, Status.CLOSED, "auth"),
        (DeniesByPam, Status.AUTH, "auth"),
        (Denies, Status.AUTH, "auth"),
        (RefusesSessions, Status.CHANNEL, "channel"),
        (StallsInSession, Status.TIMEOUT, "channel"),
        (RefusesCommands, Status.CHANNEL, "channel"),
        (StallsInExec, Status.TIMEOUT, "channel"),
        (RunsSomethingElse, Status.CHANNEL, "channel"),
        (Server, Status.TIMEOUT, "command"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_each_phase_fails_in_its_own_way_and_in_time(
    playing: Playing, kind: type[Server], status: Status, phase: str
) -> None:
    target = playing.target(kind)
    answer = in_time(lambda: ssh.run(target, "true", deadline=2), 2)
    assert (answer.status, answer.phase, answer.exit_code) == (status, phase, None)
    assert answer.reason
    assert "Exception" not in answer.reason
    assert "Error" not in answer.reason


def test_a_login_that_stalls_is_no_refusal_of_the_key(
    playing: Playing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the phase's own limit ends it, long before the deadline."""
    monkeypatch.setitem(connecting._PHASE_SECONDS, "auth", 0.5)
    answer = in_time(lambda: ssh.run(playing.target(StallsInAuth), "true", deadline=20), 10)
    assert (answer.status, answer.phase) == (Status.TIMEOUT, "auth")


def test_what_the_login_rules_say_is_quoted_and_cleaned(playing: Playing) -> None:
    reason = ssh.run(playing.target(DeniesByPam), "true", deadline=5).reason
    assert DENIAL in reason
    assert "Property" not in reason
    assert len(reason) < 400
    assert reason.isprintable()


def test_what_runs_in_place_of_a_shell_is_quoted(playing: Playing) -> None:
    answer = ssh.run(playing.target(RunsSomethingElse), "true", deadline=5)
    assert "This account is currently not available." in answer.reason


def test_what_runs_in_place_of_a_kept_shell_is_quoted(playing: Playing) -> None:
    shell = ssh.Shell(playing.target(RunsSomethingElse), preamble=":")
    answer = shell.ask("hi", end_marker=MARKER, deadline=5)
    assert answer.status is Status.CLOSED
    assert "This account is currently not available." in answer.reason


def test_a_host_gets_no_channel_back(playing: Playing) -> None:
    shell = ssh.Shell(playing.target(WantsChannelsBack), preamble=":")
    assert shell.ask("hi", end_marker=MARKER, deadline=10).ok
    shell.close()
    assert WantsChannelsBack.opened == []


@pytest.mark.parametrize("kind", [StopsInKeyExchange, StopsReading], ids=lambda kind: kind.__name__)
def test_a_kept_shell_keeps_its_deadline_whatever_gets_stuck(
    playing: Playing, kind: type[Server]
) -> None:
    shell = ssh.Shell(playing.target(kind), preamble=":")
    assert shell.ask("hi", end_marker=MARKER, deadline=10).ok
    time.sleep(0.5)  # for the server to stop
    long_line = "x" * 1_500_000
    answer = in_time(lambda: shell.ask(long_line, end_marker=MARKER, deadline=1.5), 1.5)
    assert answer.status is Status.TIMEOUT
    assert not shell.is_open
    assert shell.ask("hi", end_marker=MARKER, deadline=10).ok
    shell.close()


# -- Servers that do not --------------------------------------------------------------------------


def packet(payload: bytes) -> bytes:
    """An SSH packet before any encryption."""
    padding = 4 + (8 - (len(payload) + 9) % 8)
    return struct.pack(">IB", len(payload) + padding + 1, padding) + payload + bytes(padding)


def greets_with(data: bytes, *, times: int = 1) -> Callable[[socket.socket], None]:
    def serve(connection: socket.socket) -> None:
        connection.sendall(GREETING)
        for _ in range(times):
            connection.sendall(data)
        time.sleep(1)
        connection.close()

    return serve


NONSENSE = [
    packet(bytes([192]) + b"of a kind that does not exist"),
    packet(bytes([20]) + b"\xff" * 40),
    packet(bytes([1]) + struct.pack(">II", 2, 4) + b"\xff\xfe\xff\xff" + bytes(4)),
    packet(b"\x03" + bytes(4)),
    packet(b""),
    b"\xff" * 100,
    *(random.Random(seed).randbytes(300) for seed in range(10)),
]


@pytest.mark.parametrize("data", NONSENSE, ids=lambda data: data[:8].hex())
def test_nonsense_is_a_result_and_nothing_is_printed(
    data: bytes, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    with listener(greets_with(data)) as address:
        answer = ssh.run(Target(address, (), Path()), "true", deadline=4)
    assert answer.status in (Status.BANNER, Status.TIMEOUT)
    assert answer.phase == "handshake"
    assert answer.reason.isprintable()
    assert capfd.readouterr() == ("", "")
    assert caplog.records == []


def test_a_packet_that_claims_gigabytes_costs_no_memory_and_no_wait() -> None:
    huge = struct.pack(">IB", 0x7FFFFFFC, 10)
    with listener(greets_with(huge + b"x" * 1_000_000, times=100)) as address:
        answer = ssh.run(Target(address, (), Path()), "true", deadline=20)
    assert (answer.status, "without end" in answer.reason) == (Status.BANNER, True)
    assert answer.elapsed < 15


def test_failed_handshakes_leave_no_timer_behind() -> None:
    with listener(greets_with(NONSENSE[0])) as address:
        for _ in range(5):
            ssh.run(Target(address, (), Path()), "true", deadline=4)
        left = [thread for thread in threading.enumerate() if isinstance(thread, threading.Timer)]
    assert left == []


def test_limits_hold_in_a_forked_child_as_well() -> None:
    """A worker is forked from a process that may have used the door before."""
    with listener(silent) as address:
        target = Target(address, (), Path())
        assert ssh.run(target, "true", deadline=0.3).status is Status.TIMEOUT
        child = os.fork()
        if child == 0:
            answer = ssh.run(target, "true", deadline=0.3)
            os._exit(0 if answer.status is Status.TIMEOUT else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
