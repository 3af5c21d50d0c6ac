"""Opening a connection: pinned keys, every phase limited, one sentence for every failure."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import fabric
import paramiko
from paramiko.config import SSHConfig

from monitoring.naming import printable
from monitoring.ssh import keys
from monitoring.ssh.sockets import Deadline, NameUnknown, connect
from monitoring.ssh.values import Address, Result, Status, Target

# Dead hosts are everyday life here; the caller says what is worth a line in the log.
logging.getLogger("paramiko").setLevel(logging.CRITICAL)

_BANNER_SECONDS = 10.0
_AUTH_SECONDS = 10.0
_CHANNEL_SECONDS = 10.0
_JUMP_SECONDS = 8.0


class _Transport(paramiko.Transport):
    """The cheapest cipher first; everything else as the library has it."""

    _preferred_ciphers = (
        "aes128-gcm@openssh.com",
        *(
            cipher
            for cipher in paramiko.Transport._preferred_ciphers  # type: ignore[attr-defined]
            if cipher != "aes128-gcm@openssh.com"
        ),
    )


class _UnknownKey(paramiko.SSHException):
    def __init__(self, key: paramiko.PKey) -> None:
        super().__init__("host key not pinned")
        self.key = key


class _RefuseUnknown(paramiko.RejectPolicy):
    """Raised before any authentication, with the key that was offered."""

    def missing_host_key(
        self, client: paramiko.SSHClient, hostname: str, key: paramiko.PKey
    ) -> NoReturn:
        raise _UnknownKey(key)


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


class PinnedConnection(fabric.Connection):
    """Fabric's connection without its habits: no configuration files, no agent, no other keys,
    no unknown host key. The transport is at hand from its first moment, so that it can be closed.
    """

    def __init__(self, target: Target, *, sock: Any, deadline: Deadline) -> None:
        address = target.address
        # `_set`, since an attribute set the plain way would be copied into the configuration.
        self._set(transports=[])
        super().__init__(
            host=address.host,
            user=address.user,
            port=address.port,
            config=_configuration(),
            connect_kwargs={
                "sock": sock,
                # Without a pin it ends at the host key: no key of ours is even read.
                "pkey": keys.load_key(target.key_path) if target.pins else None,
                "allow_agent": False,
                "look_for_keys": False,
                "timeout": deadline.left(),
                "banner_timeout": deadline.left(_BANNER_SECONDS),
                "auth_timeout": deadline.left(_AUTH_SECONDS),
                "channel_timeout": deadline.left(_CHANNEL_SECONDS),
                "transport_factory": self._make_transport,
            },
        )
        self.client.set_missing_host_key_policy(_RefuseUnknown())
        for line in target.pins:
            key_type, public_key = line.split()[:2]
            entry = paramiko.hostkeys.HostKeyEntry.from_line(
                f"{address.pin_name} {key_type} {public_key}"
            )
            if entry is not None and entry.key is not None:
                self.client.get_host_keys().add(address.pin_name, key_type, entry.key)

    def _make_transport(self, sock: Any, **options: Any) -> paramiko.Transport:
        transport = _Transport(sock, **options)
        self.transports.append(transport)
        return transport


class Chain:
    """One open connection with the one to its jump host, closed together."""

    def __init__(self) -> None:
        self._closers: list[Callable[[], object]] = []
        self._sockets: list[socket.socket] = []
        self.timed_out = False
        self.phase = "resolve"

    @property
    def transport(self) -> paramiko.Transport:
        return self._transport

    def open(self, target: Target, deadline: Deadline) -> None:
        """Connect and log in. Raises Failure; `close` is the caller's in any case."""
        if target.jump is None:
            sock: Any = self._connect(target, deadline)
        else:
            self.open(target.jump, deadline)
            sock = self._through(target, deadline)
        self._transport = self._log_in(target, sock, deadline)

    def cut(self) -> None:
        """From another thread: end whatever waits on the network, at once."""
        self.timed_out = True
        for sock in self._sockets:
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue  # closed meanwhile

    def close(self) -> None:
        """Close everything, newest first. Safe to call twice."""
        while self._closers:
            self._closers.pop()()

    def open_shell_channel(self, deadline: Deadline) -> paramiko.Channel:
        """A channel on which /bin/sh reads commands, whatever the login shell. Raises Failure."""
        self.phase = "channel"
        try:
            channel = self.transport.open_session(timeout=deadline.left(_CHANNEL_SECONDS))
            channel.settimeout(deadline.left())
            # Understood alike by sh, bash, zsh, csh and fish.
            channel.exec_command("exec /bin/sh -s")
        except (paramiko.SSHException, OSError, EOFError) as error:
            status = Status.TIMEOUT if self.timed_out else Status.CHANNEL
            raise Failure(
                status, self.phase, f"The host let us in but opened no session: {_said(error)}."
            ) from None
        self.phase = "command"
        return channel

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
        self._sockets.append(sock)
        self._closers.append(sock.close)
        return sock

    def _through(self, target: Target, deadline: Deadline) -> paramiko.Channel:
        self.phase, address = "jump", target.address
        try:
            channel = self.transport.open_channel(
                "direct-tcpip",
                (address.host, address.port),
                ("127.0.0.1", 0),
                timeout=deadline.left(_JUMP_SECONDS),
            )
        except (paramiko.SSHException, OSError, EOFError) as error:
            raise Failure(
                Status.TIMEOUT if self.timed_out else Status.UNREACHABLE,
                self.phase,
                f"The jump host cannot reach {address}: {_said(error)}.",
            ) from None
        self._closers.append(channel.close)
        return channel

    def _log_in(self, target: Target, sock: Any, deadline: Deadline) -> paramiko.Transport:
        self.phase = "handshake"
        try:
            connection = PinnedConnection(target, sock=sock, deadline=deadline)
        except (OSError, paramiko.SSHException):
            raise Failure(
                Status.AUTH,
                "key",
                f"The key {target.key_path.name} cannot be read; `manage.py init` creates it.",
            ) from None
        self._closers.append(lambda: _close(connection))
        try:
            connection.open()
        except (paramiko.SSHException, OSError, EOFError, ValueError) as error:
            raise self._failure(target, connection.transports, error) from None
        return connection.transport

    def _failure(
        self, target: Target, transports: list[paramiko.Transport], error: Exception
    ) -> Failure:
        where = target.address
        transport = transports[0] if transports else None
        if isinstance(error, _UnknownKey):
            return Failure(
                Status.HOSTKEY_UNKNOWN,
                "hostkey",
                f"The host key of {where} is not accepted yet; nothing was logged in.",
                (_line(error.key),),
                where,
            )
        if isinstance(error, paramiko.BadHostKeyException):
            return Failure(
                Status.HOSTKEY_CHANGED,
                "hostkey",
                f"{where} shows another host key than the accepted one; nothing was logged in.",
                (_line(error.key),),
                where,
            )
        if transport is None or not transport.initial_kex_done:
            if self.timed_out:
                return Failure(
                    Status.TIMEOUT, "handshake", f"{where} accepts connections but says nothing."
                )
            return Failure(
                Status.BANNER, "handshake", f"{where} does not speak SSH properly: {_said(error)}."
            )
        if self.timed_out:
            return Failure(Status.TIMEOUT, "auth", f"{where} did not finish the login in time.")
        return Failure(Status.AUTH, "auth", _refusal(target, transport, error))


