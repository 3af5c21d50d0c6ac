"""What Prometheus is told: base units, gaps for what is not known, nothing without the token."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families

from tests import make

pytestmark = pytest.mark.django_db

TOKEN = "scrape-me"


@pytest.fixture(autouse=True)
def token(settings: Any) -> None:
    settings.METRICS_TOKEN = TOKEN


def scrape(client: Client) -> dict[str, list[tuple[dict[str, str], float]]]:
    answer = client.get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
    assert answer.status_code == 200
    return {
        family.name: [(dict(sample.labels), sample.value) for sample in family.samples]
        for family in text_string_to_metric_families(answer.content.decode())
    }


def seen(**gpu_fields: Any) -> Any:
    gpu = make.gpu(make.host("gpu01", last_good_at=timezone.now()))
    described = {"uuid": gpu.uuid, "index": 0, "name": gpu.name, **gpu_fields}
    make.snapshot(gpu.host, data={"gpus": [described], "processes": [], "cpu_percent": 40.0})
    return gpu


def test_values_come_in_base_units(client: Client) -> None:
    gpu = seen(utilization_percent=37.0, memory_used_mib=1024)
    found = scrape(client)
    labels = {"host": "gpu01", "gpu": "0", "uuid": gpu.uuid, "model": gpu.name}
    assert found["tensorhive_gpu_utilization_ratio"] == [(labels, 0.37)]
    assert found["tensorhive_gpu_memory_used_bytes"] == [(labels, 1024 * 2**20)]
    assert found["tensorhive_host_cpu_ratio"] == [({"host": "gpu01"}, 0.4)]
    assert found["tensorhive_gpu_processes"] == [(labels, 0)]


def test_what_is_not_known_is_a_gap(client: Client) -> None:
    seen(utilization_percent=None, fan_percent=None)
    found = scrape(client)
    assert found["tensorhive_gpu_utilization_ratio"] == []
    assert found["tensorhive_gpu_fan_ratio"] == []


def test_old_values_are_left_out_and_their_age_is_told(client: Client) -> None:
    gpu = seen(utilization_percent=37.0)
    gpu.host.last_good_at = timezone.now() - dt.timedelta(minutes=5)
    gpu.host.save()
    found = scrape(client)
    assert found["tensorhive_host_up"] == [({"host": "gpu01"}, 0)]
    assert found["tensorhive_host_data_age_seconds"][0][1] > 299
    assert found["tensorhive_gpu_utilization_ratio"] == []


def test_a_lost_gpu_is_told(client: Client) -> None:
    gpu = make.gpu(make.host("gpu01"), state="lost")
    assert scrape(client)["tensorhive_gpu_lost"] == [({"host": "gpu01", "uuid": gpu.uuid}, 1)]


@pytest.mark.parametrize("sent", ["", "Bearer", "Bearer wrong", f"Basic {TOKEN}", "Bearer é"])
def test_without_the_token_nothing_is_told(client: Client, sent: str) -> None:
    seen()
    answer = client.get("/metrics", headers={"Authorization": sent})
    assert (answer.status_code, b"tensorhive_" in answer.content) == (401, False)


def test_without_a_token_in_the_settings_the_address_is_closed(
    client: Client, settings: Any
) -> None:
    settings.METRICS_TOKEN = ""
    answer = client.get("/metrics", headers={"Authorization": "Bearer "})
    assert answer.status_code == 404


def test_a_scrape_costs_the_same_with_more_hosts(
    client: Client, django_assert_max_num_queries: Any
) -> None:
    for _ in range(10):
        gpu = make.gpu()
        make.snapshot(gpu.host, data={"gpus": [{"uuid": gpu.uuid, "index": 0, "name": "x"}]})
    with django_assert_max_num_queries(3):
        scrape(client)


def test_the_dashboard_for_grafana_asks_only_for_what_is_told(client: Client) -> None:
    seen(utilization_percent=1.0)
    told = set(scrape(client))
    path = Path(__file__).resolve().parents[2] / "docs" / "grafana-dashboard.json"
    panels = json.loads(path.read_text())["panels"]
    asked = {
        word
        for panel in panels
        for query in panel["targets"]
        for word in query["expr"].replace("(", " ").replace("{", " ").split()
        if word.startswith("tensorhive_")
    }
    assert asked
    assert asked <= told
