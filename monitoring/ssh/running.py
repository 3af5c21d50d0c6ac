"""Using a connection: one script once, or a kept shell asked again and again."""

from __future__ import annotations

import shlex
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import paramiko

from monitoring.ssh.connecting import Chain, Failure, limited
from monitoring.ssh.sockets import Deadline
from monitoring.ssh.values import Address, Result, Status, Target

_PIECE = 65_536
# After the exit status the rest of the output is on its way; a child that holds it is not
# waited for.
_GRACE_SECONDS = 0.3


def run(
    target: Target,
    script: str,
    *,
    arguments: Sequence[str] = (),
    deadline: float = 15.0,
    max_bytes: int = 1 << 20,
) -> Result:
    """Run a constant script in /bin/sh on the host, over a connection of its own.

    The script comes on stdin, so every command in it needs `</dev/null`; `arguments` are its
    "$1", "$2" …. Never raises for what hosts do; takes `deadline` seconds and a moment at most.
    """
    text = f"set -- {shlex.join(arguments)}\n{script}\n"
    if "\0" in text:
        raise ValueError("A script cannot hold NUL characters.")
    until, chain = Deadline(deadline), Chain()
    try:
        with limited(chain, until):
            chain.open(target, until)
            channel = chain.open_shell_channel(until)
            return _collect(chain, channel, text.encode(), until, max_bytes)
    except Failure as failure:
        return failure.result(until)
    finally:
        chain.close()


def fetch_host_keys(
    address: Address, *, jump: Target | None = None, deadline: float = 10.0
) -> Result:
    """Ask for the host's key, without logging in; `seen_keys` has it.

    The status is `hostkey_unknown` when it came.
    """
    target = Target(address, pins=(), key_path=Path(), jump=jump)
    until, chain = Deadline(deadline), Chain()
    try:
        with limited(chain, until):
            chain.open(target, until)
    except Failure as failure:
        return failure.result(until)
    finally:
        chain.close()
    raise AssertionError("a host without a pin cannot be logged in to")


class Shell:
    """One kept connection with one long-lived remote sh; for one thread at a time.

    It is opened by the first question and after every failure anew.
    """

    def __init__(self, target: Target, *, preamble: str) -> None:
        self.target = target
        self._preamble = preamble
        self._chain: Chain | None = None
        self._channel: paramiko.Channel | None = None

    @property
    def is_open(self) -> bool:
        return self._channel is not None and not self._channel.closed

    def ask(
        self, line: str, *, end_marker: bytes, deadline: float, max_bytes: int = 1 << 20
    ) -> Result:
        """Send one line and read to the marker (stderr is merged). Never raises for the host."""
        until = Deadline(deadline)
        try:
            channel = self._channel if self.is_open else self._open(until)
            assert channel is not None  # noqa: S101  for the type checker
            answer = self._converse(channel, line, end_marker, until, max_bytes)
        except Failure as failure:
            answer = failure.result(until)
        if not answer.ok:
            self.close()
        return answer

    def cut(self) -> None:
        """From another thread: have a question that waits fail soon. `close` is the asker's."""
        if (chain := self._chain) is not None:
            chain.cut()

    def close(self) -> None:
        """Close the connection; the remote shell ends with it."""
        chain, self._chain, self._channel = self._chain, None, None
        if chain is not None:
            chain.close()

    def _open(self, until: Deadline) -> paramiko.Channel:
        self.close()
        self._chain = chain = Chain()
        with limited(chain, until):
            chain.open(self.target, until)
            channel = chain.open_shell_channel(until)
            _send(chain, channel, f"exec 2>&1\n{self._preamble}\n".encode(), until)
        self._channel = channel
        return channel

    def _converse(
        self,
        channel: paramiko.Channel,
        line: str,
        end_marker: bytes,
        until: Deadline,
        max_bytes: int,
    ) -> Result:
        assert self._chain is not None  # noqa: S101  for the type checker
        _send(self._chain, channel, f"{line}\n".encode(), until)
        answer = bytearray()
        while True:
            piece = _receive(channel, until)
            searched_from = max(0, len(answer) - len(end_marker))
            answer += piece
            if answer.find(end_marker, searched_from) >= 0:
                return Result(
                    Status.OK, stdout=bytes(answer), phase="command", elapsed=until.elapsed
                )
            if len(answer) > max_bytes:
                return _too_big(bytes(answer[:max_bytes]), b"", until, max_bytes)


