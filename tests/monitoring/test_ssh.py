"""The door to the hosts, against real sshd and against hostile listeners."""

from __future__ import annotations

import socket
import stat
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import paramiko
import pytest
from django.core.exceptions import ValidationError

from monitoring import naming, ssh
from monitoring.ssh import Address, Status, Target
from tests.lab import Lab, LabHost

MARKER = b"@@end"


def pins(host: LabHost) -> tuple[str, ...]:
    return tuple(" ".join(line.split()[:2]) for line in host.public_keys)


def target(lab: Lab, host: LabHost, *, user: str | None = None, **fields: Any) -> Target:
    values: dict[str, Any] = {
        "address": Address(host.address, host.port, user or lab.observer),
        "pins": pins(host),
        "key_path": Path(lab.acting_key if user else lab.observing_key),
    }
    return Target(**{**values, **fields})


@contextmanager
def listener(serve: Callable[[socket.socket], None]) -> Iterator[Address]:
    """A server on loopback that treats each connection in its own way."""
    server = socket.create_server(("127.0.0.1", 0))
    open_ones: list[socket.socket] = []

    def accept() -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            open_ones.append(connection)
            threading.Thread(target=_quietly, args=(serve, connection), daemon=True).start()

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield Address("127.0.0.1", server.getsockname()[1], "nobody")
    finally:
        server.shutdown(socket.SHUT_RDWR)
        server.close()
        for connection in open_ones:
            connection.close()
        thread.join(5)


def _quietly(serve: Callable[[socket.socket], None], connection: socket.socket) -> None:
    try:
        serve(connection)
    except OSError:
        return  # the other side left


def silent(connection: socket.socket) -> None:
    time.sleep(30)


def banner_then_silence(connection: socket.socket) -> None:
    connection.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")
    time.sleep(30)


def endless_banner(connection: socket.socket) -> None:
    ends = time.monotonic() + 30
    while time.monotonic() < ends:
        connection.sendall(b"x" * 4096)


def not_ssh(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    connection.close()


def closes_at_once(connection: socket.socket) -> None:
    connection.close()


# -- Values and keys ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "host",
    [
        "root@h",
        "h:22",
        "-oProxyCommand=x",
        "a b",
        "",
        "h/../x",
        "h\n",
        "x" * 300,
        "a..b",
        "fe80::1%\n",
    ],
)
def test_an_address_is_a_name_and_nothing_else(host: str) -> None:
    with pytest.raises(ValueError, match="address"):
        Address(host)
    # Nor can such a host be stored: the watch would stumble over it.
    with pytest.raises(ValidationError):
        naming.validate_address(host)


@pytest.mark.parametrize("host", ["gpu01", "gpu-1.example.org", "192.0.2.7", "2001:db8::1"])
def test_names_and_addresses_are_accepted(host: str) -> None:
    assert Address(host).host == host
    naming.validate_address(host)


@pytest.mark.parametrize(
    ("port", "user"), [(0, "a"), (70000, "a"), (22, "-x"), (22, "a b"), (22, "123")]
)
def test_ports_and_logins_are_looked_at(port: int, user: str) -> None:
    with pytest.raises(ValueError, match=r"port|login"):
        Address("h", port, user)


def test_a_key_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "keys" / "observing"
    line = ssh.generate_key(path, "tensorhive")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert ssh.public_line(path) == line
    assert ssh.check_key_file(path) is None
    said = subprocess.run(
        ["ssh-keygen", "-lf", str(path)], capture_output=True, text=True, check=True
    ).stdout
    assert ssh.fingerprint(line) in said
    with pytest.raises(FileExistsError):
        ssh.generate_key(path, "again")


def test_a_key_that_others_could_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "keys" / "observing"
    ssh.generate_key(path, "x")
    path.chmod(0o640)
    assert "chmod 600" in (ssh.check_key_file(path) or "")
    path.chmod(0o600)
    path.parent.chmod(0o755)
    assert "chmod 700" in (ssh.check_key_file(path) or "")
    link = tmp_path / "link"
    link.symlink_to(path)
    assert "not a link" in (ssh.check_key_file(link) or "")
    assert "does not exist" in (ssh.check_key_file(tmp_path / "none") or "")


