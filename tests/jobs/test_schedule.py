"""What happens every minute: jobs start and stop when their time has come, each once."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from django.utils import timezone
from django.utils.module_loading import import_string

from accounts.models import User
from jobs import tasks as background
from jobs.models import Attempt, Job, TaskState
from jobs.services import following, launching
from monitoring.models import AuditEntry, HostRequest
from tests import make
from tests.jobs import making

pytestmark = pytest.mark.django_db

MINUTE = dt.timedelta(minutes=1)


def due(owner: User, **fields: Any) -> Job:
    job = making.job(owner, **fields)
    Job.objects.filter(pk=job.pk).update(start_at=timezone.now() - MINUTE)
    return job


def test_the_schedules_name_functions_that_exist() -> None:
    for schedule in background.SCHEDULES.values():
        assert callable(import_string(str(schedule["func"])))


def test_a_job_starts_once_when_its_time_has_come(alice: User) -> None:
    job, later = due(alice), making.job(alice)
    Job.objects.filter(pk=later.pk).update(start_at=timezone.now() + MINUTE)

    background.keep_time()
    job.tasks.update(state=TaskState.FINISHED)
    Attempt.objects.update(ended_at=timezone.now())
    background.keep_time()

    assert Attempt.objects.count() == 1
    entry = AuditEntry.objects.get(action="job.execute")
    assert (entry.actor, entry.target_id) == (None, str(job.pk))
    assert Job.objects.get(pk=later.pk).state == TaskState.IDLE


def test_a_start_that_is_refused_is_told_and_not_tried_again(alice: User, bob: User) -> None:
    gpu = make.gpu(make.host("gpu01"))
    make.reservation(gpu, owner=alice)
    job = due(bob, gpus=[gpu])

    background.keep_time()
    background.keep_time()

    task = job.tasks.get()
    assert task.state == TaskState.FAILED
    assert task.reason.startswith("Not started: gpu01:0 is reserved by alice until ")
    assert not Attempt.objects.exists()


def test_a_running_job_whose_start_comes_due_goes_on(alice: User) -> None:
    job = making.started(alice)
    Job.objects.filter(pk=job.pk).update(start_at=timezone.now() - MINUTE)

    background.keep_time()

    assert Job.objects.get(pk=job.pk).state == TaskState.RUNNING
    assert Attempt.objects.count() == 1


def test_a_start_that_fails_inside_is_tried_again(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = due(alice)

    def broken(*args: Any, **kwargs: Any) -> None:
        raise OSError

    with monkeypatch.context() as patch:
        patch.setattr(launching, "execute", broken)
        with pytest.raises(OSError):  # noqa: PT011  any will do
            launching.start_due(timezone.now())
    launching.start_due(timezone.now())

    assert Job.objects.get(pk=job.pk).state == TaskState.STARTING


def test_a_job_is_asked_to_stop_once_when_its_time_has_come(alice: User) -> None:
    job, other = making.started(alice), making.started(alice)
    Job.objects.filter(pk=job.pk).update(stop_at=timezone.now() - MINUTE)

    background.keep_time()
    first = job.tasks.get().stop_requested_at
    background.keep_time()

    assert first is not None
    assert job.tasks.get().stop_requested_at == first
    assert job.tasks.get().stop_requested_by is None
    assert other.tasks.get().stop_requested_at is None
    assert AuditEntry.objects.filter(action="job.stop").count() == 1


def test_a_host_is_looked_at_only_where_something_runs_and_once_at_a_time(alice: User) -> None:
    job = making.started(alice)
    idle = making.job(alice)
    hosts = [job.tasks.get().host_id, idle.tasks.get().host_id]

    for _ in range(3):
        following.after_probe(hosts, timezone.now())

    request = HostRequest.objects.get()
    assert (request.kind, request.host_id) == ("follow_tasks", hosts[0])
