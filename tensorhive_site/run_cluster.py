"""Run one django-q2 cluster and leave nothing of it: `python -m tensorhive_site.run_cluster NAME`.

django-q2's processes outlive each other in bad ways: orphans keep taking tasks when the main
process or its sentinel is killed, and a stop signal to all of them at once deadlocks. So the
cluster gets a group of its own, only its main process is told to stop, and when that one ends,
however it ended, the rest of the group is killed. A guard does the same if this leader is killed.
"""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import FrameType

from tensorhive_site import processes, secrets_file

BASE_DIR = Path(__file__).resolve().parent.parent
# Its standard input closes when the leader is gone, however it went.
_GUARD = 'read -r word; [ "$word" = done ] || kill -s KILL -- "-$1"'
_STOP_WATCH_SECONDS = 15
# Long enough for whoever only looks at the lock, or is just ending.
_CLAIM_SECONDS = 2
RESTART_SIGNAL = signal.SIGUSR1


def leader_of(data_dir: Path, cluster: str) -> int | None:
    """The process id of the leader that runs the cluster here; None where none runs.

    A leader holds a lock on its file for as long as it lives, so an old number is never believed.
    """
    try:
        with _pid_file(data_dir, cluster).open() as file:
            if _lock(file.fileno(), fcntl.LOCK_SH):
                return None
            text = file.read().strip()
    except FileNotFoundError:
        return None
    return int(text) if text.isdigit() else None


class Leader:
    def __init__(self, cluster: str, data_dir: Path) -> None:
        self.cluster = cluster
        self.is_stopping = False
        self._claim(_pid_file(data_dir, cluster))

    def run(self) -> int:
        """Start the cluster, wait for its end, leave nothing of it. Returns an exit status."""
        self.main = self._start()
        guard = self._guard()
        signal.signal(signal.SIGTERM, self._stop)
        signal.signal(signal.SIGINT, self._stop)
        signal.signal(RESTART_SIGNAL, self._restart)
        try:
            status = self.main.wait()
        finally:
            self._kill_group()
            guard.communicate(b"done\n")
        # An end that nobody asked for is a failure, so that the process manager starts anew.
        return 0 if self.is_stopping else status or 1

    def _claim(self, path: Path) -> None:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.file = path.open("a+")
        ends_at = time.monotonic() + _CLAIM_SECONDS
        while not _lock(self.file.fileno(), fcntl.LOCK_EX):
            if time.monotonic() > ends_at:
                sys.exit(f"The cluster {self.cluster} runs here already.")
            time.sleep(0.05)
        self.file.truncate(0)
        self.file.write(f"{os.getpid()}\n")
        self.file.flush()

    def _start(self) -> subprocess.Popen[bytes]:
        environment = {**os.environ, "Q_CLUSTER_NAME": self.cluster, "TENSORHIVE_ROLE": "worker"}
        return subprocess.Popen(  # noqa: S603  our own command
            [sys.executable, str(BASE_DIR / "manage.py"), "cluster"],
            env=environment,
            start_new_session=True,
        )

    def _guard(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(  # noqa: S603  a constant script and a number
            ["/bin/sh", "-c", _GUARD, "guard", str(self.main.pid)],
            stdin=subprocess.PIPE,
            start_new_session=True,
        )

    def _stop(self, number: int, frame: FrameType | None) -> None:
        """Tell only the main process, which waits for running tasks; a watch is told before."""
        if self.is_stopping:
            return
        self.is_stopping = True
        if self.cluster == "watch":
            self._stop_watch()
        self.main.send_signal(signal.SIGTERM)

    def _stop_watch(self) -> None:
        try:
            subprocess.run(  # noqa: S603  our own command
                [sys.executable, str(BASE_DIR / "manage.py"), "stop_watch"],
                check=False,
                stdout=subprocess.DEVNULL,
                timeout=_STOP_WATCH_SECONDS,
            )
        except subprocess.TimeoutExpired:
            print("stop_watch takes too long; stopping without it", file=sys.stderr)  # noqa: T201

    def _restart(self, number: int, frame: FrameType | None) -> None:
        """The watchdog found the cluster frozen: such a one ignores every softer signal."""
        self._kill_group()

    def _kill_group(self) -> None:
        try:
            os.killpg(self.main.pid, signal.SIGKILL)
        except ProcessLookupError:
            return  # nothing of it is left


def _pid_file(data_dir: Path, cluster: str) -> Path:
    return data_dir / "run" / f"{cluster}.pid"


def _lock(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def main(cluster: str) -> int:
    processes.end_with_parent()
    return Leader(cluster, secrets_file.data_dir()).run()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
