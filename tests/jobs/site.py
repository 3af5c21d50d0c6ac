"""The lab's hosts as rows of the product, and its actions worker run by hand."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable
from typing import Any

from django.utils import timezone

from accounts.models import User
from jobs.models import Attempt, Job, Task, TaskState
from jobs.services import following, launching
from monitoring import requests, ssh
from monitoring.models import Host, HostKey, HostRequest
from tests import make
from tests.jobs import making
from tests.lab import Lab, LabHost

LONG = 25.0


class Site:
    """Hosts with accepted keys; what the queue would do is done by `work` and `look`."""

    def __init__(self, lab: Lab, settings: Any) -> None:
        settings.OBSERVING_KEY, settings.ACTING_KEY = lab.observing_key, lab.acting_key
        self.lab = lab
        self.hosts = {one.name: _row(one) for one in lab}

    def work(self) -> None:
        """Answer every request that waits."""
        waiting = HostRequest.objects.filter(state=HostRequest.State.WAITING)
        for pk in waiting.order_by("pk").values_list("pk", flat=True):
            requests.answer(pk)

    def look(self) -> None:
        """Look at all hosts that run tasks, as after a probe."""
        following.look_everywhere(timezone.now())
        self.work()

    def run(self, owner: User, command: str, *, host: str = "gpu01", **task: Any) -> Task:
        """Create a job of one task, start it, and see it running."""
        job = making.job(owner, host=self.hosts[host], command=command, **task)
        return self.start(job)

    def start(self, job: Job) -> Task:
        launching.execute(job, actor=job.owner)
        self.work()
        return job.tasks.get()

    def until(self, task: Task, *states: TaskState) -> Task:
        """Look again and again until the task is in one of these states."""
        self.wait(lambda: Task.objects.get(pk=task.pk).state in states, task)
        task.refresh_from_db()
        return task

    def wait(self, is_so: Callable[[], bool], task: Task) -> None:
        ends = time.monotonic() + LONG
        while not is_so():
            now = Task.objects.get(pk=task.pk)
            assert time.monotonic() < ends, f"{now.state}: {now.reason}; {self.output(task)!r}"
            time.sleep(0.1)
            self.look()

    def output(self, task: Task) -> str:
        """The log as it is on the host."""
        attempt = last(task)
        if not attempt.log:
            return ""
        host = self.lab[task.host.name]
        return host.run(["cat", attempt.log]).stdout

    def wait_for_output(self, task: Task, text: str) -> str:
        ends = time.monotonic() + LONG
        while text not in (output := self.output(task)):
            assert time.monotonic() < ends, output
            time.sleep(0.05)
        return output


def last(task: Task) -> Attempt:
    attempt = Attempt.objects.filter(task=task.pk).order_by("number").last()
    assert attempt is not None
    return attempt


def age_request(task: Task, seconds: float) -> None:
    """As if the task had been asked to stop so long ago."""
    Task.objects.filter(pk=task.pk).update(
        stop_requested_at=timezone.now() - dt.timedelta(seconds=seconds)
    )


def _row(one: LabHost) -> Host:
    row = make.host(one.name, address=one.address, port=one.port, user=one.observer)
    now = timezone.now()
    for line in one.public_keys:
        kind, key = line.split()
        HostKey.objects.create(
            host=row,
            address=one.address,
            port=one.port,
            key_type=kind,
            public_key=key,
            fingerprint=ssh.fingerprint(line),
            seen_at=now,
            accepted_at=now,
            accepted_by="root",
        )
    for index in range(2):
        make.gpu(row, index, uuid=one.gpu_uuid(index))
    return row