@contextmanager
def limited(chain: Chain, deadline: Deadline) -> Iterator[None]:
    """Cut the chain when the deadline comes, whatever phase hangs."""
    timer = threading.Timer(deadline.left(), chain.cut)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _refusal(target: Target, transport: paramiko.Transport, error: Exception) -> str:
    address = target.address
    banner = transport.get_banner() or b""
    said = printable(" ".join(banner.decode(errors="replace").split()), 300)
    if not isinstance(error, paramiko.AuthenticationException):
        said = said or _said(error)
    quoted = f" It says: {said}" if said else ""
    return f"{address} does not let {address.user} in with the {target.key_path.name} key.{quoted}"


def _close(connection: PinnedConnection) -> None:
    # A failed login leaves its transport's thread running; it ends here in any case.
    for transport in connection.transports:
        transport.close()
    connection.client.close()


def _configuration() -> fabric.Config:
    """Fabric's defaults alone: no file of the system, the user or OpenSSH is read."""
    return fabric.Config(ssh_config=SSHConfig(), lazy=True, overrides={"load_ssh_configs": False})


def _line(key: paramiko.PKey) -> str:
    return f"{key.get_name()} {key.get_base64()}"


def _said(error: BaseException) -> str:
    text = str(error) or type(error).__name__
    if isinstance(error, OSError) and error.strerror:
        text = error.strerror
    return printable(" ".join(text.split()), 200).rstrip(".")
