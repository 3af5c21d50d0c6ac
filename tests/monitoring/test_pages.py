"""The dashboard, the pages of hosts, and the parts of them that are fetched again."""

from __future__ import annotations

import datetime as dt
import re
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import User
from monitoring.models import Gpu, Host, HostSample
from tests import make
from tests.monitoring import data

pytestmark = pytest.mark.django_db


def add_host(name: str = "", **fields: Any) -> Gpu:
    gpu = make.gpu(make.host(name, **fields))
    data.answer(gpu.host, [data.reading(gpu)], [data.process(gpu)])
    return gpu


def page(client: Any, path: str) -> str:
    response = client.get(path)
    assert response.status_code == 200
    return response.content.decode()


def stats(html: str) -> dict[str, int]:
    """The summary's numbers by their names."""
    found = re.findall(r"<dt>([^<]+)</dt><dd>(\d+)", html)
    return {name: int(number) for name, number in found}


def cell(html: str, gpu: Gpu) -> str:
    found = re.search(rf'<a class="[^"]*" id="gpu-{gpu.pk}".*?</a>', html, re.DOTALL)
    assert found
    return found[0]


@pytest.mark.parametrize(
    "path",
    ["/", "/hosts/gpu01/", "/fragments/dashboard/", "/fragments/hosts/gpu01/", "/account/"],
)
def test_pages_ask_to_sign_in(client: Any, path: str) -> None:
    response = client.get(path)

    assert response.status_code == 302
    assert response.url.startswith("/login/?next=")


def test_gpus_are_counted_by_what_they_do_and_unknown_ones_apart(
    client: Any, alice: Any, bob: Any
) -> None:
    host = make.host("gpu01")
    idle, reserved, busy, lost = (make.gpu(host) for _ in range(4))
    Gpu.objects.filter(pk=lost.pk).update(state=Gpu.State.LOST, reason="Fallen off the bus.")
    readings = [data.reading(gpu, utilization_percent=0.0) for gpu in (idle, reserved, busy)]
    data.answer(host, readings, [data.process(busy)])
    make.reservation(reserved, owner=bob)
    silent = make.host("gpu02", state=Host.State.UNREACHABLE, last_good_at=None)
    make.gpu(silent)
    client.force_login(alice)

    assert stats(page(client, "/")) == {
        "GPUs": 5,
        "Free now": 1,
        "Reserved, idle": 1,
        "Busy": 1,
        "Unknown": 2,
        "Hosts answering": 1,
    }


def test_a_cell_says_in_words_what_it_shows(client: Any, alice: Any) -> None:
    gpu = add_host("gpu01")
    make.reservation(gpu, owner=alice)
    client.force_login(alice)

    shown = cell(page(client, "/"), gpu)

    assert "mine" in shown
    assert "heat-5" in shown
    assert "50 % used; memory 10 of 40 GiB; 60 °C; reserved by you until" in shown
    assert shown.endswith(">50</a>")


def test_a_gpu_of_a_silent_host_shows_a_dash_with_its_reason(client: Any, alice: Any) -> None:
    long_ago = timezone.now() - dt.timedelta(minutes=10)
    gpu = add_host("gpu01", state=Host.State.UNREACHABLE, reason="No route.", last_good_at=long_ago)
    client.force_login(alice)

    html = page(client, "/")

    assert cell(html, gpu).endswith(">–</a>")
    assert "unknown: No route." in cell(html, gpu)
    assert "heat-" not in cell(html, gpu)
    assert "host-card stale" in html
    assert long_ago.astimezone(dt.UTC).isoformat() in html


def test_a_host_that_nobody_probes_is_not_called_ok(client: Any, alice: Any) -> None:
    add_host("gpu01", last_good_at=timezone.now() - dt.timedelta(minutes=10))
    client.force_login(alice)

    html = page(client, "/")

    assert "no fresh data" in html
    assert "its workers may be down" in html


def test_text_from_hosts_is_escaped(client: Any, root: Any) -> None:
    gpu = make.gpu(make.host("gpu01", reason="<script>alert(1)</script>"))
    hostile = '"><img src=x onerror=alert(1)>'
    data.answer(
        gpu.host,
        [data.reading(gpu)],
        [data.process(gpu, command=hostile, login="<b>x</b>")],
        data={"disks": [{"path": "/<i>", "total_mib": 10, "used_mib": 5}]},
    )
    client.force_login(root)

    for path in ("/", "/hosts/gpu01/"):
        html = page(client, path)
        assert "<script>alert" not in html
        assert "<img" not in html
        assert "<b>x" not in html
        assert "<i>" not in html


