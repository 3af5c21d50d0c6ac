"""Run one django-q2 cluster as the leader of its process group: `python -m … NAME`.

django-q2's processes outlive each other in bad ways: orphans keep taking tasks when the main
process or its sentinel is killed, and a stop signal to all of them at once deadlocks. So the
cluster gets a group of its own, only its main process is told to stop, and when that one ends,
however it ended, the rest of the group is killed. A guard does the same if this leader is killed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from types import FrameType

from tensorhive_site import secrets_file

BASE_DIR = Path(__file__).resolve().parent.parent
# Waits for its standard input to close, which happens when the leader is gone, however it went.
_GUARD = 'read -r word; [ "$word" = done ] || kill -s KILL -- "-$1"'
RESTART_SIGNAL = signal.SIGUSR1


def pid_file(data_dir: Path, cluster: str) -> Path:
    """Where the leader of a cluster writes its process id."""
    return data_dir / "run" / f"{cluster}.pid"


class Leader:
    def __init__(self, cluster: str) -> None:
        self.cluster = cluster
        self.pid_file = pid_file(secrets_file.data_dir_of(dict(os.environ), BASE_DIR), cluster)
        self.is_stopping = False

    def run(self) -> int:
        """Start the cluster, wait for its end, leave nothing of it. Returns an exit status."""
        environment = {**os.environ, "Q_CLUSTER_NAME": self.cluster, "TENSORHIVE_ROLE": "worker"}
        environment.pop("ADMIN_PASSWORD", None)
        self.main = subprocess.Popen(  # noqa: S603  our own command
            [sys.executable, str(BASE_DIR / "manage.py"), "qcluster"],
            env=environment,
            start_new_session=True,
        )
        guard = self._guard()
        signal.signal(signal.SIGTERM, self._stop)
        signal.signal(signal.SIGINT, self._stop)
        signal.signal(RESTART_SIGNAL, self._restart)
        self._write_pid()
        try:
            status = self.main.wait()
        finally:
            self._kill_group()
            self.pid_file.unlink(missing_ok=True)
            guard.communicate(b"done\n")
        # An end that nobody asked for is a failure, so that the process manager starts anew.
        return 0 if self.is_stopping else status or 1

    def _guard(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(  # noqa: S603  a constant script and a number
            ["/bin/sh", "-c", _GUARD, "guard", str(self.main.pid)],
            stdin=subprocess.PIPE,
            start_new_session=True,
        )

    def _write_pid(self) -> None:
        self.pid_file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.pid_file.write_text(f"{os.getpid()}\n")

    def _stop(self, number: int, frame: FrameType | None) -> None:
        """Tell only the main process, which waits for running tasks; a watch is told before."""
        if self.is_stopping:
            return
        self.is_stopping = True
        if self.cluster == "watch":
            subprocess.run(  # noqa: S603  our own command
                [sys.executable, str(BASE_DIR / "manage.py"), "stop_watch"],
                check=False,
                stdout=subprocess.DEVNULL,
                timeout=20,
            )
        self.main.send_signal(signal.SIGTERM)

    def _restart(self, number: int, frame: FrameType | None) -> None:
        """The watchdog found the cluster frozen: such a one ignores every softer signal."""
        self._kill_group()

    def _kill_group(self) -> None:
        try:
            os.killpg(self.main.pid, signal.SIGKILL)
        except ProcessLookupError:
            return  # nothing of it is left


if __name__ == "__main__":
    sys.exit(Leader(sys.argv[1]).run())
