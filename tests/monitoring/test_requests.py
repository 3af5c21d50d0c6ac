"""Requests to hosts: rows that are answered once, whoever rings and however often."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from django_q.models import OrmQ

from monitoring import requests
from monitoring.models import HostRequest
from tests import make

pytestmark = pytest.mark.django_db

answers: list[int] = []


def good(request: HostRequest) -> dict[str, Any]:
    answers.append(request.pk)
    return {"ok": True, "findings": []}


def bad(request: HostRequest) -> None:
    raise requests.RequestFailed("The host is asleep.")


def broken(request: HostRequest) -> None:
    raise KeyError("a bug")


@pytest.fixture(autouse=True)
def handlers(settings: Any) -> None:
    answers.clear()
    here = "tests.monitoring.test_requests"
    settings.REQUEST_HANDLERS = {
        "check_host": f"{here}.good",
        "bad": f"{here}.bad",
        "broken": f"{here}.broken",
    }


def test_asking_rings_the_actions_cluster() -> None:
    request = requests.ask("check_host", host=make.host())
    queued = OrmQ.objects.get()
    assert queued.key == "actions"
    assert (queued.func(), queued.task["args"]) == (
        "monitoring.tasks.answer_request",
        (request.pk,),
    )


def test_a_request_is_answered_once_however_often_it_rings() -> None:
    request = requests.ask("check_host", host=make.host())
    requests.answer(request.pk)
    requests.answer(request.pk)
    request.refresh_from_db()
    assert (request.state, answers) == (HostRequest.State.DONE, [request.pk])


@pytest.mark.parametrize(
    ("kind", "reason"), [("bad", "The host is asleep."), ("broken", "inside TensorHive")]
)
def test_a_failure_is_one_sentence_for_the_person(kind: str, reason: str) -> None:
    request = requests.ask(kind, host=make.host())
    requests.answer(request.pk)
    request.refresh_from_db()
    assert request.state == HostRequest.State.FAILED
    assert reason in request.reason


def test_waiting_ends_with_the_answer_or_the_time() -> None:
    request = requests.ask("check_host", host=make.host())
    assert requests.is_open(requests.wait(request, seconds=0.1))
    requests.answer(request.pk)
    assert requests.wait(request, seconds=5).state == HostRequest.State.DONE


def test_the_sweep_rings_again_and_ends_what_was_interrupted() -> None:
    now = timezone.now()
    waiting, running, old = (requests.ask("check_host", host=make.host()) for _ in range(3))
    HostRequest.objects.filter(pk=waiting.pk).update(created_at=now - dt.timedelta(seconds=30))
    HostRequest.objects.filter(pk=running.pk).update(
        state="running", claimed_at=now - dt.timedelta(minutes=3)
    )
    HostRequest.objects.filter(pk=old.pk).update(created_at=now - dt.timedelta(days=2))
    OrmQ.objects.all().delete()
    requests.sweep(now)
    assert [row.task["args"] for row in OrmQ.objects.all()] == [(waiting.pk,)]
    running.refresh_from_db()
    assert running.state == HostRequest.State.FAILED
    assert not HostRequest.objects.filter(pk=old.pk).exists()


def test_the_sweep_forgets_soon_what_the_product_asked_itself(root: Any) -> None:
    own = requests.ask("check_host", host=make.host())
    asked = requests.ask("check_host", host=make.host(), requested_by=root)
    for request in (own, asked):
        requests.answer(request.pk)
    requests.sweep(timezone.now() + dt.timedelta(minutes=11))
    assert list(HostRequest.objects.all()) == [asked]


def test_the_check_of_the_api_waits_and_comes_back_for_the_answer(
    client: Client, root: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requests, "PATIENCE", 0.1)
    monkeypatch.setattr(requests.wait, "__kwdefaults__", {"seconds": 0.1})
    host = make.host()
    client.force_login(root)
    first = client.post(f"/api/v1/hosts/{host.pk}/check/")
    assert (first.status_code, first.json()) == (202, {"state": "waiting"})
    requests.answer(HostRequest.objects.get().pk)
    second = client.post(f"/api/v1/hosts/{host.pk}/check/")
    assert (second.status_code, second.json()["ok"]) == (200, True)
    assert HostRequest.objects.count() == 1


def test_only_administrators_check_hosts(client: Client, alice: Any) -> None:
    client.force_login(alice)
    assert client.post(f"/api/v1/hosts/{make.host().pk}/check/").status_code == 403
    assert not HostRequest.objects.exists()
