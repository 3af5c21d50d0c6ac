"""Jobs over HTTP: who may do what, what is refused, and what the answers hold."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from django_q.models import OrmQ
from rest_framework.test import APIClient

from accounts.models import User
from jobs.models import Attempt, Job, Task, TaskState
from monitoring.models import AuditEntry, HostRequest
from tests import make
from tests.jobs import making

pytestmark = pytest.mark.django_db

BODY = {"name": "Training", "tasks": [{"host": "gpu01", "command": "python train.py"}]}


def signed_in(user: User | None) -> APIClient:
    client = APIClient()
    if user is not None:
        client.force_authenticate(user)
    return client


def post(user: User, path: str, body: Any = None) -> Any:
    return signed_in(user).post(f"/api/v1/{path}", body, format="json")


@pytest.fixture
def gpu() -> Any:
    return make.gpu(make.host("gpu01"))


def test_a_job_is_created_with_its_tasks(alice: User, gpu: Any) -> None:
    other = make.gpu(make.host("gpu02"))
    answer = post(
        alice,
        "jobs/",
        {
            "name": "  Training ",
            "tasks": [
                {
                    "host": "gpu01",
                    "gpus": [gpu.uuid],
                    "command": "python train.py\n",
                    "env": {"SEED": " 1"},
                    "parameters": [{"name": "--rank=", "value": "0"}],
                },
                {"gpus": [other.uuid], "command": "echo 'a \"b\" $c'"},
            ],
        },
    )

    assert answer.status_code == 201
    said = answer.json()
    first, second = said.pop("tasks")
    assert said == {
        "id": Job.objects.get().pk,
        "name": "Training",
        "description": "",
        "owner": "alice",
        "project": None,
        "state": "idle",
        "reason": None,
        "start_at": None,
        "stop_at": None,
        "created_at": said["created_at"],
    }
    assert first == {
        "id": first["id"],
        "job": said["id"],
        "host": "gpu01",
        "gpus": [gpu.uuid],
        "command": "python train.py\n",
        "env": {"SEED": " 1"},
        "parameters": [{"name": "--rank=", "value": "0"}],
        "state": "idle",
        "state_since": None,
        "reason": None,
        "exit_code": None,
        "session": None,
        "log": None,
        "started_at": None,
        "ended_at": None,
    }
    assert (second["host"], second["gpus"]) == ("gpu02", [other.uuid])


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"name": ""}, "name"),
        ({"name": "x" * 41}, "name"),
        ({"name": "a\u202eb"}, "name"),
        ({"description": "x" * 201}, "description"),
        ({"tasks": []}, "tasks"),
        ({"tasks": [{"host": "gpu01", "command": " "}]}, "tasks"),
        ({"tasks": [{"host": "gpu01", "command": "a\u0000"}]}, "tasks"),
        ({"tasks": [{"command": "a"}]}, "tasks"),
        ({"tasks": [{"host": "nowhere", "command": "a"}]}, "tasks"),
        ({"tasks": [{"host": "gpu01", "gpus": ["GPU-0"], "command": "a"}]}, "tasks"),
        ({"tasks": [{"host": "gpu01", "command": "a", "env": {"A-": "x"}}]}, "tasks"),
        ({"tasks": [{"host": "gpu01", "command": "a", "parameters": ["x"]}]}, "tasks"),
        ({"start_at": "2001-01-01T00:00:00Z"}, "start_at"),
        ({"start_at": "soon"}, "start_at"),
        ({"start_at": "2999-01-02T00:00:00Z"}, "start_at"),
        ({"start_at": "2199-01-02T00:00:00"}, "start_at"),
        ({"start_at": "2199-01-02T00:00:00Z", "stop_at": "2199-01-01T00:00:00Z"}, "stop_at"),
    ],
    ids=str,
)
def test_what_is_malformed_is_told_by_field_and_nothing_is_kept(
    alice: User, gpu: Any, change: Any, field: str
) -> None:
    answer = post(alice, "jobs/", BODY | change)

    assert answer.status_code == 400
    assert set(answer.json()) == {field, "code"}
    assert not Job.objects.exists()


def test_a_task_runs_on_one_host(alice: User, gpu: Any) -> None:
    other = make.gpu(make.host("gpu02"))
    for task in (
        {"host": "gpu01", "gpus": [other.uuid], "command": "a"},
        {"gpus": [gpu.uuid, other.uuid], "command": "a"},
    ):
        answer = post(alice, "jobs/", BODY | {"tasks": [task]})

        assert answer.status_code == 400
        assert "gpus" in answer.json()["tasks"][0]


@pytest.mark.parametrize(
    ("method", "path", "nobody", "owner", "other", "administrator"),
    [
        ("get", "jobs/", 401, 200, 200, 200),
        ("get", "jobs/{job}/", 401, 200, 404, 200),
        ("patch", "jobs/{job}/", 401, 200, 404, 200),
        ("delete", "jobs/{job}/", 401, 204, 404, 204),
        ("put", "jobs/{job}/", 401, 405, 405, 405),
        ("post", "jobs/{job}/execute/", 401, 202, 404, 403),
        ("post", "jobs/{job}/stop/", 401, 409, 404, 409),
        ("get", "tasks/", 401, 200, 200, 200),
        ("get", "tasks/{task}/", 401, 200, 404, 200),
        ("patch", "tasks/{task}/", 401, 405, 405, 405),
        ("delete", "tasks/{task}/", 401, 405, 405, 405),
        ("get", "tasks/{task}/log/", 401, 409, 404, 409),
    ],
)
def test_who_may_do_what(
    alice: User,
    bob: User,
    root: User,
    method: str,
    path: str,
    nobody: int,
    owner: int,
    other: int,
    administrator: int,
) -> None:
    for user, expected in ((None, nobody), (alice, owner), (bob, other), (root, administrator)):
        job = making.job(alice)
        address = path.format(job=job.pk, task=job.tasks.get().pk)

        answer = getattr(signed_in(user), method)(f"/api/v1/{address}", {}, format="json")

        assert answer.status_code == expected, user
        if answer.status_code >= 400:
            assert answer.json()["code"]


def test_lists_hold_ones_own_jobs_and_all_for_administrators(
    alice: User, bob: User, root: User
) -> None:
    making.job(alice)
    making.job(bob)

    def owners(user: User) -> list[str]:
        return [job["owner"] for job in signed_in(user).get("/api/v1/jobs/").json()["results"]]

    assert owners(alice) == ["alice"]
    assert sorted(owners(root)) == ["alice", "bob"]
    assert signed_in(bob).get("/api/v1/tasks/").json()["count"] == 1


@pytest.mark.parametrize("path", ["jobs/", "tasks/"])
def test_lists_take_the_same_number_of_queries_for_2_and_for_20(root: User, path: str) -> None:
    def queries() -> int:
        with CaptureQueriesContext(
            connection,
        ) as captured:
            answer = signed_in(root).get(f"/api/v1/{path}?page_size=200")
        assert answer.json()["count"] == Job.objects.count()
        return len(captured)

    for _ in range(2):
        making.started(make.user())
    few = queries()
    for _ in range(18):
        making.started(make.user())

    assert queries() == few


def test_jobs_are_filtered(alice: User, root: User) -> None:
    running = making.started(alice, name="One")
    making.job(alice, name="Two", host=make.host("elsewhere"))

    def names(query: str) -> list[str]:
        answer = signed_in(root).get(f"/api/v1/jobs/?{query}").json()
        return [job["name"] for job in answer["results"]]

    assert names("state=running") == ["One"]
    assert names("host=elsewhere") == ["Two"]
    assert names("name=tw") == ["Two"]
    assert names("owner=bob") == []
    answer = signed_in(root).get(f"/api/v1/tasks/?job={running.pk}")
    assert answer.json()["count"] == 1


def test_execute_claims_an_attempt_per_task_and_rings(alice: User) -> None:
    job = making.job(alice)

    answer = post(alice, f"jobs/{job.pk}/execute/")

    assert (answer.status_code, answer.json()["state"]) == (202, "starting")
    attempt = Attempt.objects.get(task__job=job)
    assert (attempt.number, attempt.login, attempt.launching_at) == (1, "alice", None)
    request = HostRequest.objects.get()
    assert (request.kind, request.arguments) == ("launch_task", {"attempt": attempt.pk})
    assert OrmQ.objects.get().task["args"] == (request.pk,)


@pytest.mark.parametrize("state", [TaskState.STARTING, TaskState.RUNNING, TaskState.UNKNOWN])
def test_what_may_be_running_is_neither_started_nor_changed_nor_deleted(
    alice: User, state: TaskState
) -> None:
    job = making.job(alice)
    job.tasks.update(state=state)
    client, path = signed_in(alice), f"/api/v1/jobs/{job.pk}/"

    for answer in (
        client.post(path + "execute/"),
        client.patch(path, {"name": "Other"}, format="json"),
        client.delete(path),
    ):
        assert answer.status_code == 409
        assert answer.json()["code"] == "wrong_state"
        assert "running" in answer.json()["detail"]
    job.refresh_from_db()
    assert job.name != "Other"


def test_a_gpu_that_another_reserved_starts_nothing(alice: User, bob: User, gpu: Any) -> None:
    make.reservation(gpu, owner=alice)
    job = making.job(bob, gpus=[gpu])

    answer = post(bob, f"jobs/{job.pk}/execute/")

    assert answer.status_code == 422
    assert answer.json()["code"] == "refused"
    assert answer.json()["detail"].startswith("gpu01:0 is reserved by alice until ")
    assert not Attempt.objects.exists()


def test_ones_own_reservation_and_a_free_gpu_are_no_obstacle(alice: User, gpu: Any) -> None:
    make.reservation(gpu, owner=alice)

    for gpus in ([gpu], [make.gpu(gpu.host)]):
        job = making.job(alice, host=gpu.host, gpus=gpus)
        assert post(alice, f"jobs/{job.pk}/execute/").status_code == 202


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda job, host: setattr(host, "is_enabled", False), "gpu01 is disabled."),
        (lambda job, host: setattr(host, "in_maintenance", True), "gpu01 is in maintenance."),
        (lambda job, host: setattr(job.owner, "unix_login", "root"), "Jobs never run as root."),
        (
            lambda job, host: setattr(job.owner, "unix_login", host.user),
            "Jobs never run as thobserver, the account that watches gpu01.",
        ),
        (
            lambda job, host: setattr(job, "stop_at", timezone.now()),
            "Its time to stop has passed; change or clear that first.",
        ),
    ],
)
def test_rules_refuse_a_start_with_their_sentence(
    alice: User, gpu: Any, change: Any, sentence: str
) -> None:
    job = making.job(alice, gpus=[gpu])
    change(job, gpu.host)
    for row in (job, gpu.host, job.owner):
        row.save()

    answer = post(alice, f"jobs/{job.pk}/execute/")

    assert (answer.status_code, answer.json()["detail"]) == (422, sentence)


def test_a_job_stops_at_once_for_owner_and_administrator(alice: User, root: User) -> None:
    for user in (alice, root):
        job = making.started(alice)

        answer = post(user, f"jobs/{job.pk}/stop/")

        assert answer.status_code == 202
        task = job.tasks.get()
        assert (task.stop_requested_by, task.state) == (user, TaskState.RUNNING)
        assert AuditEntry.objects.filter(action="job.stop", actor=user).count() == 1


def test_a_moment_can_be_cleared_and_a_past_start_stands(alice: User) -> None:
    past = timezone.now() - dt.timedelta(hours=1)
    job = making.job(alice)
    Job.objects.filter(pk=job.pk).update(
        start_at=past, start_handled_at=past, stop_at=past + dt.timedelta(days=1)
    )

    answer = signed_in(alice).patch(f"/api/v1/jobs/{job.pk}/", {"stop_at": None}, format="json")

    assert answer.status_code == 200
    assert answer.json()["stop_at"] is None
    job.refresh_from_db()
    assert (job.start_at, job.start_handled_at) == (past, past)


def test_environments_are_in_no_audit_entry_and_no_log(
    alice: User, gpu: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    body = {**BODY, "tasks": [{**BODY["tasks"][0], "env": {"TOKEN": "s3cret-value"}}]}  # type: ignore[dict-item]

    pk = post(alice, "jobs/", body).json()["id"]
    post(alice, f"jobs/{pk}/execute/")
    post(alice, f"jobs/{pk}/stop/")
    Task.objects.update(state=TaskState.STOPPED)
    assert signed_in(alice).delete(f"/api/v1/jobs/{pk}/").status_code == 204

    entries = list(AuditEntry.objects.values("action", "changes", "reason", "target"))
    assert {entry["action"] for entry in entries} >= {"job.create", "job.execute", "job.delete"}
    assert "s3cret-value" not in json.dumps(entries)
    assert "s3cret-value" not in json.dumps(list(HostRequest.objects.values("arguments")))
    own = [
        record.getMessage() for record in caplog.records if not record.name.startswith("django.db")
    ]
    assert not any("s3cret-value" in line for line in own)


class TestLog:
    """A piece of log: asked for by a row, waited for, and not kept."""

    @pytest.fixture(autouse=True)
    def _impatient(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("jobs.services.logs.requests.wait", lambda row, seconds: row)

    def get(self, user: User, job: Job, query: str = "") -> Any:
        return signed_in(user).get(f"/api/v1/tasks/{job.tasks.get().pk}/log/{query}")

    def test_it_waits_and_is_asked_for_once(self, alice: User) -> None:
        job = making.started(alice)

        answers = [self.get(alice, job, "?offset=5&limit=100") for _ in range(2)]

        assert [answer.status_code for answer in answers] == [202, 202]
        assert answers[0].json() == {"state": "waiting"}
        arguments = {"task": job.tasks.get().pk, "offset": 5, "limit": 100}
        assert HostRequest.objects.get().arguments == arguments

    def test_a_task_that_starts_has_its_log_soon_and_one_that_failed_to_has_none(
        self, alice: User
    ) -> None:
        job = making.started(alice)
        Attempt.objects.update(log="", started_at=None)
        assert self.get(alice, job).status_code == 202
        assert not HostRequest.objects.exists()

        Attempt.objects.update(ended_at=timezone.now())
        answer = self.get(alice, job)

        assert (answer.status_code, answer.json()["code"]) == (409, "log_unavailable")

    def test_what_was_read_is_handed_out_once(self, alice: User) -> None:
        job = making.started(alice)
        self.get(alice, job)
        piece = {"offset": 0, "next_offset": 3, "size": 3, "text": "a\x1bb", "complete": True}
        HostRequest.objects.update(state="done", result=piece, finished_at=timezone.now())

        assert self.get(alice, job).json() == piece
        assert HostRequest.objects.get().result is None
        assert self.get(alice, job).status_code == 202

    def test_what_cannot_be_read_says_why(self, alice: User) -> None:
        job = making.started(alice)
        self.get(alice, job)
        HostRequest.objects.update(state="failed", reason="The host is away.")
        failed = HostRequest.objects.get()

        def refuse(*args: Any, **kwargs: Any) -> HostRequest:
            return failed

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("jobs.services.logs._ask", refuse)
            answer = self.get(alice, job)

        assert (answer.status_code, answer.json()["detail"]) == (409, "The host is away.")

    @pytest.mark.parametrize("query", ["?limit=0", "?limit=999999999", "?offset=x", "?offset=-9e9"])
    def test_bounds_are_checked(self, alice: User, query: str) -> None:
        job = making.started(alice)

        assert self.get(alice, job, query).status_code == 400
        assert not HostRequest.objects.exists()


@pytest.mark.parametrize(
    "query",
    [
        "jobs/?created_after=0001-01-01T00:00:00%2B14:00",
        "jobs/?created_before=9999-12-31T23:59:59-14:00",
        "jobs/?created_before=2026-01-01T00:00:00",
        f"tasks/?job={10**30}",
        f"tasks/?job=-{10**30}",
        "tasks/?job=1e49",
        "tasks/?job=NaN",
    ],
)
def test_what_no_job_can_be_asked_for_is_refused(alice: User, query: str) -> None:
    answer = signed_in(alice).get(f"/api/v1/{query}")

    assert answer.status_code == 400
    assert answer.json()["code"]
