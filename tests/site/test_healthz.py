"""`/healthz`: what is fresh, what is not, and what nobody outside should read there."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.db import OperationalError, connection
from django.test import Client
from django.utils import timezone

from monitoring.models import Heartbeat, Host, WatchLease
from monitoring.services import heartbeats
from tensorhive_site import health
from tests import make

NOW = dt.datetime(2026, 5, 4, 12, tzinfo=dt.UTC)
FRESH, LATE = dt.timedelta(seconds=1), dt.timedelta(hours=1)


def beat(cluster: str, age: dt.timedelta, machine: str = "manager") -> None:
    Heartbeat.objects.create(
        cluster=cluster, machine=machine, process_id=7, version="1", beat_at=NOW - age
    )


def all_beat(age: dt.timedelta = FRESH) -> None:
    for name in django_settings.CLUSTER_SIZES:
        beat(name, age)


def lease(age: dt.timedelta | None, shard: int = 0) -> None:
    beat_at = None if age is None else NOW - age
    WatchLease.objects.create(shard=shard, expires_at=NOW, beat_at=beat_at)


def bad_parts() -> dict[str, str]:
    return {name: part["reason"] for name, part in health.report(NOW).items() if not part["ok"]}


@pytest.mark.django_db
@pytest.mark.parametrize("name", ["watch", "actions", "slow"])
def test_a_cluster_is_fresh_as_long_as_the_watchdog_is_patient(name: str) -> None:
    patience = heartbeats.patience(name)
    for other in django_settings.CLUSTER_SIZES:
        beat(other, patience if other == name else FRESH)
    assert bad_parts() == {}
    Heartbeat.objects.filter(cluster=name).update(beat_at=NOW - patience - FRESH)
    assert bad_parts() == {f"cluster_{name}": "Its last heartbeats are missing."}
    Heartbeat.objects.filter(cluster=name).delete()
    assert bad_parts() == {f"cluster_{name}": "It has not run any task yet."}
    assert health.report(NOW)[f"cluster_{name}"]["age_seconds"] is None


@pytest.mark.django_db
def test_one_machine_that_works_is_enough() -> None:
    all_beat(LATE)
    for name in django_settings.CLUSTER_SIZES:
        beat(name, FRESH, machine="second")
    assert bad_parts() == {}


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("host_state", "ages", "shards", "reason"),
    [
        pytest.param(None, [], 1, None, id="without-hosts"),
        pytest.param(Host.State.DISABLED, [], 1, None, id="only-disabled-hosts"),
        pytest.param(Host.State.OK, [FRESH], 1, None, id="watched"),
        pytest.param(Host.State.UNREACHABLE, [FRESH], 1, None, id="a-host-is-down"),
        pytest.param(Host.State.OK, [], 1, "The hosts are not watched yet.", id="never-watched"),
        pytest.param(Host.State.OK, [None], 1, "The hosts are not watched yet.", id="no-beat"),
        pytest.param(Host.State.OK, [LATE], 1, "Nobody watches the hosts.", id="old-beat"),
        pytest.param(Host.State.OK, [FRESH, LATE], 2, "Nobody watches the hosts.", id="one-shard"),
        pytest.param(Host.State.OK, [FRESH, LATE], 1, None, id="a-shard-that-is-no-more"),
    ],
)
def test_probes_are_as_fresh_as_the_oldest_watch(
    settings: Any,
    host_state: str | None,
    ages: list[dt.timedelta | None],
    shards: int,
    reason: str | None,
) -> None:
    settings.WATCH_SHARDS = shards
    all_beat()
    if host_state:
        is_enabled = host_state != Host.State.DISABLED
        make.host(state=host_state, is_enabled=is_enabled, last_probe_at=NOW)
    for shard, age in enumerate(ages):
        lease(age, shard)
    assert bad_parts() == ({} if reason is None else {"probes": reason})


@pytest.mark.django_db
def test_a_host_that_nobody_looks_at_is_late_whatever_its_state() -> None:
    all_beat()
    lease(FRESH)
    make.host(last_probe_at=NOW)
    # The longest back-off of a host that does not answer is no delay of ours.
    slow = make.host(state=Host.State.UNREACHABLE, last_probe_at=NOW - dt.timedelta(seconds=90))
    assert bad_parts() == {}
    Host.objects.filter(pk=slow.pk).update(last_probe_at=NOW - dt.timedelta(minutes=3))
    assert bad_parts() == {"probes": "1 of 2 hosts were not looked at for too long."}
    Host.objects.filter(pk=slow.pk).update(is_enabled=False)
    assert bad_parts() == {}
    never = make.host()
    Host.objects.filter(pk=never.pk).update(created_at=NOW - dt.timedelta(minutes=3))
    assert list(bad_parts()) == ["probes"]


@pytest.mark.django_db
def test_the_page_says_200_or_503_to_everybody_and_names_no_host(client: Client) -> None:
    make.host("secret-host")
    sick = client.get("/healthz")
    assert (sick.status_code, sick.json()["ok"]) == (503, False)
    assert "secret-host" not in sick.content.decode()
    now = timezone.now()
    WatchLease.objects.create(shard=0, expires_at=now, beat_at=now)
    for name in django_settings.CLUSTER_SIZES:
        Heartbeat.objects.create(
            cluster=name, machine="manager", process_id=7, version="1", beat_at=now
        )
    well = client.get("/healthz")
    assert (well.status_code, well.json()["ok"]) == (200, True)
    assert "no-store" in well["Cache-Control"]
    assert client.post("/healthz").status_code == 405


def test_a_database_that_does_not_answer_is_a_reason_not_an_error(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> None:
        raise OperationalError("could not connect to server: secret details")

    monkeypatch.setattr(connection, "ensure_connection", refuse)
    answer = client.get("/healthz")
    assert answer.status_code == 503
    reason = "The database does not answer."
    assert answer.json() == {
        "ok": False,
        "database": {"ok": False, "age_seconds": None, "reason": reason},
    }