# -- Hostile listeners --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("serve", "statuses"),
    [
        (silent, {Status.TIMEOUT, Status.BANNER}),
        (banner_then_silence, {Status.TIMEOUT, Status.BANNER}),
        (endless_banner, {Status.TIMEOUT, Status.BANNER}),
        (not_ssh, {Status.BANNER}),
        (closes_at_once, {Status.BANNER}),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_whatever_listens_costs_no_more_than_the_deadline(
    serve: Callable[[socket.socket], None], statuses: set[Status]
) -> None:
    with listener(serve) as address:
        began = time.monotonic()
        answer = ssh.run(Target(address, (), Path()), "true", deadline=2)
        assert time.monotonic() - began < 2 + 1
    assert answer.status in statuses
    assert answer.reason.endswith(".")
    assert answer.phase


def test_a_refused_connection_and_an_unknown_name_have_their_own_words() -> None:
    free = socket.create_server(("127.0.0.1", 0))
    port = free.getsockname()[1]
    free.close()
    refused = ssh.run(Target(Address("127.0.0.1", port), (), Path()), "true", deadline=3)
    assert (refused.status, "sshd" in refused.reason) == (Status.REFUSED, True)
    unknown = ssh.run(Target(Address("no-such-host.invalid"), (), Path()), "true", deadline=3)
    assert unknown.status is Status.DNS


def test_five_hundred_failures_leak_no_thread_and_no_descriptor() -> None:
    def counts() -> tuple[int, int]:
        return threading.active_count(), len(list(Path("/proc/self/fd").iterdir()))

    with listener(closes_at_once) as closing, listener(silent) as waiting:
        for address, times, deadline in ((closing, 20, 2.0), (waiting, 1, 0.2)):
            for _ in range(times):
                ssh.run(Target(address, (), Path()), "true", deadline=deadline)
        before = counts()
        for number in range(500):
            address = waiting if number % 100 == 0 else closing
            ssh.run(Target(address, (), Path()), "true", deadline=0.2)
        ends = time.monotonic() + 10
        # The listener's own side takes a moment to notice.
        while time.monotonic() < ends and counts()[0] > before[0] + 10:
            time.sleep(0.1)
    after = counts()
    # The threads and sockets of the listener in this process are not ours: a few per connection
    # that waits; what counts is that nothing grew with the five hundred.
    assert after[0] <= before[0] + 10
    assert after[1] <= before[1] + 10


# -- Real hosts ---------------------------------------------------------------------------------

in_lab = pytest.mark.lab


@in_lab
def test_arguments_arrive_as_they_are(lab: Lab) -> None:
    odd = ["a b", "it's", '"$(id)" `id` $HOME', "two\nlines", "-n", "", "ünï*?[x]", "\\ \t"]
    script = 'for one in "$@"; do printf "%s\\0" "$one"; done'
    answer = ssh.run(target(lab, lab["gpu01"]), script, arguments=odd)
    assert answer.ok
    assert answer.stdout.decode().split("\0")[:-1] == odd


@in_lab
def test_exit_code_and_both_streams_come_back(lab: Lab) -> None:
    answer = ssh.run(target(lab, lab["gpu01"]), "echo out; echo err >&2; exit 7")
    assert (answer.status, answer.exit_code) == (Status.OK, 7)
    assert (answer.stdout, answer.stderr) == (b"out\n", b"err\n")


@in_lab
def test_undecodable_output_is_only_bytes(lab: Lab) -> None:
    answer = ssh.run(target(lab, lab["gpu01"]), r"printf '\377\376\000x'")
    assert answer.stdout == b"\xff\xfe\0x"


@in_lab
def test_a_host_key_that_nobody_accepted_stops_before_the_login(lab: Lab) -> None:
    host = lab["gpu01"]
    host.forget_log()
    answer = ssh.run(target(lab, host, pins=()), "true")
    assert answer.status is Status.HOSTKEY_UNKNOWN
    assert answer.seen_keys == pins(host)
    assert host.authentication_attempts() == []


@in_lab
def test_a_changed_host_key_stops_before_the_login(lab: Lab) -> None:
    host = lab["gpu01"]
    old = target(lab, host)
    host.change_key()
    host.forget_log()
    answer = ssh.run(old, "true")
    assert answer.status is Status.HOSTKEY_CHANGED
    assert answer.seen_keys == pins(host)
    assert host.authentication_attempts() == []


@in_lab
def test_a_host_that_offers_only_another_type_of_key_has_changed(lab: Lab, tmp_path: Path) -> None:
    host = lab["gpu01"]
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ecdsa", "-N", "", "-f", str(tmp_path / "k")], check=True
    )
    other = " ".join((tmp_path / "k.pub").read_text().split()[:2])
    host.forget_log()
    assert ssh.run(target(lab, host, pins=(other,)), "true").status is Status.HOSTKEY_CHANGED
    assert host.authentication_attempts() == []


