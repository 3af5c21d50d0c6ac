"""One script, over a connection of its own."""

from __future__ import annotations

import secrets
import shlex
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import paramiko

from monitoring.naming import printable
from monitoring.ssh.connecting import Chain, Failure
from monitoring.ssh.limits import Deadline
from monitoring.ssh.values import Address, Result, Status, Target

PIECE = 65_536
# Besides the answer itself: what was under way when the cap was reached, and the wrapping.
_SURPLUS = 4 << 20
# What the account's start-up files may print in front of it.
_NOISE_BYTES = 65_536
# After the exit status the rest of the output is on its way; a child that holds it is not
# waited for.
_GRACE_SECONDS = 0.3
TOO_SLOW = "The host did not answer in time."
CLOSED = "The host closed the connection before the command ended."


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
    "$1", "$2" …. What the account's start-up files print is left out. Never raises for what hosts
    do; takes `deadline` seconds and a moment at most. The status is `ok` whatever the exit code is;
    the phase is "command" if and only if the script may have run.
    """
    frame = secrets.token_hex(16)
    text = (
        f"echo {frame}; echo {frame} >&2\n"
        # Dashes are for `set`; the arguments may begin with some of their own.
        f"set -- {shlex.join(arguments)}\n{script}\n"
    )
    if "\0" in text:
        raise ValueError("A script cannot hold NUL characters.")
    until, chain = Deadline(deadline), Chain()
    try:
        with chain.limited_to(until):
            chain.open(target, until)
            channel = chain.open_shell_channel()
            chain.allow(max_bytes + _SURPLUS)
            answer = _Answer(chain, channel, until, max_bytes + _NOISE_BYTES)
            return _capped(_without_noise(answer.read(text.encode()), frame), max_bytes)
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
        with chain.limited_to(until):
            chain.open(target, until)
    except Failure as failure:
        return failure.result(until)
    finally:
        chain.close()
    raise AssertionError("a host without a pin cannot be logged in to")


@contextmanager
def as_failures(chain: Chain) -> Iterator[None]:
    """The library's ways to say that a connection is gone, as one Failure."""
    try:
        yield
    except TimeoutError:
        raise Failure(Status.TIMEOUT, "command", TOO_SLOW) from None
    except (paramiko.SSHException, OSError, EOFError):
        if chain.timed_out:
            raise Failure(Status.TIMEOUT, "command", TOO_SLOW) from None
        raise Failure(Status.CLOSED, "command", CLOSED) from None


def send(channel: paramiko.Channel, text: bytes) -> None:
    """Send it all. Where the other end has ended already, its last words are left to be read."""
    try:
        channel.sendall(text)
    except OSError:
        if not channel.closed:
            raise


def too_big(max_bytes: int) -> str:
    return f"The host's answer is larger than {max_bytes // 1024} KiB; it was cut off."


class _Answer:
    """Both streams of one script, read to its exit status, the cap or the deadline."""

    def __init__(
        self, chain: Chain, channel: paramiko.Channel, until: Deadline, max_bytes: int
    ) -> None:
        self._chain, self._channel = chain, channel
        self._until, self._max_bytes = until, max_bytes
        self._out, self._err = bytearray(), bytearray()

    def read(self, text: bytes) -> Result:
        try:
            with as_failures(self._chain):
                send(self._channel, text)
                self._channel.shutdown_write()
                return self._collect()
        except Failure as failure:
            return self._result(failure.status, failure.reason)

    def _collect(self) -> Result:
        channel, news = self._channel, threading.Event()
        channel.in_buffer.set_event(news)
        channel.in_stderr_buffer.set_event(news)
        ended_at: float | None = None
        while True:
            self._take()
            if len(self._out) + len(self._err) > self._max_bytes:
                return self._result(Status.TOO_BIG)
            if self._has_more():
                continue
            if channel.exit_status_ready():
                ended_at = ended_at or time.monotonic()
                is_all = channel.eof_received or channel.closed
                if is_all or time.monotonic() - ended_at > _GRACE_SECONDS:
                    return self._ended()
            elif self._until.is_over:
                return self._result(Status.TIMEOUT, TOO_SLOW)
            news.wait(0.02 if ended_at else 0.05)
            # An event that stays set (end of file) would make this loop spin.
            if not self._has_more():
                news.clear()

    def _has_more(self) -> bool:
        return self._channel.recv_ready() or self._channel.recv_stderr_ready()

    def _take(self) -> None:
        if self._channel.recv_ready():
            self._out += self._channel.recv(PIECE)
        if self._channel.recv_stderr_ready():
            self._err += self._channel.recv_stderr(PIECE)

    def _ended(self) -> Result:
        code = self._channel.recv_exit_status()
        if code != -1:
            return self._result(Status.OK, code=code)
        # The channel went away without one.
        if self._until.is_over or self._chain.timed_out:
            return self._result(Status.TIMEOUT, TOO_SLOW)
        if self._chain.got_too_much:
            return self._result(Status.TOO_BIG)
        return self._result(Status.CLOSED, CLOSED)

    def _result(self, status: Status, reason: str = "", code: int | None = None) -> Result:
        out, err, is_cut = bytes(self._out), bytes(self._err), status is not Status.OK
        return Result(status, code, out, err, is_cut, "command", self._until.elapsed, reason)


def _capped(answer: Result, max_bytes: int) -> Result:
    out, err = answer.stdout, answer.stderr
    if answer.status is not Status.TOO_BIG and len(out) + len(err) <= max_bytes:
        return answer
    return replace(
        answer,
        status=Status.TOO_BIG,
        exit_code=None,
        stdout=out[:max_bytes],
        stderr=err[:max_bytes],
        truncated=True,
        reason=too_big(max_bytes),
    )


def _without_noise(answer: Result, frame: str) -> Result:
    """The answer from where our shell began; one that never began is a failure of its own."""
    mark = f"{frame}\n".encode()
    noise, found, out = answer.stdout.partition(mark)
    err = answer.stderr.partition(mark)[2]
    if found:
        return replace(answer, stdout=out, stderr=err)
    if not answer.ok:
        return replace(answer, stdout=b"", stderr=b"")
    said = (noise + b" " + answer.stderr)[-1000:].decode(errors="replace")
    quoted = f" It says: {printable(' '.join(said.split()), 200)}" if said.strip() else ""
    reason = f"The account runs something else than a shell, or none at all.{quoted}"
    return replace(answer, status=Status.CHANNEL, exit_code=None, phase="channel", reason=reason)
