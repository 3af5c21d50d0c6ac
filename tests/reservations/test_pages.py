"""A person's own reservations, the calendar's data, the console, and what other pages are told."""

from __future__ import annotations

import datetime as dt
import json
import re
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import User
from monitoring.models import AuditEntry, Gpu, Host
from reservations.models import Reservation
from reservations.services.context import gpu_context
from tests import make

pytestmark = pytest.mark.django_db

HOUR = dt.timedelta(hours=1)


@pytest.fixture
def gpu() -> Gpu:
    return make.gpu(make.host("gpu01"))


@pytest.fixture
def page(client: Client, alice: User) -> Client:
    client.force_login(alice)
    return client


def booked(gpu: Gpu, owner: User, begin: float, end: float, **fields: Any) -> Reservation:
    now = timezone.now()
    span = {"starts_at": now + begin * HOUR, "ends_at": now + end * HOUR}
    return make.reservation(gpu, owner=owner, **span, **fields)


@pytest.mark.parametrize("path", ["/calendar/", "/reservations/"])
def test_pages_ask_to_sign_in(client: Client, path: str) -> None:
    assert client.get(path)["Location"] == f"/login/?next={path}"


def test_ones_own_reservations_are_listed_by_state(
    page: Client, alice: User, bob: User, gpu: Gpu
) -> None:
    booked(gpu, alice, -5, -3, title="Yesterday's run")
    booked(gpu, alice, -1, 1, title="Present run")
    booked(gpu, alice, 2, 3, title="Coming run")
    booked(gpu, bob, 3, 4, title="Foreign run")
    booked(gpu, alice, 5, 6, title="<b>Gone</b>", cancelled_at=timezone.now())
    answer = page.get("/reservations/")
    titles = {
        name: [row.title for row in answer.context[name]]
        for name in ("running", "upcoming", "past")
    }
    assert titles == {
        "running": ["Present run"],
        "upcoming": ["Coming run"],
        "past": ["<b>Gone</b>", "Yesterday's run"],
    }
    assert "Foreign run" not in answer.text
    assert "&lt;b&gt;Gone" in answer.text
    assert "gpu01:0" in answer.text


def test_an_empty_page_says_how_to_begin(page: Client) -> None:
    assert "You have no reservations yet" in page.get("/reservations/").text


def test_buttons_release_and_cancel(page: Client, alice: User, gpu: Gpu) -> None:
    running, upcoming = booked(gpu, alice, -1, 1), booked(gpu, alice, 2, 3)
    text = page.post(f"/reservations/{running.pk}/release/", follow=True).text
    assert "is released; the GPUs are free for others" in text
    text = page.post(f"/reservations/{upcoming.pk}/cancel/", follow=True).text
    assert "is cancelled." in text
    running.refresh_from_db()
    upcoming.refresh_from_db()
    assert running.released_at is not None
    assert upcoming.cancel_reason == "Cancelled by alice."


def test_refusals_are_shown_on_the_page(page: Client, alice: User, bob: User, gpu: Gpu) -> None:
    running, foreign = booked(gpu, alice, -1, 1), booked(gpu, bob, 2, 3)
    assert (
        "release it instead" in page.post(f"/reservations/{running.pk}/cancel/", follow=True).text
    )
    text = page.post(f"/reservations/{foreign.pk}/cancel/", follow=True).text
    assert "belongs to somebody else" in text
    assert page.post("/reservations/4711/cancel/").status_code == 404
    assert page.get(f"/reservations/{running.pk}/cancel/").status_code == 405