@in_lab
def test_the_key_of_a_host_is_fetched_without_a_login(lab: Lab) -> None:
    host = lab["gpu01"]
    host.forget_log()
    answer = ssh.fetch_host_keys(Address(host.address, host.port))
    assert [ssh.fingerprint(line) for line in answer.seen_keys] == [host.fingerprint]
    assert host.authentication_attempts() == []


@in_lab
def test_a_refused_key_names_the_login(lab: Lab) -> None:
    host = lab["gpu01"]
    host.revoke_key("bob")
    answer = ssh.run(target(lab, host, user="bob"), "true")
    assert answer.status is Status.AUTH
    assert "bob" in answer.reason


@in_lab
def test_a_missing_key_file_says_where_keys_come_from(lab: Lab, tmp_path: Path) -> None:
    answer = ssh.run(target(lab, lab["gpu01"], key_path=tmp_path / "none"), "true")
    assert (answer.status, "manage.py init" in answer.reason) == (Status.AUTH, True)


@in_lab
def test_the_way_through_a_jump_host(lab: Lab) -> None:
    inner, outer = lab["gpu01"], target(lab, lab["gpu02"])
    answer = ssh.run(target(lab, inner, jump=outer), "hostname")
    assert answer.stdout.strip() == b"gpu01"
    unpinned = ssh.run(target(lab, inner, jump=target(lab, lab["gpu02"], pins=())), "true")
    assert unpinned.status is Status.HOSTKEY_UNKNOWN
    fetched = ssh.fetch_host_keys(Address(inner.address, inner.port), jump=outer)
    assert fetched.seen_keys == pins(inner)


@in_lab
def test_a_flood_ends_at_the_cap(lab: Lab) -> None:
    began = time.monotonic()
    answer = ssh.run(target(lab, lab["gpu01"]), "exec cat /dev/zero", max_bytes=1 << 20)
    assert (answer.status, len(answer.stdout), answer.truncated) == (Status.TOO_BIG, 1 << 20, True)
    assert time.monotonic() - began < 10


@in_lab
def test_a_drip_ends_at_the_deadline(lab: Lab) -> None:
    began = time.monotonic()
    answer = ssh.run(
        target(lab, lab["gpu01"]), "while :; do echo x; sleep 0.3 </dev/null; done", deadline=2
    )
    assert answer.status is Status.TIMEOUT
    assert answer.stdout.startswith(b"x\n")
    assert time.monotonic() - began < 2 + 1


@in_lab
def test_a_child_that_keeps_the_output_open_is_not_waited_for(lab: Lab) -> None:
    began = time.monotonic()
    answer = ssh.run(target(lab, lab["gpu01"]), "sleep 20 & echo now")
    assert (answer.ok, answer.stdout) == (True, b"now\n")
    assert time.monotonic() - began < 10


@in_lab
@pytest.mark.parametrize("moment", ["before", "during"])
def test_a_host_that_falls_silent_costs_the_deadline(lab: Lab, moment: str) -> None:
    host = lab["gpu01"]
    if moment == "before":
        host.stall()
    else:
        threading.Timer(0.7, host.stall).start()
    began = time.monotonic()
    answer = ssh.run(target(lab, host), "sleep 10 </dev/null", deadline=2)
    took = time.monotonic() - began
    host.resume()
    assert answer.status is Status.TIMEOUT
    assert took < 2 + 1


