"""A kept shell: one connection, asked again and again."""

from __future__ import annotations

import paramiko

from monitoring.naming import printable
from monitoring.ssh.connecting import Chain, Failure
from monitoring.ssh.limits import Deadline
from monitoring.ssh.running import CLOSED, PIECE, as_failures, send, too_big
from monitoring.ssh.values import Result, Status, Target

# Besides the answer itself: what came unasked between two questions, and the wrapping.
_SURPLUS = 1 << 20


class Shell:
    """One kept connection with one long-lived remote sh; for one thread at a time.

    It is opened by the first question and after every failure anew. Never keep one across a fork.
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
        """Send one line and read to the marker (stderr is merged). Never raises for the host;
        takes `deadline` seconds and a moment at most.
        """
        until = Deadline(deadline)
        try:
            answer = self._ask(line, end_marker, until, max_bytes)
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

    def _ask(self, line: str, end_marker: bytes, until: Deadline, max_bytes: int) -> Result:
        text = f"{line}\n"
        if not self.is_open:
            self.close()
            self._chain = Chain()
        chain = self._chain
        assert chain is not None  # noqa: S101  for the type checker
        with chain.limited_to(until):
            if self._channel is None:
                chain.open(self.target, until)
                self._channel = chain.open_shell_channel()
                self._channel.set_combine_stderr(True)
                text = f"exec 2>&1\n{self._preamble}\n{text}"
            chain.allow(max_bytes + _SURPLUS)
            with as_failures(chain):
                send(self._channel, text.encode())
                return _read(chain, self._channel, end_marker, until, max_bytes)


def _read(
    chain: Chain, channel: paramiko.Channel, end_marker: bytes, until: Deadline, max_bytes: int
) -> Result:
    answer = bytearray()
    while piece := channel.recv(PIECE):
        searched_from = max(0, len(answer) - len(end_marker))
        answer += piece
        if answer.find(end_marker, searched_from) >= 0:
            return Result(Status.OK, stdout=bytes(answer), phase="command", elapsed=until.elapsed)
        if len(answer) > max_bytes:
            cut = bytes(answer[:max_bytes])
            return _broken(Status.TOO_BIG, too_big(max_bytes), until, cut)
    if chain.timed_out:
        raise TimeoutError
    if chain.got_too_much:
        return _broken(Status.TOO_BIG, too_big(max_bytes), until, bytes(answer))
    return _broken(Status.CLOSED, CLOSED + _last_words(answer), until, bytes(answer))


def _broken(status: Status, reason: str, until: Deadline, answer: bytes) -> Result:
    return Result(status, None, answer, b"", True, "command", until.elapsed, reason)


def _last_words(answer: bytearray) -> str:
    said = " ".join(answer[-1000:].decode(errors="replace").split())
    return f" It says: {printable(said, 200)}" if said else ""
