"""Clusters in processes of their own, under the real process manager, on the test's database."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.cache.backends.filebased import FileBasedCache
from django.db import connection
from django_q.brokers import get_broker
from django_q.status import Stat

from tensorhive_site import supervision
from tensorhive_site.run_cluster import leader_of
from tests.site.processes import Process, processes_of
from tests.site.running import environment

PATIENCE = 120.0


def wait_until(holds: Callable[[], Any], what: str, seconds: float = PATIENCE) -> Any:
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        if value := holds():
            return value
        time.sleep(0.1)
    raise AssertionError(f"{what} not within {seconds} s")


class ClusterSite:
    def __init__(
        self, supervisor: subprocess.Popen[bytes], data_dir: Path, names: Sequence[str]
    ) -> None:
        self.supervisor = supervisor
        self.data_dir = data_dir
        self.names = names

    def stat(self, name: str) -> Stat:
        """What the cluster's sentinel says of its processes."""
        return wait_until(lambda: self._stat(name), f"a word of {name}'s sentinel")

    def _stat(self, name: str) -> Stat | None:
        leader = leader_of(self.data_dir, name)
        broker = get_broker(name)
        broker.cache = FileBasedCache(str(self.data_dir / "cache"), {})
        mains = [process.pid for process in self.processes() if process.parent == leader]
        return next((stat for stat in Stat.get_all(broker) if stat.pid in mains), None)

    def processes(self) -> list[Process]:
        return list(processes_of(self.data_dir).values())

    def is_complete(self) -> bool:
        """Whether there are exactly the processes that there should be, each where it belongs."""
        expected = {self.supervisor.pid, *self._programs("watchdog")}
        for name in self.names:
            leader, stat = leader_of(self.data_dir, name), self._stat(name)
            if leader is None or stat is None or stat.status not in ("Idle", "Working"):
                return False
            if len(stat.workers) != settings.CLUSTER_SIZES[name].workers:
                return False
            expected |= {leader, *self._guards(leader)}
            expected |= {stat.pid, stat.sentinel, stat.pusher, stat.monitor, *stat.workers}
        wanted = 2 + sum(6 + settings.CLUSTER_SIZES[name].workers for name in self.names)
        return len(expected) == wanted and expected == {one.pid for one in self.processes()}

    def wait_until_complete(self) -> None:
        wait_until(self.is_complete, "all processes")

    def picture(self) -> str:
        """Processes and logs, for a failure."""
        lines = [f"{one.pid} of {one.parent}: {one.arguments[:5]}" for one in self.processes()]
        logs = [path.read_text()[-3000:] for path in sorted((self.data_dir / "log").iterdir())]
        return "\n".join(lines + logs)

    def _programs(self, word: str) -> set[int]:
        return {one.pid for one in self.processes() if word in one.arguments[-1:]}

    def _guards(self, leader: int) -> set[int]:
        return {
            one.pid for one in self.processes() if one.parent == leader and "guard" in one.arguments
        }


@contextmanager
def running(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch, *names: str, **more: str
) -> Iterator[ClusterSite]:
    """These clusters and the watchdog, as supervisord starts them for `make run`."""
    programs = [one for one in supervision.PROGRAMS if one.name in (*names, "watchdog")]
    monkeypatch.setattr(supervision, "PROGRAMS", programs)
    for folder in ("run", "log"):
        (data_dir / folder).mkdir()
    config = data_dir / "run" / "supervisord.conf"
    config.write_text(supervision.configuration())
    supervisord = str(Path(sys.executable).with_name("supervisord"))
    given = environment(
        data_dir,
        DATABASE_URL=_database_url(),
        SECRET_KEY=settings.SECRET_KEY,
        JWT_SIGNING_KEY=settings.SIMPLE_JWT["SIGNING_KEY"],
        **more,
    )
    with (data_dir / "log" / "output").open("wb") as output:
        supervisor = subprocess.Popen(
            [sys.executable, supervisord, "-n", "-c", str(config)],
            env=given,
            cwd=data_dir,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    site = ClusterSite(supervisor, data_dir, names)
    try:
        yield site
        stop(site)
    except BaseException as error:
        error.add_note(site.picture())
        raise
    finally:
        for left in processes_of(data_dir):  # only after a failure
            os.kill(left, signal.SIGKILL)
        site.supervisor.wait(10)


def stop(site: ClusterSite) -> None:
    """As Ctrl-C or a service manager does; nothing may be left."""
    site.supervisor.send_signal(signal.SIGTERM)
    site.supervisor.wait(PATIENCE)
    assert not processes_of(site.data_dir)


def _database_url() -> str:
    """The test's own database, as the clusters are told of it."""
    values = connection.settings_dict
    if connection.vendor == "sqlite":
        return f"sqlite:///{values['NAME']}"
    return f"postgres://{values['USER']}@{values['HOST']}:{values['PORT']}/{values['NAME']}"