@in_lab
def test_configuration_and_agent_of_the_account_are_not_obeyed(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    canary = tmp_path / "canary"
    home = tmp_path / "home"
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh" / "config").write_text(
        f'Match exec "touch {canary}"\n  User root\nHost *\n  ProxyCommand touch {canary}\n'
    )
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("SSH_AUTH_SOCK", str(tmp_path / "agent"))
    answer = ssh.run(target(lab, lab["gpu01"]), "id -un")
    assert answer.stdout.decode().strip() == lab.observer
    assert not canary.exists()


@in_lab
def test_noise_of_a_start_up_file_stays_out_of_arguments(lab: Lab) -> None:
    """bash reads ~/.bashrc for commands over SSH, too."""
    host = lab["gpu01"]
    host.ssh("bob", "echo 'echo welcome; echo noise >&2' > ~/.bashrc")
    answer = ssh.run(target(lab, host, user="bob"), 'echo "$1"', arguments=["x"])
    assert answer.ok
    assert answer.stdout.endswith(b"x\n")


class Asking:
    """A kept shell that says a line and the marker."""

    def __init__(self, of: Target) -> None:
        self.shell = ssh.Shell(of, preamble='say() { echo "$1"; echo "@@end"; }')

    def ask(self, word: str = "hi", deadline: float = 5.0) -> ssh.Result:
        return self.shell.ask(f"say {word}", end_marker=MARKER, deadline=deadline)


@in_lab
def test_a_kept_shell_answers_again_and_again_over_one_login(lab: Lab) -> None:
    host = lab["gpu01"]
    asking = Asking(target(lab, host))
    host.forget_log()
    words = [asking.ask(f"w{number}").stdout for number in range(50)]
    asking.shell.close()
    assert words == [f"w{number}\n@@end\n".encode() for number in range(50)]
    logins = [line for line in host.authentication_attempts() if "Accepted publickey" in line]
    assert len(logins) == 1


@in_lab
def test_a_kept_shell_recovers_from_a_stall_and_from_a_cut(lab: Lab) -> None:
    host = lab["gpu01"]
    asking = Asking(target(lab, host))
    assert asking.ask().ok
    host.stall()
    began = time.monotonic()
    assert asking.ask(deadline=1.5).status is Status.TIMEOUT
    assert time.monotonic() - began < 1.5 + 1
    host.resume()
    assert asking.ask().ok
    host.end_sessions()
    # The cut is met by this question, or was noticed before it: then a new connection answers.
    assert asking.ask().status in (Status.CLOSED, Status.OK)
    assert asking.ask().ok
    asking.shell.close()
    assert not asking.shell.is_open


@in_lab
def test_a_kept_shell_caps_what_it_reads(lab: Lab) -> None:
    shell = ssh.Shell(target(lab, lab["gpu01"]), preamble="flood() { cat /dev/zero; }")
    answer = shell.ask("flood", end_marker=MARKER, deadline=10, max_bytes=1 << 18)
    assert answer.status is Status.TOO_BIG
    assert not shell.is_open


@in_lab
def test_what_start_up_files_print_is_left_out(lab: Lab) -> None:
    host = lab["gpu01"]
    host.ssh("bob", "echo 'printf welcome; seq 1 5000; echo noise >&2' > ~/.bashrc")
    answer = ssh.run(target(lab, host, user="bob"), "echo out; echo err >&2", max_bytes=10)
    assert (answer.ok, answer.stdout, answer.stderr) == (True, b"out\n", b"err\n")


@in_lab
def test_an_account_without_a_shell_is_named_as_such(lab: Lab) -> None:
    """sshd runs a key's own command in place of ours, as it runs nologin for such an account."""
    host = lab["gpu01"]
    key = ssh.public_line(Path(lab.acting_key))
    host.authorize("bob", f'command="/usr/sbin/nologin" {key}', add=False)
    there = target(lab, host, user="bob")
    answer = ssh.run(there, "touch ~/it-ran")
    assert (answer.status, answer.phase, answer.exit_code) == (Status.CHANNEL, "channel", None)
    assert "currently not available" in answer.reason
    kept = ssh.Shell(there, preamble=":").ask("touch ~/it-ran", end_marker=MARKER, deadline=5)
    assert (kept.status, "currently not available" in kept.reason) == (Status.CLOSED, True)
    assert host.run(["ls", "/home/bob"], user="bob").stdout == ""


