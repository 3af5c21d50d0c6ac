"""Processes of lab hosts: programs that only sleep, and who belongs to a host."""

import os
import platform
import signal
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from tests.lab.errors import LabError

# for (;;) pause();
SLEEP_CODE = {
    "x86_64": (62, bytes.fromhex("b822000000 0f05 ebf7")),
    # ppoll(0, 0, 0, 0)
    "aarch64": (
        183,
        bytes.fromhex("000080d2 010080d2 020080d2 030080d2 290980d2 e80309aa 010000d4 f9ffff17"),
    ),
}


def sleeper() -> bytes:
    """An executable that does nothing until it is killed, whatever its arguments.

    A GPU process of the lab needs any command line and environment that a test asks for; no
    ordinary program accepts all of them and sleeps, so this one is made here, byte by byte.
    """
    machine, code = SLEEP_CODE[platform.machine()]
    start, headers = 0x400000, 64 + 56
    size = headers + len(code)
    ident = b"\x7fELF" + bytes([2, 1, 1]) + bytes(9)
    entry = start + headers
    header = struct.pack("<HHIQQQIHHHHHH", 2, machine, 1, entry, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    segment = struct.pack("<IIQQQQQQ", 1, 5, 0, start, start, size, size, 0x1000)
    return ident + header + segment + code


def wait_until(condition: Callable[[], object], what: str, seconds: float = 10) -> None:
    """Raises LabError when the condition does not come true in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise LabError(f"waited {seconds:g} s in vain until {what}")
        time.sleep(0.005)


def all_pids() -> list[int]:
    return [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]  # noqa: PTH208


def read_link(pid: int, name: str) -> str | None:
    try:
        return os.readlink(f"/proc/{pid}/{name}")  # noqa: PTH115
    except OSError:
        return None


def pids_in_mount_namespace(name: str) -> set[int]:
    """name as /proc/PID/ns/mnt shows it."""
    return {pid for pid in all_pids() if read_link(pid, "ns/mnt") == name}


def pids_with_environment(part: bytes) -> set[int]:
    """Own processes whose environment, as they were started, contains these bytes."""
    found = set()
    for pid in all_pids():
        # Other people's processes cannot be looked into, and ended ones are gone.
        with suppress(OSError):
            if part in Path(f"/proc/{pid}/environ").read_bytes():
                found.add(pid)
    return found


def _stat(pid: int) -> list[str]:
    """State and all that follows the command's name in /proc/PID/stat; empty when it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return []


def command_name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text(errors="replace").strip()
    except OSError:
        return ""


def is_alive(pid: int) -> bool:
    """Neither gone nor waiting for its parent to notice its end."""
    state = _stat(pid)
    return bool(state) and state[0] not in "ZX"


def descendants(roots: Iterable[int]) -> set[int]:
    """The given processes and all that stem from them."""
    children: dict[int, list[int]] = {}
    for pid in all_pids():
        if fields := _stat(pid):
            children.setdefault(int(fields[1]), []).append(pid)
    found: set[int] = set()
    todo = list(roots)
    while todo:
        pid = todo.pop()
        if pid not in found:
            found.add(pid)
            todo += children.get(pid, [])
    return found


def send(pids: Iterable[int], number: signal.Signals) -> None:
    """Those that have ended meanwhile are passed over."""
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue


class LabProcess:
    """A real process on a lab host. Its end is noticed whoever ends it."""

    def __init__(
        self, popen: "subprocess.Popen[bytes]", *, user: str, on_end: Callable[[int], None]
    ) -> None:
        self._popen = popen
        self._on_end = on_end
        self.pid = popen.pid
        self.user = user
        # A process that is not waited for stays as a zombie, which no real host would show.
        self._reaper = threading.Thread(target=self._reap, daemon=True, name=f"lab-{popen.pid}")
        self._reaper.start()

    def _reap(self) -> None:
        self._popen.wait()
        self._on_end(self.pid)

    @property
    def is_running(self) -> bool:
        return self._popen.returncode is None

    @property
    def ended_by(self) -> signal.Signals | None:
        """The signal that ended it; None while it runs or when it ended by itself."""
        status = self._popen.returncode
        return signal.Signals(-status) if status is not None and status < 0 else None

    def end(self) -> None:
        """Kill it, if it still runs, and wait until nvidia-smi has forgotten it too."""
        if self.is_running:
            self._popen.kill()
        self._reaper.join(10)

    def wait(self, seconds: float = 10) -> bool:
        """Wait for its end, whoever brings it. False: it still runs."""
        self._reaper.join(seconds)
        return not self._reaper.is_alive()
