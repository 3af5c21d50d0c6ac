"""TCP connections with limits: resolving, connecting, and noticing a dead peer."""

from __future__ import annotations

import contextlib
import ipaddress
import queue
import socket
import threading

import paramiko

from monitoring.ssh.limits import Deadline
from monitoring.ssh.values import Address

CONNECT_SECONDS = 5.0
_DEAD_PEER_MS = 10_000
# An idle transport wakes this often; the library's own 0.1 s costs 4 % of a core at 200 hosts.
_PATIENCE_SECONDS = 2.0
_PIECE = 65_536
# Greeting, key exchange and login take some kilobytes; twice that for a host behind a jump host.
LOGIN_BYTES = 512 * 1024


class PatientSocket(socket.socket):
    """A socket whose reads wait up to two seconds, whose close wakes who waits, and that ends when
    the other side sends more than it was allowed.
    """

    allowance = LOGIN_BYTES

    @property
    def is_used_up(self) -> bool:
        return self.allowance <= 0

    def settimeout(self, value: float | None) -> None:
        super().settimeout(None if value is None else max(value, _PATIENCE_SECONDS))

    def recv(self, size: int, flags: int = 0) -> bytes:
        # A packet may claim to be 4 GiB long; the memory for it would be taken at once.
        piece = super().recv(min(size, _PIECE), flags) if self.allowance > 0 else b""
        self.allowance -= len(piece)
        return piece

    def hang_up(self) -> None:
        """Wake who waits on it, from any thread; whoever uses it meets its end."""
        with contextlib.suppress(OSError):  # it may not be connected any more
            self.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self.hang_up()
        super().close()


class PatientChannel:
    """A channel through a jump host in the place of a socket; it wakes as rarely as one."""

    def __init__(self, channel: paramiko.Channel) -> None:
        self._channel = channel
        self.send, self.recv, self.close = channel.send, channel.recv, channel.close

    def settimeout(self, value: float | None) -> None:
        self._channel.settimeout(None if value is None else max(value, _PATIENCE_SECONDS))

    @property
    def _closed(self) -> bool:  # the library asks its sockets for this
        return self._channel.closed


class NameUnknown(OSError):
    """The host's name has no address, or nobody said so in time."""


def connect(address: Address, deadline: Deadline) -> PatientSocket:
    """Connect by TCP. Raises NameUnknown, ConnectionRefusedError or OSError."""
    problem: OSError = NameUnknown(f"no address for {address.host}")
    for family, place in _resolve(address, deadline):
        plain = socket.socket(family, socket.SOCK_STREAM)
        try:
            plain.settimeout(deadline.left(CONNECT_SECONDS))
            plain.connect(place)
        except OSError as error:
            plain.close()
            problem = error
        else:
            return _prepared(plain)
    raise problem


def _prepared(plain: socket.socket) -> PatientSocket:
    sock = PatientSocket(fileno=plain.detach())
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _DEAD_PEER_MS)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 10)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 5)
    sock.settimeout(_PATIENCE_SECONDS)
    return sock


def _resolve(address: Address, deadline: Deadline) -> list[tuple[int, tuple[object, ...]]]:
    try:
        ip = ipaddress.ip_address(address.host)
    except ValueError:
        return _looked_up(address, deadline)
    family = socket.AF_INET if ip.version == 4 else socket.AF_INET6
    return [(family, (address.host, address.port))]


def _looked_up(address: Address, deadline: Deadline) -> list[tuple[int, tuple[object, ...]]]:
    """getaddrinfo has no limit of its own: ask in a thread, and do not wait for it for ever."""
    answers: queue.Queue[list[tuple[int, tuple[object, ...]]] | OSError] = queue.Queue()

    def ask() -> None:
        try:
            found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
        except OSError as error:
            answers.put(error)
        else:
            answers.put([(int(family), place) for family, _, _, _, place in found])

    threading.Thread(target=ask, name="resolve", daemon=True).start()
    try:
        answer = answers.get(timeout=deadline.left(CONNECT_SECONDS))
    except queue.Empty:
        raise NameUnknown(f"nobody answered what address {address.host} has") from None
    if isinstance(answer, OSError):
        raise NameUnknown(str(answer)) from answer
    return answer