@pytest.mark.parametrize("viewer", ["root", "bob"])
def test_arguments_of_commands_are_for_those_who_may_read_them(
    client: Any, root: Any, bob: Any, viewer: str
) -> None:
    add_host("gpu01")
    client.force_login(User.objects.get(username=viewer))

    for path in ("/", "/hosts/gpu01/"):
        assert ("s3cret" in page(client, path)) == (viewer == "root")


def test_hosts_one_may_not_see_are_not_found(
    client: Any, alice: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown, hidden = add_host("gpu01"), add_host("gpu02")
    monkeypatch.setattr(User, "visible_hosts", lambda _: Host.objects.filter(pk=shown.host_id))
    monkeypatch.setattr(User, "visible_gpus", lambda _: Gpu.objects.filter(pk=shown.pk))
    client.force_login(alice)

    assert "gpu02" not in page(client, "/")
    assert stats(page(client, "/"))["GPUs"] == 1
    for path in ("/hosts/gpu02/", "/fragments/hosts/gpu02/", "/fragments/hosts/gpu02/chart/"):
        assert client.get(path).status_code == 404
    assert client.get(f"/api/v1/gpus/{hidden.uuid}/").status_code == 404
    assert client.get(f"/api/v1/hosts/{hidden.host_id}/").status_code == 404


@pytest.mark.parametrize(
    ("path", "change"),
    [("/fragments/dashboard/", 75.0), ("/fragments/hosts/gpu01/", 75.0)],
)
def test_a_fragment_is_sent_again_only_when_it_changed(
    client: Any, alice: Any, path: str, change: float
) -> None:
    gpu = add_host("gpu01")
    client.force_login(alice)
    first = client.get(path)

    again = client.get(path, headers={"If-None-Match": first["ETag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert again["ETag"] == first["ETag"]

    data.answer(gpu.host, [data.reading(gpu, utilization_percent=change)], [])
    changed = client.get(path, headers={"If-None-Match": first["ETag"]})
    assert changed.status_code == 200
    assert changed["ETag"] != first["ETag"]


def test_the_page_knows_the_tag_of_the_part_it_came_with(client: Any, alice: Any) -> None:
    add_host("gpu01")
    client.force_login(alice)

    etag = re.search(r'data-etag="([^"]+)"', page(client, "/"))
    assert etag
    tag = etag[1].replace("&quot;", '"')

    fragment = client.get("/fragments/dashboard/", headers={"If-None-Match": tag})
    assert fragment.status_code == 304


@pytest.mark.parametrize("path", ["/fragments/dashboard/", "/fragments/hosts/gpu01/"])
def test_pages_cost_the_same_with_ten_times_the_hosts(client: Any, alice: Any, path: str) -> None:
    client.force_login(alice)
    for number in range(1, 3):
        add_host(f"gpu{number:02d}")
    client.get(path)
    with CaptureQueriesContext(connection) as few:
        client.get(path)
    for number in range(3, 21):
        gpu = add_host(f"gpu{number:02d}")
        make.reservation(gpu, owner=alice)
    with CaptureQueriesContext(connection) as many:
        client.get(path)

    assert len(many) == len(few)


def test_a_long_list_of_processes_is_cut_and_says_so(client: Any, alice: Any) -> None:
    gpu = make.gpu(make.host("gpu01"))
    data.answer(
        gpu.host, [data.reading(gpu)], [data.process(gpu, pid=pid) for pid in range(1, 251)]
    )
    client.force_login(alice)

    html = page(client, "/")

    assert html.count('<tr id="process-') == 200
    assert "50 more are on the pages of their hosts" in html
    assert page(client, "/hosts/gpu01/").count('<tr id="process-') == 250


@pytest.mark.parametrize(
    ("viewer", "advice"), [("root", "manage.py add_host"), ("bob", "An administrator adds")]
)
def test_an_empty_dashboard_says_what_to_do(
    client: Any, root: Any, bob: Any, viewer: str, advice: str
) -> None:
    client.force_login(User.objects.get(username=viewer))

    html = page(client, "/")

    assert advice in html
    assert ("/admin/monitoring/host/add/" in html) == (viewer == "root")


def test_the_hosts_page_shows_its_facts_and_what_is_not_known(client: Any, alice: Any) -> None:
    gpu = make.gpu(make.host("gpu01"))
    data.answer(
        gpu.host,
        [data.reading(gpu)],
        data={
            "logins": [],
            "logins_source": None,
            "cpu_percent": None,
            "sections": {"logins": {"state": "error", "fault": "x", "reason": "No who here."}},
        },
    )
    client.force_login(alice)

    html = page(client, "/hosts/gpu01/")

    assert "215 of 465 GiB" in html
    assert re.search(r"<dt>CPU</dt><dd>–", html)
    assert re.search(r"Logged in</h2>\s*<p class=\"muted\">Not known", html)
    assert "Logins: No who here." in html


def test_the_chart_has_one_column_per_gpu_and_gaps(client: Any, alice: Any) -> None:
    host = make.host("gpu01")
    first, second = make.gpu(host), make.gpu(host)
    start = timezone.now() - dt.timedelta(minutes=10)
    for seconds, values in [(0, (1.0, 2.0)), (5, (3.0, None)), (300, (5.0, 6.0))]:
        HostSample.objects.create(
            host=host,
            taken_at=start + dt.timedelta(seconds=seconds),
            gpus={
                gpu.uuid: [value, None, None, None, None, None]
                for gpu, value in zip((first, second), values, strict=True)
            },
        )
    client.force_login(alice)

    columns = client.get("/fragments/hosts/gpu01/chart/").json()

    assert [one["label"] for one in columns["series"]] == ["GPU 0", "GPU 1"]
    assert columns["series"][0]["values"] == [1, 3, None, 5]
    assert columns["series"][1]["values"] == [2, None, None, 6]
    assert len(columns["times"]) == 4
    assert columns["times"][0] == pytest.approx(start.timestamp())


def test_moments_are_shown_in_the_persons_zone(client: Any, db: None) -> None:
    since = dt.datetime(2026, 7, 1, 12, 0, tzinfo=dt.UTC)
    gpu = make.gpu(make.host("gpu01", state_since=since, state="unreachable", reason="Off."))
    data.answer(gpu.host, [data.reading(gpu)])
    for zone, clock in [("Asia/Tokyo", "1 Jul 21:00"), ("Europe/Warsaw", "1 Jul 14:00")]:
        client.force_login(make.user(time_zone=zone))
        assert f"Since {clock}" in page(client, "/")


def test_navigation_marks_the_page_and_shows_the_console_to_staff_only(
    client: Any, alice: Any, root: Any
) -> None:
    client.force_login(alice)
    assert '<a href="/" aria-current="page">Dashboard</a>' in page(client, "/")
    assert 'href="/admin/"' not in page(client, "/")
    client.force_login(root)
    assert '<a href="/admin/">Console</a>' in page(client, "/")
    assert '<a href="/admin/" aria-current="page">Console</a>' in page(client, "/admin/")


def test_pages_forbid_inline_code_and_foreign_places(client: Any, alice: Any) -> None:
    add_host("gpu01")
    client.force_login(alice)

    for path in ("/", "/hosts/gpu01/", "/account/"):
        response = client.get(path)
        policy = response["Content-Security-Policy"]
        assert "unsafe-inline" not in policy
        assert "unsafe-eval" not in policy
        html = response.content.decode()
        assert not re.search(r"\sstyle=|\son[a-z]+=|<style|javascript:", html)
        assert not re.search(r'(?:src|href)="(?:https?:)?//', html)


def test_missing_pages_are_in_the_products_own_words(client: Any, alice: Any) -> None:
    client.force_login(alice)

    response = client.get("/nowhere/")

    assert response.status_code == 404
    assert "There is no such page" in response.content.decode()


def test_a_host_that_never_answered_has_a_page_of_dashes(client: Any, alice: Any) -> None:
    make.gpu(make.host("gpu01", state=Host.State.PENDING, last_good_at=None))
    client.force_login(alice)

    html = page(client, "/hosts/gpu01/")

    assert "It has not been probed yet." in html
    assert "– of 40 GiB" in html
    assert "<meter" not in html
    assert "last good answer never" in html