def test_the_calendar_is_told_what_it_needs(page: Client, gpu: Gpu) -> None:
    Gpu.objects.filter(pk=make.gpu(gpu.host).pk).update(is_retired=True)
    Host.objects.filter(pk=gpu.host_id).update(state="partial", reason="One GPU is lost.")
    text = page.get("/calendar/").text
    found = re.search(r'<script id="calendar-config"[^>]*>(.*?)</script>', text)
    assert found
    assert json.loads(found[1]) == {
        "urls": {
            "reservations": "/api/v1/reservations/",
            "gpus": "/api/v1/gpus/",
            "hosts": "/api/v1/hosts/",
        },
        "user": {"username": "alice", "is_staff": False},
        "timeZone": "UTC",
        "policy": {"min_length": "PT30M", "max_length": "P8D", "horizon": "P90D", "step": "PT5M"},
        "hosts": [
            {
                "id": gpu.host_id,
                "name": "gpu01",
                "state": "partial",
                "reason": "One GPU is lost.",
                "gpus": [
                    {
                        "uuid": gpu.uuid,
                        "index": 0,
                        "name": gpu.name,
                        "memory_total_mib": 40960,
                        "state": "ok",
                    }
                ],
            }
        ],
    }


def test_other_pages_are_told_who_has_a_gpu_now_and_next(alice: User, bob: User, gpu: Gpu) -> None:
    free = make.gpu(gpu.host)
    booked(gpu, alice, -9, -5)
    now_ = booked(gpu, alice, -1, 1, title="Now")
    booked(gpu, bob, 1, 2, cancelled_at=timezone.now())
    next_ = booked(gpu, bob, 24 * 60, 24 * 61, title="Next")
    booked(gpu, alice, 24 * 70, 24 * 71)
    with CaptureQueriesContext(connection) as queries:
        told = gpu_context(alice, [gpu, free], timezone.now())
    assert len(queries) == 1
    assert told[free.uuid] == {"reservation": None, "next_reservation": None}
    assert told[gpu.uuid] == {
        "reservation": {
            "id": now_.pk,
            "title": "Now",
            "owner": "alice",
            "starts_at": now_.starts_at,
            "ends_at": now_.ends_at,
            "is_mine": True,
        },
        "next_reservation": {
            "id": next_.pk,
            "title": "Next",
            "owner": "bob",
            "starts_at": next_.starts_at,
            "ends_at": next_.ends_at,
            "is_mine": False,
        },
    }


def test_a_reservation_ends_for_others_in_the_moment_it_ends(alice: User, gpu: Gpu) -> None:
    made = booked(gpu, alice, -1, 1)
    assert gpu_context(alice, [gpu], made.ends_at)[gpu.uuid]["reservation"] is None
    assert gpu_context(alice, [gpu], made.starts_at)[gpu.uuid]["reservation"] is not None


def test_the_console_cancels_and_releases_but_edits_nothing(
    client: Client, root: User, alice: User, gpu: Gpu
) -> None:
    client.force_login(root)
    running, upcoming = booked(gpu, alice, -1, 1), booked(gpu, alice, 2, 3)
    address = "/admin/reservations/reservation/"
    chosen = {"_selected_action": [running.pk, upcoming.pk]}
    text = client.post(address, {**chosen, "action": "cancel_selected"}, follow=True).text
    assert "release it instead" in text
    assert "1 cancelled." in text
    text = client.post(address, {**chosen, "action": "release_selected"}, follow=True).text
    assert "1 released." in text
    assert {entry.action for entry in AuditEntry.objects.all()} == {
        "reservation.cancel",
        "reservation.release",
    }
    assert client.get(f"{address}{running.pk}/change/").status_code == 200
    assert client.post(f"{address}{running.pk}/change/", {"title": "x"}).status_code == 403
    assert client.post(f"{address}{running.pk}/delete/", {"post": "yes"}).status_code == 403
    assert client.get(f"{address}?q=alice").status_code == 200


def test_the_consoles_list_takes_a_fixed_number_of_queries(
    client: Client, root: User, alice: User, gpu: Gpu
) -> None:
    client.force_login(root)
    counts = []
    for rows in (2, 20):
        for number in range(rows):
            begin = rows * 10 + number
            booked(gpu, make.user(), begin, begin + 1)
        with CaptureQueriesContext(connection) as queries:
            assert client.get("/admin/reservations/reservation/").status_code == 200
        counts.append(len(queries))
    assert counts[0] == counts[1]
