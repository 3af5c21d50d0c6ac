"""Hosts, GPUs, processes and samples over HTTP."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from monitoring.models import Gpu, Host, HostSample
from tests import make
from tests.monitoring import data

pytestmark = pytest.mark.django_db


@pytest.fixture
def gpu() -> Gpu:
    """GPU 0 of gpu01, on which a process of alice's runs."""
    gpu = make.gpu(make.host("gpu01"))
    data.answer(gpu.host, [data.reading(gpu)], [data.process(gpu)])
    return gpu


def results(client: Any, path: str) -> list[dict[str, Any]]:
    response = client.get(f"/api/v1/{path}")
    assert response.status_code == 200, response.content
    return response.json()["results"]


@pytest.mark.parametrize(
    "path", ["hosts/", "gpus/", "processes/", "samples/?gpu=x"], ids=lambda path: path
)
def test_nothing_is_shown_without_signing_in(client: Any, path: str) -> None:
    assert client.get(f"/api/v1/{path}").status_code == 401


def test_a_host_has_its_fixed_fields(client: Any, alice: Any, gpu: Gpu) -> None:
    client.force_login(alice)

    host = results(client, "hosts/")[0]

    assert (host["name"], host["port"], host["state"]) == ("gpu01", 22, "ok")
    assert host["gpus"] == [gpu.uuid]
    assert 0 <= host["age_seconds"] < 60
    assert host["reason"] is None
    assert {"id", "address", "since"} <= host.keys()
    assert client.get(f"/api/v1/hosts/{host['id']}/").json()["name"] == "gpu01"


def test_a_gpu_is_found_by_its_uuid_with_what_is_known(client: Any, alice: Any, gpu: Gpu) -> None:
    client.force_login(alice)

    shown = client.get(f"/api/v1/gpus/{gpu.uuid}/").json()

    assert (shown["host"], shown["index"], shown["state"]) == ("gpu01", 0, "ok")
    assert shown["sample"]["utilization_percent"] == 50
    assert shown["sample"]["fan_percent"] is None
    assert shown["sample"]["taken_at"].endswith("Z")
    assert shown["processes"][0]["pid"] == 4242
    assert client.get("/api/v1/gpus/GPU-none/").status_code == 404


def test_a_gpu_shows_the_reservation_that_runs(client: Any, alice: Any, bob: Any, gpu: Gpu) -> None:
    make.reservation(gpu, owner=bob, title="Bob's run")
    client.force_login(alice)

    shown = client.get(f"/api/v1/gpus/{gpu.uuid}/").json()

    assert shown["reservation"]["owner"] == "bob"
    assert shown["reservation"]["title"] == "Bob's run"
    assert shown["reservation"]["is_mine"] is False


def test_old_numbers_stay_with_their_moment_and_the_state_is_unknown(
    client: Any, alice: Any
) -> None:
    long_ago = timezone.now() - dt.timedelta(minutes=10)
    host = make.host(
        "gpu01", state=Host.State.UNREACHABLE, reason="No route to host.", last_good_at=long_ago
    )
    gpu = make.gpu(host)
    data.answer(host, [data.reading(gpu)], taken_at=long_ago)
    client.force_login(alice)

    shown = client.get(f"/api/v1/gpus/{gpu.uuid}/").json()

    assert (shown["state"], shown["reason"]) == ("unknown", "No route to host.")
    assert shown["usage"] == "unknown"
    assert shown["age_seconds"] >= 600
    assert shown["sample"]["utilization_percent"] == 50
    assert dt.datetime.fromisoformat(shown["sample"]["taken_at"]) == long_ago


def test_a_gpu_without_an_answer_has_no_numbers_rather_than_zeros(client: Any, alice: Any) -> None:
    gpu = make.gpu(make.host("gpu01", state=Host.State.PENDING, last_good_at=None))
    client.force_login(alice)

    shown = client.get(f"/api/v1/gpus/{gpu.uuid}/").json()
    host = results(client, "hosts/")[0]

    assert shown["sample"] is None
    assert shown["usage"] == "unknown"
    assert host["age_seconds"] is None
    assert host["cpu_percent"] is None


FULL, NAME = "python3 train.py --token s3cret", "python3"


