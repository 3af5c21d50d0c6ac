"""TCP connections with limits: resolving, connecting, and noticing a dead peer."""

from __future__ import annotations

import contextlib
import ipaddress
import queue
import socket
import threading
import time

from monitoring.ssh.values import Address

CONNECT_SECONDS = 5.0
_DEAD_PEER_MS = 10_000
# An idle transport wakes this often; the library's own 0.1 s costs 4 % of a core at 200 hosts.
_PATIENCE_SECONDS = 2.0


class Deadline:
    """A moment on the monotonic clock."""

    def __init__(self, seconds: float) -> None:
        self.began = time.monotonic()
        self.ends = self.began + seconds

    def left(self, at_most: float = 3600.0) -> float:
        """Seconds left, at least a moment, so that it can be given as a time-out."""
        return min(max(self.ends - time.monotonic(), 0.05), at_most)

    @property
    def is_over(self) -> bool:
        return time.monotonic() >= self.ends

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self.began


class PatientSocket(socket.socket):
    """A socket whose reads wait up to two seconds, and whose close wakes who waits."""

    def settimeout(self, value: float | None) -> None:
        super().settimeout(None if value is None else max(value, _PATIENCE_SECONDS))

    def close(self) -> None:
        with contextlib.suppress(OSError):  # it may not be connected any more
            self.shutdown(socket.SHUT_RDWR)
        super().close()


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
