"""The machine below a lab host: its namespaces, its sshd, and what runs on it."""

import os
import shutil
import signal
import subprocess
from pathlib import Path

from tests.lab.errors import LabError, LabNeedsRoot
from tests.lab.processes import (
    LabProcess,
    command_name,
    descendants,
    is_alive,
    pids_in_mount_namespace,
    pids_with_environment,
    read_link,
    send,
    wait_until,
)
from tests.lab.sshd import SSHD

HERE = Path(__file__).parent


class Machine:
    """Namespaces (with root) and an sshd that listens on one address.

    Its directory holds sshd_config and, with root, etc/ for the files mounted over the machine's.
    """

    def __init__(self, *, name: str, directory: Path, homes: Path | None, utmp: bool) -> None:
        self.name = name
        self.directory = directory
        self.isolated = os.geteuid() == 0
        self._homes, self._utmp = homes, utmp
        self._holder: subprocess.Popen[bytes] | None = None
        self._listener: subprocess.Popen[bytes] | None = None
        self._left_sessions: set[int] = set()
        self._processes: list[LabProcess] = []
        self._log_start = 0

    # Namespaces

    def _hold(self) -> None:
        for needed in ("/etc/machine-id", "/proc/sys/kernel/random/boot_id"):
            if not Path(needed).exists():
                raise LabError(f"this machine has no {needed} that a lab host could replace")
        arguments = [self.name, str(self.directory), str(self._homes or ""), str(int(self._utmp))]
        unshare = ["unshare", "--mount", "--uts", "--propagation", "private"]
        with (self.directory / "holder.log").open("wb") as log:
            self._holder = subprocess.Popen(
                [*unshare, "sh", str(HERE / "holder.sh"), *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd="/",
                start_new_session=True,
            )
        assert self._holder.stdout is not None
        with self._holder.stdout as said:
            if said.readline() != b"ready\n":
                why = (self.directory / "holder.log").read_text(errors="replace").strip()
                raise LabError(f"{self.name} could not be furnished: {why}")

    def _namespace(self) -> str | None:
        """The host's mount namespace as /proc names it; None when it has none (any more).

        Never the machine's own: what belongs to this namespace gets killed and emptied.
        """
        theirs = read_link(self._holder.pid, "ns/mnt") if self._holder else None
        return None if theirs == read_link(os.getpid(), "ns/mnt") else theirs

    @property
    def root(self) -> Path:
        """The host's file system, seen from outside. Raises LabNeedsRoot when it has none."""
        if not self.isolated:
            raise LabNeedsRoot(f"{self.name} has no file system of its own without root")
        if self._holder is None or self._namespace() is None:
            raise LabError(f"{self.name} is not up")
        return Path(f"/proc/{self._holder.pid}/root")

    def _inside(self) -> list[str]:
        if self._holder is None:
            return []
        return ["nsenter", f"--target={self._holder.pid}", "--mount", "--uts"]

    def _release(self) -> None:
        """End the host's namespaces, which nothing lives in any more."""
        if self._holder is not None:
            assert self._holder.stdin is not None
            self._holder.kill()
            self._holder.stdin.close()
            self._holder.wait()
            self._holder = None

    def _empty(self, name: str) -> None:
        """Delete what lies in a directory of the host, apart from the lab's own files."""
        root = self.root
        for entry in (root / name).iterdir():
            if Path("/") / entry.relative_to(root) in self.directory.parents:
                continue
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            else:
                entry.unlink()

    def _forget_files(self) -> None:
        """As after a start of the machine: nothing in /tmp and /run, nobody logged in."""
        for name in ("tmp", "var/tmp", "dev/shm", "run/lock", "run/screen", "run/user"):
            self._empty(name)
        if self._utmp:
            (self.root / "run/utmp").write_bytes(b"")

    # The listener and its sessions

    def start(self) -> None:
        """Start the listener."""
        if self._listener is not None:
            raise LabError(f"the listener of {self.name} runs already")
        known = self.log_text(everything=True).count("Server listening")
        command = [SSHD, "-D", "-f", str(self.directory / "sshd_config"), "-E", str(self.log_path)]
        self._listener = subprocess.Popen(
            [*self._inside(), *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
        )
        wait_until(lambda: self._listens(known), f"sshd of {self.name} listens")

    def _listens(self, known: int) -> bool:
        assert self._listener is not None
        if self._listener.poll() is not None:
            self._listener = None
            raise LabError(f"sshd of {self.name} did not start: {self.log_text(everything=True)}")
        return self.log_text(everything=True).count("Server listening") > known

    def stop(self) -> None:
        """Take away the listener: new connections are refused, sessions stay."""
        if self._listener is None:
            return
        self._left_sessions |= self._session_pids()
        self._listener.kill()
        self._listener.wait()
        self._listener = None

    def _other_pids(self) -> set[int]:
        """Processes of the host besides listener and holder."""
        if self.isolated:
            namespace = self._namespace()
            pids = pids_in_mount_namespace(namespace) if namespace else set()
        else:
            roots = {pid for pid in self._left_sessions if is_alive(pid)}
            roots |= {self._listener.pid} if self._listener else set()
            roots |= {process.pid for process in self._processes if process.is_running}
            # The PATH on which they found nvidia-smi marks those that left their session.
            roots |= pids_with_environment(bytes(self.directory / "bin"))
            pids = descendants(roots)
        return pids - {popen.pid for popen in (self._holder, self._listener) if popen}

    def pids(self) -> set[int]:
        """All that runs on the host besides its listener: sessions, jobs, GPU processes.

        Without root: what stems from sessions and `start_process`, unless it hid its origin.
        """
        return {pid for pid in self._other_pids() if is_alive(pid)}

    def _session_pids(self) -> set[int]:
        return {pid for pid in self._other_pids() if command_name(pid).startswith("sshd")}

    def sessions(self) -> set[int]:
        """Process numbers of the sshd processes that serve connections."""
        return {pid for pid in self._session_pids() if is_alive(pid)}

    def stall(self) -> None:
        """Fall silent: listener and sessions stop, connections are neither served nor ended."""
        # The listener first: then nobody is left to begin a new session.
        if self._listener is not None:
            self._listener.send_signal(signal.SIGSTOP)
        send(self._session_pids(), signal.SIGSTOP)

    def resume(self) -> None:
        """Go on after `stall`."""
        send(self._session_pids(), signal.SIGCONT)
        if self._listener is not None:
            self._listener.send_signal(signal.SIGCONT)

    def end_sessions(self) -> None:
        """Close all connections; the listener goes on."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            sessions = self._session_pids()
            send(sessions, number)
            # One that is stopped would not notice SIGTERM.
            send(sessions, signal.SIGCONT)
            try:
                wait_until(lambda: not self.sessions(), f"sessions of {self.name} end", 2)
            except LabError:
                if number == signal.SIGKILL:
                    raise
            else:
                return

    def _kill_all(self) -> None:
        """Kill until nothing is left: a process may have had a child at the last moment."""

        def nothing_left() -> bool:
            pids = self.pids()
            send(pids, signal.SIGKILL)
            return not pids

        wait_until(nothing_left, f"all processes of {self.name} have ended")

    # Log

    @property
    def log_path(self) -> Path:
        return self.directory / "sshd.log"

    def log_text(self, *, everything: bool = False) -> str:
        """What sshd has logged since the start or the last `forget_log`; everything: ever."""
        if not self.log_path.exists():
            return ""
        with self.log_path.open("rb") as log:
            log.seek(0 if everything else self._log_start)
            return log.read().decode(errors="replace")

    def authentication_attempts(self) -> list[str]:
        """Lines of `log_text` that show somebody trying to log in, successfully or not."""
        signs = ("Accepted ", "Failed ", "Postponed ", "authenticating user", "invalid user")
        return [line for line in self.log_text().splitlines() if any(s in line for s in signs)]

    def forget_log(self) -> None:
        self._log_start = self.log_path.stat().st_size