@in_lab
def test_the_cap_is_exact_and_counts_both_streams(lab: Lab) -> None:
    there = target(lab, lab["gpu01"])
    script = "head -c 600 /dev/zero; head -c 400 /dev/zero >&2"
    assert ssh.run(there, script, max_bytes=1000).ok
    answer = ssh.run(there, script, max_bytes=999)
    assert (answer.status, answer.exit_code, answer.truncated) == (Status.TOO_BIG, None, True)


@in_lab
def test_a_script_whose_shell_is_killed_has_no_exit_code(lab: Lab) -> None:
    answer = ssh.run(target(lab, lab["gpu01"]), "echo before; kill -9 $$")
    assert (answer.status, answer.exit_code, answer.stdout) == (Status.CLOSED, None, b"before\n")


@in_lab
def test_any_of_several_pinned_kinds_of_key_is_enough(
    fresh_lab: Callable[..., Lab], tmp_path: Path
) -> None:
    lab = fresh_lab(hosts=1, host_key_kinds=("ed25519", "ecdsa", "rsa"))
    host = lab["gpu01"]
    by_kind = {line.split()[0]: line for line in pins(host)}
    assert len(by_kind) == 3
    for line in by_kind.values():
        assert ssh.run(target(lab, host, pins=(line,)), "true").ok
    # A kind that the host does not offer any more stands first.
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ecdsa", "-b", "521", "-N", "", "-f", str(tmp_path / "k")],
        check=True,
    )
    gone = " ".join((tmp_path / "k.pub").read_text().split()[:2])
    assert ssh.run(target(lab, host, pins=(gone, by_kind["ssh-rsa"])), "true").ok


@in_lab
def test_what_a_jump_host_cannot_reach_is_told_apart(lab: Lab) -> None:
    inner, outer = lab["gpu01"], target(lab, lab["gpu02"])
    inner.stop()
    refused = ssh.run(target(lab, inner, jump=outer), "true")
    inner.start()
    assert (refused.status, refused.phase) == (Status.REFUSED, "jump")
    assert "jump host" in refused.reason
    assert "Exception" not in refused.reason
    nowhere = Address("no-such-host.invalid", 22, lab.observer)
    unknown = ssh.run(target(lab, inner, address=nowhere, jump=outer), "true", deadline=12)
    assert unknown.status is Status.DNS


@in_lab
@pytest.mark.parametrize("silent_one", ["gpu01", "gpu02"], ids=["behind", "jump host"])
def test_a_kept_shell_through_a_jump_host_keeps_its_deadline(lab: Lab, silent_one: str) -> None:
    asking = Asking(target(lab, lab["gpu01"], jump=target(lab, lab["gpu02"])))
    threads = threading.active_count()
    assert asking.ask().ok
    lab[silent_one].stall()
    began = time.monotonic()
    assert asking.ask(deadline=1.5).status is Status.TIMEOUT
    assert time.monotonic() - began < 1.5 + 1
    lab[silent_one].resume()
    assert asking.ask().ok
    asking.shell.close()
    assert threading.active_count() <= threads + 1  # the keeper of the deadlines stays


@in_lab
def test_idle_connections_wake_rarely(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    asking = Asking(target(lab, lab["gpu01"], jump=target(lab, lab["gpu02"])))
    assert asking.ask().ok
    wakes = []
    for transport in [one for one in threading.enumerate() if isinstance(one, paramiko.Transport)]:
        packetizer: Any = transport.packetizer
        monkeypatch.setattr(packetizer, "_check_keepalive", lambda: wakes.append(1))
    time.sleep(2.5)
    asking.shell.close()
    # Two connections, each at most every two seconds; the library's own pace would be 50.
    assert len(wakes) <= 6
