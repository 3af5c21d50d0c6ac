"""The pages of jobs: what they show, refuse, and keep; and once in a real browser."""

from __future__ import annotations

import re
import zoneinfo
from typing import Any

import pytest
from django.contrib.messages import get_messages
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from playwright.sync_api import Page, expect

from accounts.models import User
from jobs.models import Attempt, Job, Task, TaskState
from tests import make
from tests.jobs import making
from tests.jobs.site import Site
from tests.lab import Lab

pytestmark = pytest.mark.django_db


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def page_of(user: User, path: str) -> str:
    answer = signed_in(user).get(path)
    assert answer.status_code == 200
    return answer.content.decode()


def form(*tasks: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """What a browser sends."""
    data = {"name": "Training", "description": "", "start_at": "", "stop_at": "", **fields}
    data |= {"tasks-TOTAL_FORMS": str(len(tasks)), "tasks-INITIAL_FORMS": "0"}
    for number, task in enumerate(tasks):
        defaults = {"host": "gpu01", "command": "python train.py", "env": ""}
        for name, value in (defaults | task).items():
            data[f"tasks-{number}-{name}"] = value
    return data


@pytest.fixture
def gpu() -> Any:
    return make.gpu(make.host("gpu01"))


@pytest.mark.parametrize(
    ("method", "path", "owner", "other", "administrator"),
    [
        ("get", "/jobs/", 200, 200, 200),
        ("get", "/jobs/new/", 200, 200, 200),
        ("get", "/jobs/{}/", 200, 404, 200),
        ("get", "/fragments/jobs/{}/", 200, 404, 200),
        ("get", "/jobs/{}/stop/", 405, 405, 405),
        ("post", "/jobs/{}/execute/", 302, 404, 403),
        ("post", "/jobs/{}/stop/", 302, 404, 302),
        ("post", "/jobs/{}/delete/", 302, 404, 302),
    ],
)
def test_who_may_open_what(
    alice: User,
    bob: User,
    root: User,
    method: str,
    path: str,
    owner: int,
    other: int,
    administrator: int,
) -> None:
    for user, expected in ((alice, owner), (bob, other), (root, administrator)):
        address = path.format(making.job(alice).pk)
        assert getattr(signed_in(user), method)(address).status_code == expected, user
    answer = getattr(Client(), method)(path.format(making.job(alice).pk))
    assert (answer.status_code, answer.get("Location", "")[:7]) in {(302, "/login/"), (405, "")}


def test_an_empty_list_says_what_to_do(alice: User) -> None:
    html = page_of(alice, "/jobs/")

    assert "You have no jobs yet" in html
    assert 'href="/jobs/new/"' in html


def test_the_list_shows_states_reasons_and_what_can_be_done(alice: User, bob: User) -> None:
    idle, running = making.job(alice, name="Idle one"), making.started(alice, name="Runner")
    failed = making.job(alice, name="<b>Failed</b>")
    failed.tasks.update(state=TaskState.FAILED, reason="No <i>space</i>.")
    making.job(bob, name="Somebody's")

    html = page_of(alice, "/jobs/")

    assert f'action="/jobs/{idle.pk}/execute/"' in html
    assert f'action="/jobs/{running.pk}/stop/"' in html
    assert f'action="/jobs/{running.pk}/execute/"' not in html
    assert "&lt;b&gt;Failed&lt;/b&gt;" in html
    assert "No &lt;i&gt;space&lt;/i&gt;." in html
    assert "Somebody" not in html


def test_administrators_see_everybodys_jobs_when_they_ask(alice: User, root: User) -> None:
    job = making.job(alice, name="Of alice")

    assert "Of alice" not in page_of(root, "/jobs/")
    html = page_of(root, "/jobs/?all=1")
    assert "Of alice" in html
    assert f"/jobs/{job.pk}/execute/" not in html
    assert "Of alice" not in page_of(make.user("carol"), "/jobs/?all=1")


@pytest.mark.parametrize("path", ["/jobs/?all=1", "/admin/jobs/job/", "/admin/jobs/attempt/"])
def test_lists_take_the_same_number_of_queries_for_2_and_for_20(root: User, path: str) -> None:
    def queries() -> int:
        client = signed_in(root)
        with CaptureQueriesContext(connection) as captured:
            assert client.get(path).status_code == 200
        return len(captured)

    for _ in range(2):
        making.started(make.user())
    queries()
    few = queries()
    for _ in range(18):
        making.started(make.user())

    assert queries() == few


def test_a_long_list_has_pages(alice: User) -> None:
    host = make.host()
    for _ in range(51):
        making.job(alice, host=host)

    assert "Page 1 of 2" in page_of(alice, "/jobs/")
    assert page_of(alice, "/jobs/?page=2").count("/execute/") == 1


def test_a_job_with_several_tasks_is_created(alice: User, gpu: Any) -> None:
    other = make.gpu(make.host("gpu02"))
    alice.time_zone = "Europe/Warsaw"
    alice.save()
    first = {"gpus": [gpu.uuid], "command": "cat <<E\r\na b\r\nE\r\n", "env": "A=1\r\nB= x=y"}
    second = {"host": "", "gpus": [other.uuid]}

    answer = signed_in(alice).post(
        "/jobs/new/", form(first, second, start_at="2999-07-01T08:30", stop_at="2999-07-02T08:30")
    )

    job = Job.objects.get()
    assert answer.headers["Location"] == f"/jobs/{job.pk}/"
    assert job.owner == alice
    assert job.start_at is not None
    warsaw = job.start_at.astimezone(zoneinfo.ZoneInfo("Europe/Warsaw"))
    assert f"{warsaw:%H:%M}" == "08:30"
    one, two = job.tasks.all()
    assert (one.command, one.env) == ("cat <<E\na b\nE\n", {"A": "1", "B": " x=y"})
    assert (one.host.name, list(one.gpus.all())) == ("gpu01", [gpu])
    assert (two.host.name, list(two.gpus.all())) == ("gpu02", [other])
    assert job.state == "idle"


def test_create_and_start_starts(alice: User, gpu: Any) -> None:
    answer = signed_in(alice).post("/jobs/new/", form({}, start="1"))

    assert answer.status_code == 302
    assert Job.objects.get().state == "starting"
    assert Attempt.objects.count() == 1


def test_a_start_that_is_refused_keeps_the_job_and_says_why(
    alice: User, bob: User, gpu: Any
) -> None:
    make.reservation(gpu, owner=alice)

    answer = signed_in(bob).post("/jobs/new/", form({"gpus": [gpu.uuid]}, start="1"))

    assert Job.objects.get().state == "idle"
    (said,) = get_messages(answer.wsgi_request)
    assert str(said).startswith("gpu01:0 is reserved by alice until ")


@pytest.mark.parametrize(
    ("task", "fields", "name", "sentence"),
    [
        ({}, {"name": ""}, "name", "required"),
        ({}, {"name": "a\u200bb"}, "name", "invisible"),
        ({"command": " \n"}, {}, "tasks-0-command", "Give a command."),
        ({"command": ""}, {}, "tasks-0-command", "required"),
        ({"env": "A=1\nB"}, {}, "tasks-0-env", "Line 2 has no “=”"),
        ({"env": "A=1\nA=2"}, {}, "tasks-0-env", "Line 2 sets A again."),
        ({"env": "1A=x"}, {}, "tasks-0-env", "is not a name for a variable"),
        ({"env": "CUDA_VISIBLE_DEVICES=0"}, {}, "tasks-0-env", "is set from the GPUs"),
        ({"host": ""}, {}, "tasks-0-host", "Choose a host."),
        ({"host": "nowhere"}, {}, "tasks-0-host", "not one of the available choices"),
        ({"gpus": ["GPU-0"]}, {}, "tasks-0-gpus", "not one of the available choices"),
        ({}, {"start_at": "2001-01-01T00:00"}, "start_at", "This moment has passed."),
        ({}, {"start_at": "2999-03-31T02:30"}, "start_at", "couldn’t be interpreted"),
        (
            {},
            {"start_at": "2999-01-02T00:00", "stop_at": "2999-01-01T00:00"},
            "stop_at",
            "must stop after it starts",
        ),
    ],
    ids=str,
)
def test_errors_stand_beside_their_field_and_nothing_is_lost(
    alice: User, gpu: Any, task: dict[str, Any], fields: dict[str, Any], name: str, sentence: str
) -> None:
    alice.time_zone = "Europe/Warsaw"
    alice.save()
    kept = {"description": "Keep <me>"}
    others = {"command": "echo 'second'", "env": "KEEP=1", "gpus": [gpu.uuid]}

    answer = signed_in(alice).post("/jobs/new/", form(task, others, **(kept | fields)))

    assert answer.status_code == 200
    html = answer.content.decode()
    place = re.search(rf'id="id_{name}_error".*?</ul>', html, re.DOTALL)
    assert place is not None
    assert sentence in place[0].replace("&#x27;", "'")
    assert "Keep &lt;me&gt;" in html
    assert "echo &#x27;second&#x27;" in html
    assert "KEEP=1" in html
    assert f'name="tasks-1-gpus" value="{gpu.uuid}" checked' in html
    assert not Job.objects.exists()


def test_gpus_of_two_hosts_are_no_task(alice: User, gpu: Any) -> None:
    other = make.gpu(make.host("gpu02"))

    answer = signed_in(alice).post("/jobs/new/", form({"gpus": [gpu.uuid, other.uuid]}))

    assert "A task runs on one host" in answer.content.decode()


def test_an_untouched_form_is_refused_in_words_about_jobs(alice: User, gpu: Any) -> None:
    answer = signed_in(alice).post("/jobs/new/", form({"host": "", "command": ""}, name=""))

    assert "A job needs at least one task." in answer.content.decode()


@pytest.mark.parametrize("total", ["0", "51", "99999", "x", ""])
def test_a_strange_number_of_tasks_is_refused(alice: User, gpu: Any, total: str) -> None:
    data = form({}) | {"tasks-TOTAL_FORMS": total}

    assert signed_in(alice).post("/jobs/new/", data).status_code == 200
    assert not Job.objects.exists()


def test_a_running_job_shows_how_to_attach_and_hides_values_of_its_environment(
    alice: User,
) -> None:
    host = make.host("gpu01", address="10.0.0.7", port=2222)
    job = making.started(alice, host=host, command="echo '<b>'", env={"TOKEN": "s3cret"})
    task = job.tasks.get()

    html = page_of(alice, f"/jobs/{job.pk}/")

    assert "ssh -p 2222 alice@10.0.0.7" in html
    assert f"screen -r th-{task.pk:010d}-e" in html
    assert "echo &#x27;&lt;b&gt;&#x27;" in html
    assert "TOKEN" in html
    assert "s3cret" not in html
    assert f'data-log="/api/v1/tasks/{task.pk}/log/"' in html


def test_the_changing_part_is_sent_again_only_when_it_changed(alice: User) -> None:
    job = making.started(alice)
    client, path = signed_in(alice), f"/fragments/jobs/{job.pk}/"
    first = client.get(path)
    etag = {"If-None-Match": first["ETag"]}

    assert client.get(path, headers=etag).status_code == 304
    job.tasks.update(state=TaskState.FINISHED, exit_code=7, reason="Ended with exit code 7.")
    again = client.get(path, headers=etag)
    assert again.status_code == 200
    assert "Ended with exit code 7." in again.content.decode()


def test_deleting_leads_back_to_the_list_and_a_running_job_stays(alice: User) -> None:
    idle, running = making.job(alice), making.started(alice)
    client = signed_in(alice)

    assert client.post(f"/jobs/{idle.pk}/delete/").headers["Location"] == "/jobs/"
    assert client.post(f"/jobs/{running.pk}/delete/").headers["Location"] == f"/jobs/{running.pk}/"
    assert list(Job.objects.all()) == [running]


def test_administrators_stop_jobs_in_the_console(alice: User, root: User) -> None:
    running, idle = making.started(alice, env={"TOKEN": "s3cret"}), making.job(alice)
    client = signed_in(root)

    answer = client.post(
        "/admin/jobs/job/",
        {"action": "stop_selected", "_selected_action": [running.pk, idle.pk]},
        follow=True,
    )

    assert "1 asked to stop." in answer.content.decode()
    assert "Nothing of this job is running." in answer.content.decode()
    assert running.tasks.get().stop_requested_by == root
    shown = client.get(f"/admin/jobs/job/{running.pk}/change/").content.decode()
    assert "python train.py" in shown
    assert "s3cret" not in shown
    assert client.get("/admin/jobs/job/?q=alice").status_code == 200


@pytest.mark.lab
@pytest.mark.browser
@pytest.mark.django_db(transaction=True)
def test_a_job_is_created_started_watched_and_stopped_in_a_browser(
    live_server: Any, page: Page, console_errors: list[str], lab: Lab, settings: Any
) -> None:
    alice, site = make.user("alice"), Site(lab, settings)
    client = signed_in(alice)
    cookie = client.cookies["sessionid"].value
    page.context.add_cookies([{"name": "sessionid", "value": cookie, "url": live_server.url}])

    def work_until(is_so: Any) -> None:
        for _ in range(150):
            if is_so():
                return
            site.look()
            page.wait_for_timeout(100)
        raise AssertionError(page.locator("main").inner_text())

    page.goto(f"{live_server.url}/jobs/")
    page.get_by_role("link", name="New job").click()
    page.get_by_label("Name").fill("Two tasks")
    first = page.locator("[data-task]").first
    first.get_by_label("Host").select_option("gpu01")
    expect(first.locator('[data-host="gpu02"]')).to_be_hidden()
    first.locator('[data-host="gpu01"]').get_by_role("checkbox").nth(1).check()
    first.get_by_label("Command").fill(
        "printf '\\033[31mred\\033[0m <b>%s</b>\\n' \"$CUDA_VISIBLE_DEVICES\"; sleep 60"
    )
    page.get_by_role("button", name="Add a task").click()
    page.get_by_role("button", name="Add a task").click()
    expect(page.locator("[data-task]")).to_have_count(3)
    page.locator("[data-task]").nth(1).get_by_role("button", name="Remove").click()
    second = page.locator("[data-task]").nth(1)
    second.get_by_label("Host").select_option("gpu02")
    second.get_by_label("Command").fill("exit 3")
    page.get_by_role("button", name="Create and start").click()

    expect(page.locator(".job-head .badge")).to_have_text("starting")
    one, two = Task.objects.order_by("position")
    assert [(task.host.name, task.gpus.count()) for task in (one, two)] == [
        ("gpu01", 1),
        ("gpu02", 0),
    ]
    work_until(lambda: page.locator(f"#task-{one.pk} .badge").inner_text() == "running")
    work_until(lambda: page.locator(f"#task-{two.pk} .badge").inner_text() == "finished")
    expect(page.locator(f"#task-{two.pk}")).to_contain_text("Ended with exit code 3.")
    log = page.locator("[data-log-text]").first
    work_until(lambda: "red" in (log.text_content() or ""))
    assert log.text_content() == f"red <b>{lab['gpu01'].gpu_uuid(1)}</b>\n"
    page.get_by_role("button", name="Stop", exact=True).click()
    work_until(lambda: page.locator(f"#task-{one.pk} .badge").inner_text() == "stopped")
    expect(page.get_by_role("button", name="Start again")).to_be_visible()


def test_hosts_that_are_disabled_are_not_offered(alice: User) -> None:
    make.host("gone", is_enabled=False)
    make.host("there")

    html = page_of(alice, "/jobs/new/")

    assert "there" in html
    assert '"gone"' not in html
