"""Opening a connection: pinned keys, every phase limited, one sentence for every failure."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import paramiko

from monitoring.naming import printable
from monitoring.ssh.limits import Deadline, limited
from monitoring.ssh.sockets import NameUnknown, PatientChannel, PatientSocket, connect
from monitoring.ssh.transport import PinnedConnection, Transport, UnknownKey
from monitoring.ssh.values import Address, Result, Status, Target

# Handshake: greeting and key exchange.
_PHASE_SECONDS = {"handshake": 10.0, "auth": 10.0, "channel": 10.0, "jump": 8.0}
# What the login rules of a cluster say (PAM, Slurm), among notices that greet everybody.
_DENIAL = re.compile(r"denied|not allowed|not permitted|no active jobs|expired|locked", re.I)
# What a jump host says about the host behind it.
_BEHIND = (
    (re.compile(r"refused", re.I), Status.REFUSED),
    (re.compile(r"resolve|not known|no address", re.I), Status.DNS),
)


class Failure(Exception):
    """The connection cannot be had: the result to hand to the caller."""

    def __init__(
        self,
        status: Status,
        phase: str,
        reason: str,
        seen_keys: tuple[str, ...] = (),
        seen_at: Address | None = None,
    ) -> None:
        super().__init__(reason)
        self.status, self.phase, self.reason = status, phase, reason
        self.seen_keys, self.seen_at = seen_keys, seen_at

    def result(self, deadline: Deadline) -> Result:
        return Result(
            self.status,
            phase=self.phase,
            elapsed=deadline.elapsed,
            reason=self.reason,
            seen_keys=self.seen_keys,
            seen_at=self.seen_at,
        )


class Chain:
    """One open connection with the one to its jump host, closed together.

    All of it runs over one TCP connection; when that is cut, whatever waits on any part ends.
    """

    def __init__(self) -> None:
        self._closers: list[Callable[[], object]] = []
        self._connections: list[PinnedConnection] = []
        self._socket: PatientSocket | None = None
        self.timed_out = False
        self.phase = "resolve"

    @property
    def transport(self) -> Transport:
        return self._connections[-1].transport

    @property
    def got_too_much(self) -> bool:
        """The host sent more than it was allowed."""
        return self._socket is not None and self._socket.is_used_up

    def allow(self, size: int) -> None:
        """Let the host send so many bytes from now on; with more, the connection ends."""
        if self._socket is not None:
            self._socket.allowance = size

    def open(self, target: Target, deadline: Deadline) -> None:
        """Connect and log in. Raises Failure; `close` is the caller's in any case."""
        if target.jump is None:
            sock: Any = self._connect(target, deadline)
        else:
            self.open(target.jump, deadline)
            sock = self._through(target)
        self._log_in(target, sock)

    def cut(self) -> None:
        """From another thread: end whatever waits on the network, at once."""
        self.timed_out = True
        if self._socket is not None:
            self._socket.hang_up()

    def limited_to(self, deadline: Deadline) -> AbstractContextManager[None]:
        """Cut when the deadline comes, whatever hangs."""
        return limited(self.cut, deadline.left())

    def close(self) -> None:
        """Close everything, newest first. Safe to call twice."""
        if self._socket is not None:
            self._socket.hang_up()
        for connection in self._connections:
            for transport in connection.transports:
                # Its thread met the end; only then may the descriptor be used for something else.
                if transport.is_alive():
                    transport.join(0.5)
        self._connections.clear()
        while self._closers:
            self._closers.pop()()

    def open_shell_channel(self) -> paramiko.Channel:
        """A channel on which /bin/sh reads commands, whatever the login shell. Raises Failure."""
        try:
            with self._phase("channel"):
                channel = self.transport.open_session(timeout=3600)
                # Understood alike by sh, bash, zsh, csh and fish.
                channel.exec_command("exec /bin/sh -s")
        except (paramiko.SSHException, OSError, EOFError) as error:
            raise self._no_session(error) from None
        self.phase = "command"
        return channel

    @contextmanager
    def _phase(self, name: str) -> Iterator[None]:
        """What follows is this phase, and may take so long."""
        self.phase = name
        with limited(self.cut, _PHASE_SECONDS[name]):
            yield

    def _no_session(self, error: Exception) -> Failure:
        if self.timed_out:
            text = "The host let us in but opened no session in time."
            return Failure(Status.TIMEOUT, self.phase, text)
        refusal = _plain(self.transport.refusal) or _said(error)
        text = f"The host let us in but opened no session: {refusal}."
        return Failure(Status.CHANNEL, self.phase, text)

    def _connect(self, target: Target, deadline: Deadline) -> socket.socket:
        self.phase, address = "connect", target.address
        try:
            sock = connect(address, deadline)
        except NameUnknown as error:
            raise Failure(
                Status.DNS, "resolve", f"The name {address.host} cannot be resolved: {error}."
            ) from None
        except ConnectionRefusedError:
            raise Failure(
                Status.REFUSED,
                self.phase,
                f"{address} refused the connection: is sshd running there?",
            ) from None
        except OSError as error:
            raise Failure(
                Status.UNREACHABLE, self.phase, f"{address} cannot be reached: {_said(error)}."
            ) from None
        self._closers.append(sock.close)
        self._socket = sock
        if self.timed_out:  # while there was nothing to cut yet
            raise Failure(Status.TIMEOUT, self.phase, f"{address} answered too late.")
        return sock

    def _through(self, target: Target) -> PatientChannel:
        address = target.address
        try:
            with self._phase("jump"):
                channel = self.transport.open_channel(
                    "direct-tcpip", (address.host, address.port), ("127.0.0.1", 0), timeout=3600
                )
        except (paramiko.SSHException, OSError, EOFError) as error:
            raise self._not_behind(address, error) from None
        self._closers.append(channel.close)
        return PatientChannel(channel)

    def _not_behind(self, address: Address, error: Exception) -> Failure:
        if self.timed_out:
            text = f"The jump host did not reach {address} in time."
            return Failure(Status.TIMEOUT, self.phase, text)
        said = _plain(self.transport.refusal) or _said(error)
        found = (status for pattern, status in _BEHIND if pattern.search(said))
        text = f"The jump host cannot reach {address}: {said}."
        return Failure(next(found, Status.UNREACHABLE), self.phase, text)

    def _log_in(self, target: Target, sock: Any) -> None:
        try:
            connection = PinnedConnection(target, sock=sock, phases=self._phase)
        except (OSError, ValueError, paramiko.SSHException):
            raise Failure(
                Status.AUTH,
                "key",
                f"The key {target.key_path.name} cannot be read; `manage.py init` creates it.",
            ) from None
        self._connections.append(connection)
        self._closers.append(connection.close)
        try:
            connection.open()
        except (paramiko.SSHException, OSError, EOFError, ValueError) as error:
            transport = connection.transports[0] if connection.transports else None
            raise self._failure(target, transport, error) from None

    def _failure(self, target: Target, transport: Transport | None, error: Exception) -> Failure:
        if isinstance(error, UnknownKey | paramiko.BadHostKeyException):
            return _wrong_key(target.address, error)
        if transport is None or not transport.initial_kex_done:
            return self._no_handshake(target.address, transport, error)
        return self._no_login(target, transport, error)

    def _no_handshake(
        self, where: Address, transport: Transport | None, error: Exception
    ) -> Failure:
        if self.timed_out:
            text = f"{where} accepts connections, but a login did not get under way in time."
            return Failure(Status.TIMEOUT, "handshake", text)
        if self.got_too_much:
            text = f"{where} does not speak SSH properly: it sends without end."
            return Failure(Status.BANNER, "handshake", text)
        said = _plain(transport.farewell if transport else "") or _said(error)
        text = f"{where} does not speak SSH properly: {said}."
        return Failure(Status.BANNER, "handshake", text)

    def _no_login(self, target: Target, transport: Transport, error: Exception) -> Failure:
        """Refused only on evidence: a connection that was lost says nothing about the key."""
        address = target.address
        if self.timed_out:
            return Failure(Status.TIMEOUT, "auth", f"{address} did not finish the login in time.")
        said = _denial(transport.banner_text()) or _plain(transport.farewell)
        if said or (transport.is_active() and isinstance(error, paramiko.SSHException)):
            quoted = f" It says: {said}" if said else ""
            return Failure(
                Status.AUTH,
                "auth",
                f"{address} does not let {address.user} in with the {target.key_path.name} key."
                + quoted,
            )
        return Failure(
            Status.CLOSED,
            "auth",
            f"{address} closed the connection during the login of {address.user}, without a word.",
        )


def _wrong_key(where: Address, error: UnknownKey | paramiko.BadHostKeyException) -> Failure:
    line = f"{error.key.get_name()} {error.key.get_base64()}"
    if isinstance(error, UnknownKey):
        status = Status.HOSTKEY_UNKNOWN
        text = f"The host key of {where} is not accepted yet; nothing was logged in."
    else:
        status = Status.HOSTKEY_CHANGED
        text = f"{where} shows another host key than the accepted one; nothing was logged in."
    return Failure(status, "hostkey", text, (line,), where)


def _denial(banner: str) -> str:
    """The lines that say why, without the notices around them."""
    return _plain(" ".join(line for line in banner.splitlines() if _DENIAL.search(line)))


def _plain(text: str) -> str:
    """Text from a host in one short line."""
    return printable(" ".join(text.split()), 200).rstrip(".")


def _said(error: BaseException) -> str:
    text = str(error) or type(error).__name__
    if isinstance(error, paramiko.ChannelException):
        text = error.text
    elif isinstance(error, OSError) and error.strerror:
        text = error.strerror
    return _plain(text)
