"""People at terminals: the OpenSSH client on a pseudo-terminal whose other side the test reads."""

import grp
import os
import pty
import select
import stat
import subprocess
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from tests.lab.errors import LabError

# Tells its name, then becomes the shell that a person would get.
LOGIN = 'tty; exec "$SHELL" -i'


def terminals_belong_to_group_tty() -> bool:
    """Whether /dev/pts is mounted as usual, with gid=tty; else only root can make it so."""
    master, slave = pty.openpty()
    try:
        return os.fstat(slave).st_gid == grp.getgrnam("tty").gr_gid
    finally:
        os.close(master)
        os.close(slave)


class Terminal:
    """A person's login with a terminal, such as pts/3, and what the person sees on it."""

    def __init__(self, ssh: Sequence[str], *, devices: Path) -> None:
        self._master, slave = pty.openpty()
        self._seen = bytearray()
        self._read = 0
        self._arrived = threading.Condition()
        self._closed = False
        try:
            self._client = subprocess.Popen(
                [*ssh, LOGIN], stdin=slave, stdout=slave, stderr=slave, start_new_session=True
            )
        finally:
            os.close(slave)
        self._reader = threading.Thread(target=self._collect, daemon=True, name="lab-terminal")
        self._reader.start()
        self.terminal = self._terminal_name()
        self.device = devices / self.terminal

    def _collect(self) -> None:
        while not self._closed:
            if not select.select([self._master], [], [], 0.2)[0]:
                continue
            try:
                data = os.read(self._master, 65536)
            except OSError:
                # The client has ended, and with it the other side.
                return
            with self._arrived:
                self._seen += data
                self._arrived.notify_all()

    def _terminal_name(self) -> str:
        try:
            said = self.wait_for("\n", seconds=15)
        except LabError:
            self._hang_up()
            raise
        name = said.partition("\n")[0].strip().removeprefix("/dev/")
        if not name.startswith("pts/"):
            self._hang_up()
            raise LabError(f"no terminal: {said + self.read_output(1)}")
        return name

    def read_output(self, timeout: float = 1) -> str:
        """What has appeared since the last look: waits up to timeout for something, then for quiet.

        Empty when nothing appeared.
        """
        with self._arrived:
            self._arrived.wait_for(lambda: len(self._seen) > self._read, timeout)
            while self._arrived.wait(0.1):
                pass
            return self._take(len(self._seen))

    def wait_for(self, text: str, *, seconds: float = 10) -> str:
        """What has appeared up to and including the text. LabError when it does not come."""
        wanted = text.encode()
        with self._arrived:
            if not self._arrived.wait_for(lambda: self._find(wanted) >= 0, seconds):
                seen = self._seen[self._read :].decode(errors="replace")
                raise LabError(f"{text!r} did not appear within {seconds:g} s, only {seen!r}")
            return self._take(self._find(wanted) + len(wanted))

    def _find(self, wanted: bytes) -> int:
        return self._seen.find(wanted, self._read)

    def _take(self, end: int) -> str:
        text = self._seen[self._read : end].decode(errors="replace")
        self._read = end
        return text

    def type(self, text: str) -> None:
        """Press these keys; "\\r" is Enter, "\\x13" Ctrl-S."""
        os.write(self._master, text.encode())

    def mesg(self, allowed: bool) -> None:
        """Allow or forbid others to write here, as mesg(1) does."""
        mode = stat.S_IMODE(self.device.stat().st_mode)
        self.device.chmod(mode | stat.S_IWGRP if allowed else mode & ~stat.S_IWGRP)

    @property
    def is_open(self) -> bool:
        return self._client.poll() is None

    def close(self) -> None:
        """Log out by hanging up, and wait a moment for the host to notice."""
        if self._closed:
            return
        self._hang_up()
        # A host that is stalled keeps the device, and one that has ended lost it with all others.
        deadline = time.monotonic() + 2
        with suppress(OSError):
            while self.device.exists() and time.monotonic() < deadline:
                time.sleep(0.01)

    def _hang_up(self) -> None:
        self._closed = True
        self._client.terminate()
        try:
            self._client.wait(5)
        except subprocess.TimeoutExpired:
            self._client.kill()
            self._client.wait()
        self._reader.join()
        os.close(self._master)