@pytest.mark.parametrize(
    ("viewer", "reserved_by", "confidence", "command"),
    [
        pytest.param("alice", None, "certain", FULL, id="its owner"),
        pytest.param("alice", None, "likely", NAME, id="perhaps its owner"),
        pytest.param("bob", None, "certain", NAME, id="somebody else"),
        pytest.param("bob", "bob", "certain", FULL, id="owner of the reservation"),
        pytest.param("root", None, "unknown", FULL, id="an administrator"),
    ],
)
def test_arguments_are_shown_only_to_those_who_may_read_them(
    client: Any,
    alice: Any,
    bob: Any,
    root: Any,
    gpu: Gpu,
    viewer: str,
    reserved_by: str | None,
    confidence: str,
    command: str,
) -> None:
    people = {"alice": alice, "bob": bob, "root": root}
    data.answer(gpu.host, [data.reading(gpu)], [data.process(gpu, owner_confidence=confidence)])
    if reserved_by:
        make.reservation(gpu, owner=people[reserved_by])
    client.force_login(people[viewer])

    assert results(client, "processes/")[0]["command"] == command
    assert results(client, "gpus/")[0]["processes"][0]["command"] == command


def test_the_person_of_a_process_is_found_by_the_unix_login(client: Any, gpu: Gpu) -> None:
    anna = make.user("anna", unix_login="alice")
    client.force_login(anna)

    process = results(client, "processes/")[0]

    assert (process["owner"], process["person"]) == ("alice", "anna")


def test_an_owner_nobody_knows_is_null(client: Any, alice: Any, gpu: Gpu) -> None:
    unseen = data.process(gpu, login=None, uid=None, owner_confidence="unknown", command=None)
    data.answer(gpu.host, [data.reading(gpu)], [unseen])
    client.force_login(alice)

    process = results(client, "processes/")[0]

    assert (process["owner"], process["person"]) == (None, None)
    assert process["owner_confidence"] == "unknown"


def test_processes_are_filtered(client: Any, alice: Any, gpu: Gpu) -> None:
    other = make.gpu(make.host("gpu02"))
    data.answer(other.host, [data.reading(other)], [data.process(other, pid=7, login="carol")])
    client.force_login(alice)

    assert {p["pid"] for p in results(client, "processes/")} == {4242, 7}
    assert [p["pid"] for p in results(client, "processes/?host=gpu02")] == [7]
    assert [p["pid"] for p in results(client, f"processes/?gpu={gpu.uuid}")] == [4242]
    assert [p["pid"] for p in results(client, "processes/?owner=carol")] == [7]
    assert [p["pid"] for p in results(client, "processes/?person=alice")] == [4242]


def test_control_characters_from_a_host_are_replaced(client: Any, root: Any, gpu: Gpu) -> None:
    hostile = data.process(gpu, command="python3 \x1b]0;owned\x07 x", login="a\u202eb")
    data.answer(gpu.host, [data.reading(gpu)], [hostile])
    client.force_login(root)

    process = results(client, "processes/")[0]

    assert process["command"] == "python3 \ufffd]0;owned\ufffd x"
    assert process["owner"] == "a\ufffdb"


@pytest.mark.parametrize("path", ["hosts/", "gpus/", "processes/"])
def test_lists_cost_the_same_with_ten_times_the_hosts(
    client: Any, alice: Any, django_assert_num_queries: Any, path: str
) -> None:
    client.force_login(alice)
    add_hosts(2)
    with CaptureQueriesContext(connection) as few:
        assert len(results(client, f"{path}?page_size=200")) == 2
    add_hosts(18)
    with django_assert_num_queries(len(few)):
        assert len(results(client, f"{path}?page_size=200")) == 20


def add_hosts(count: int) -> None:
    for _ in range(count):
        gpu = make.gpu(make.host())
        data.answer(gpu.host, [data.reading(gpu)], [data.process(gpu)])


def samples(gpu: Gpu, start: dt.datetime, values: list[float | None], every: float = 5) -> None:
    HostSample.objects.bulk_create(
        HostSample(
            host=gpu.host,
            taken_at=start + dt.timedelta(seconds=every * number),
            gpus={gpu.uuid: [value, 1000, 10.0, 60.0, 200.0, None]},
        )
        for number, value in enumerate(values)
    )