def _receive(channel: paramiko.Channel, until: Deadline) -> bytes:
    if until.is_over:
        raise Failure(Status.TIMEOUT, "command", _TOO_SLOW)
    channel.settimeout(until.left())
    try:
        piece = channel.recv(_PIECE)
    except TimeoutError:
        raise Failure(Status.TIMEOUT, "command", _TOO_SLOW) from None
    if not piece:
        raise Failure(Status.CLOSED, "command", "The host closed the connection.")
    return piece


def _send(chain: Chain, channel: paramiko.Channel, text: bytes, until: Deadline) -> None:
    channel.settimeout(until.left())
    try:
        channel.sendall(text)
    except TimeoutError:
        raise Failure(Status.TIMEOUT, "command", _TOO_SLOW) from None
    except OSError:
        status = Status.TIMEOUT if chain.timed_out else Status.CLOSED
        raise Failure(status, "command", "The host closed the connection.") from None


def _collect(
    chain: Chain, channel: paramiko.Channel, text: bytes, until: Deadline, max_bytes: int
) -> Result:
    """Send the script, then read both streams to the exit status, the cap or the deadline."""
    _send(chain, channel, text, until)
    channel.shutdown_write()
    news = threading.Event()
    channel.in_buffer.set_event(news)
    channel.in_stderr_buffer.set_event(news)
    out, err = bytearray(), bytearray()
    ended_at: float | None = None
    while True:
        if channel.recv_ready():
            out += channel.recv(_PIECE)
        if channel.recv_stderr_ready():
            err += channel.recv_stderr(_PIECE)
        if len(out) + len(err) > max_bytes:
            return _too_big(bytes(out[:max_bytes]), bytes(err[:max_bytes]), until, max_bytes)
        if channel.recv_ready() or channel.recv_stderr_ready():
            continue
        if channel.exit_status_ready():
            ended_at = ended_at or time.monotonic()
            is_all = channel.eof_received or channel.closed
            if is_all or time.monotonic() - ended_at > _GRACE_SECONDS:
                return _ended(chain, channel, bytes(out), bytes(err), until)
        elif until.is_over or channel.closed:
            return _broken(chain, bytes(out), bytes(err), until)
        news.wait(0.02 if ended_at else 0.05)
        # An event that stays set (end of file) would make this loop spin.
        if not (channel.recv_ready() or channel.recv_stderr_ready()):
            news.clear()


def _ended(
    chain: Chain, channel: paramiko.Channel, out: bytes, err: bytes, until: Deadline
) -> Result:
    code = channel.recv_exit_status()
    if code == -1:  # the channel went away without one
        return _broken(chain, out, err, until)
    return Result(Status.OK, code, out, err, False, "command", until.elapsed)


def _broken(chain: Chain, out: bytes, err: bytes, until: Deadline) -> Result:
    if until.is_over or chain.timed_out:
        return Result(Status.TIMEOUT, None, out, err, True, "command", until.elapsed, _TOO_SLOW)
    return Result(Status.CLOSED, None, out, err, True, "command", until.elapsed, _CLOSED_EARLY)


def _too_big(out: bytes, err: bytes, until: Deadline, max_bytes: int) -> Result:
    reason = f"The host's answer is larger than {max_bytes // 1024} KiB; it was cut off."
    return Result(Status.TOO_BIG, None, out, err, True, "command", until.elapsed, reason)


_TOO_SLOW = "The host did not answer in time."
_CLOSED_EARLY = "The host closed the connection before the command ended."