def series(client: Any, gpu: Gpu, **query: str) -> dict[str, Any]:
    response = client.get("/api/v1/samples/", {"gpu": gpu.uuid, **query})
    assert response.status_code == 200, response.content
    return response.json()


def test_samples_are_points_of_moment_minimum_mean_and_maximum(
    client: Any, alice: Any, gpu: Gpu
) -> None:
    start = timezone.now() - dt.timedelta(minutes=5)
    samples(gpu, start, [10.0, None, 30.0])
    client.force_login(alice)

    shown = series(client, gpu)

    assert (shown["metric"], shown["unit"]) == ("utilization_percent", "percent")
    assert shown["resolution_seconds"] == 5
    assert [point[1:] for point in shown["points"]] == [[10] * 3, [None] * 3, [30] * 3]
    assert dt.datetime.fromisoformat(shown["points"][0][0]) == start


def test_silence_is_a_gap_in_the_samples(client: Any, alice: Any, gpu: Gpu) -> None:
    start = timezone.now() - dt.timedelta(minutes=5)
    samples(gpu, start, [10.0, 20.0])
    samples(gpu, start + dt.timedelta(minutes=2), [30.0])
    client.force_login(alice)

    shown = series(client, gpu, metric="memory_used_mib")

    assert [point[2] for point in shown["points"]] == [1000, 1000, None, 1000]


def test_many_samples_are_averaged_down(client: Any, alice: Any, gpu: Gpu) -> None:
    start = timezone.now() - dt.timedelta(hours=5)
    samples(gpu, start, [0.0, 100.0] * 1500)
    client.force_login(alice)

    shown = series(client, gpu, start=start.isoformat())

    assert shown["resolution_seconds"] == 10
    assert len(shown["points"]) == 1500
    assert shown["points"][0][1:] == [0, 50, 100]


def test_samples_outside_the_span_are_left_out(client: Any, alice: Any, gpu: Gpu) -> None:
    start = timezone.now() - dt.timedelta(minutes=5)
    samples(gpu, start, [10.0, 20.0, 30.0])
    client.force_login(alice)

    end = start + dt.timedelta(seconds=10)
    shown = series(client, gpu, start=start.isoformat(), end=end.isoformat())

    assert [point[2] for point in shown["points"]] == [10, 20]


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ({}, 400),
        ({"gpu": "GPU-none"}, 404),
        ({"gpu": "GPU-none", "metric": "password"}, 400),
        ({"gpu": "GPU-none", "start": "2026-01-02T00:00Z", "end": "2026-01-01T00:00Z"}, 400),
        ({"gpu": "GPU-none", "start": "2026-01-01T00:00Z", "end": "2026-02-01T00:00Z"}, 400),
        ({"gpu": "GPU-none", "end": "0001-01-01T00:30:00Z"}, 400),
        ({"gpu": "GPU-none", "start": "9999-12-31T23:59:59-14:00"}, 400),
        ({"gpu": "GPU-none", "start": "2026-01-01T00:00"}, 400),
    ],
)
def test_bad_questions_for_samples_are_refused(
    client: Any, alice: Any, query: dict[str, str], status: int
) -> None:
    client.force_login(alice)

    response = client.get("/api/v1/samples/", query)

    assert response.status_code == status
    assert response.json()["code"]


def test_moments_are_utc_whatever_the_zone_of_the_installation(
    client: Any, alice: Any, gpu: Gpu, settings: Any
) -> None:
    settings.TIME_ZONE = "Asia/Tokyo"
    client.force_login(alice)

    taken_at = results(client, "gpus/")[0]["sample"]["taken_at"]

    assert abs(dt.datetime.fromisoformat(taken_at) - timezone.now()) < dt.timedelta(minutes=5)


def test_the_schema_of_the_whole_api_is_free_of_warnings(tmp_path: Path) -> None:
    file = tmp_path / "schema.yml"

    call_command("spectacular", "--validate", "--fail-on-warn", "--file", str(file))

    schema = file.read_text()
    for path in ("hosts", "gpus", "processes", "samples"):
        assert f"/api/v1/{path}/:" in schema
