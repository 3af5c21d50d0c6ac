"""Reservations through the API: who may do what, and what answers what."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Any

import pytest
import time_machine
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from accounts.models import User
from monitoring.models import AuditEntry, Gpu
from reservations.models import Reservation
from tests import make

pytestmark = pytest.mark.django_db

NOW = dt.datetime(2026, 6, 1, 12, 0, tzinfo=dt.UTC)
HOUR = dt.timedelta(hours=1)
LIST = "/api/v1/reservations/"


@pytest.fixture(autouse=True)
def at_noon() -> Iterator[None]:
    with time_machine.travel(NOW, tick=False):
        yield


@pytest.fixture(autouse=True)
def granted(db: None) -> None:
    make.everyone_everything()


@pytest.fixture
def gpus(db: None) -> list[Gpu]:
    host = make.host("gpu01")
    return [make.gpu(host) for _ in range(3)]


def signed_in(person: User | None) -> Client:
    client = Client()
    if person is not None:
        client.force_login(person)
    return client


def hours(number: float) -> str:
    return (NOW + number * HOUR).isoformat()


def wish(*gpus: Gpu, begin: float = 1, end: float = 3, **fields: Any) -> dict[str, Any]:
    body = {
        "title": "Training",
        "gpus": [gpu.uuid for gpu in gpus],
        "starts_at": hours(begin),
        "ends_at": hours(end),
    }
    return {**body, **fields}


def post(client: Client, path: str, body: Any = None) -> Any:
    return client.post(path, body, content_type="application/json")


def patch(client: Client, reservation: Reservation, body: Any) -> Any:
    return client.patch(f"{LIST}{reservation.pk}/", body, content_type="application/json")


def booked(gpu: Gpu, owner: User, begin: float = 1, end: float = 3) -> Reservation:
    return make.reservation(
        gpu, owner=owner, starts_at=NOW + begin * HOUR, ends_at=NOW + end * HOUR
    )


def test_booking_answers_with_the_whole_reservation(alice: User, gpus: list[Gpu]) -> None:
    answer = post(signed_in(alice), LIST, wish(*gpus[:2], description="two\nlines"))
    assert answer.status_code == 201
    made = Reservation.objects.get()
    assert answer.json() == {
        "id": made.pk,
        "title": "Training",
        "description": "two\nlines",
        "project": None,
        "owner": "alice",
        "gpus": [gpu.uuid for gpu in gpus[:2]],
        "starts_at": "2026-06-01T13:00:00.000000Z",
        "ends_at": "2026-06-01T15:00:00.000000Z",
        "state": "upcoming",
        "cancel_reason": None,
        "released_at": None,
        "override_access": False,
        "usage": None,
    }


WHO = ["nobody", "owner", "other", "administrator"]
TABLE = {
    "list": ("get", "", None, [401, 200, 200, 200]),
    "see": ("get", "{id}/", None, [401, 200, 200, 200]),
    "create": ("post", "", {"title": "New"}, [401, 201, 201, 201]),
    "change": ("patch", "{id}/", {"title": "Other"}, [401, 200, 403, 200]),
    "replace": ("put", "{id}/", {"title": "Other"}, [401, 405, 405, 405]),
    "delete": ("delete", "{id}/", None, [401, 405, 405, 405]),
    "cancel": ("post", "{id}/cancel/", None, [401, 200, 403, 200]),
    "release": ("post", "{id}/release/", None, [401, 409, 403, 409]),
    "cancel by GET": ("get", "{id}/cancel/", None, [401, 405, 405, 405]),
    "unknown": ("get", "4711/", None, [401, 404, 404, 404]),
    "too large a number": ("get", "9" * 30 + "/", None, [401, 404, 404, 404]),
    "no number": ("get", "abc/", None, [404, 404, 404, 404]),
}


@pytest.mark.parametrize("who", WHO)
@pytest.mark.parametrize("deed", TABLE)
def test_who_may_do_what(
    who: str, deed: str, alice: User, bob: User, root: User, gpus: list[Gpu]
) -> None:
    made = booked(gpus[0], alice)
    person = dict(zip(WHO, [None, alice, bob, root], strict=True))[who]
    method, path, body, expected = TABLE[deed]
    if deed == "create":
        body = wish(gpus[1])
    answer = getattr(signed_in(person), method)(
        LIST + path.format(id=made.pk), body, content_type="application/json"
    )
    assert answer.status_code == expected[WHO.index(who)], answer.content
    if answer.status_code >= 400 and deed != "no number":
        said = answer.json()
        assert isinstance(said["detail"], str)
        assert isinstance(said["code"], str)


def test_what_one_may_not_see_is_not_there(alice: User, bob: User, gpus: list[Gpu]) -> None:
    """People see the reservations of the GPUs they see, and their own."""
    made = booked(gpus[0], alice)
    Gpu.objects.update(is_retired=True)
    for deed in ("", "cancel/", "release/"):
        call = signed_in(bob).get if deed == "" else signed_in(bob).post
        assert call(f"{LIST}{made.pk}/{deed}").status_code == 404
    assert patch(signed_in(bob), made, {"title": "Mine"}).status_code == 404
    assert signed_in(bob).get(LIST).json()["count"] == 0
    assert signed_in(alice).get(f"{LIST}{made.pk}/").status_code == 200


@pytest.mark.parametrize(
    ("fields", "status", "code"),
    [
        pytest.param({"begin": -1}, 422, "in_the_past", id="past"),
        pytest.param({"end": 1.25}, 422, "too_short", id="short"),
        pytest.param({"end": 200}, 422, "too_long", id="long"),
        pytest.param({"begin": 91 * 24, "end": 91 * 24 + 1}, 422, "too_far_ahead", id="far"),
        pytest.param({"begin": 1.01}, 422, "off_the_step", id="odd"),
        pytest.param({"begin": 3, "end": 1}, 422, "ends_before_start", id="backwards"),
        pytest.param({"begin": 2, "end": 2}, 422, "ends_before_start", id="no length"),
        pytest.param({"begin": 20, "end": 22}, 409, "gpu_taken", id="taken"),
        pytest.param({"owner": "bob"}, 403, "permission_denied", id="for another"),
        pytest.param({"override_access": True}, 403, "permission_denied", id="override"),
    ],
)
def test_refusals_have_status_code_and_sentence(
    alice: User, bob: User, gpus: list[Gpu], fields: dict[str, Any], status: int, code: str
) -> None:
    booked(gpus[0], bob, 20, 24)
    answer = post(signed_in(alice), LIST, wish(gpus[0], **fields))
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert answer.json()["detail"].endswith(".")
    assert Reservation.objects.count() == 1


@pytest.mark.parametrize(
    ("field", "value"),
    [
        pytest.param("title", None, id="no title"),
        pytest.param("title", "   ", id="blank title"),
        pytest.param("title", "x" * 61, id="long title"),
        pytest.param("title", 5, id="number as title"),
        pytest.param("title", True, id="boolean as title"),
        pytest.param("title", ["x"], id="list as title"),
        pytest.param("title", "a\x00b", id="NUL"),
        pytest.param("title", "a\u202eb", id="bidi"),
        pytest.param("title", "two\nlines", id="line end in a title"),
        pytest.param("description", "x" * 201, id="long description"),
        pytest.param("description", "a\u200bb", id="zero width"),
        pytest.param("starts_at", "2026-06-01T13:00:00", id="naive"),
        pytest.param("starts_at", "2026-06-01", id="date"),
        pytest.param("starts_at", "2026-02-30T13:00:00Z", id="no such day"),
        pytest.param("starts_at", "soon", id="words"),
        pytest.param("starts_at", 1780318800, id="seconds"),
        pytest.param("starts_at", None, id="null"),
        pytest.param("starts_at", "1970-01-01T00:00:00Z", id="1970"),
        pytest.param("ends_at", "9999-12-31T23:59:59-12:00", id="9999"),
        pytest.param("ends_at", "0001-01-01T00:00:00+12:00", id="year one"),
        pytest.param("gpus", [], id="no GPU"),
        pytest.param("gpus", "GPU-1", id="text for a list"),
        pytest.param("gpus", ["GPU-unknown"], id="unknown GPU"),
        pytest.param("gpus", [7], id="number for a GPU"),
        pytest.param("gpus", ["GPU\x00"], id="NUL in a GPU"),
        pytest.param("gpus", [None], id="null for a GPU"),
        pytest.param("gpus", [f"GPU-{number}" for number in range(2000)], id="2000 GPUs"),
        pytest.param("gpus", {"a": 1}, id="object for a list"),
        pytest.param("owner", "nobody-there", id="unknown person"),
        pytest.param("owner", "a\x00", id="NUL in a person"),
        pytest.param("owner", {"id": 1}, id="object for a person"),
        pytest.param("override_access", "true", id="text for a boolean"),
        pytest.param("override_access", 1, id="number for a boolean"),
    ],
)
def test_bad_values_are_refused_beside_their_field(
    root: User, gpus: list[Gpu], field: str, value: Any
) -> None:
    answer = post(signed_in(root), LIST, wish(gpus[0], **{field: value}))
    assert answer.status_code == 400, answer.content
    assert answer.json().keys() == {field, "code"}
    assert not Reservation.objects.exists()


def test_the_same_gpu_twice_is_refused(alice: User, gpus: list[Gpu]) -> None:
    answer = post(signed_in(alice), LIST, wish(gpus[0], gpus[0]))
    assert (answer.status_code, answer.json()["code"]) == (400, "duplicate")


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b'"x"', b"\xff\xfe"])
def test_a_body_that_is_no_object_is_refused(alice: User, body: bytes) -> None:
    answer = signed_in(alice).post(LIST, body, content_type="application/json")
    assert answer.status_code == 400
    assert answer.json()["code"]


def test_every_missing_field_is_named(alice: User) -> None:
    answer = post(signed_in(alice), LIST, {})
    assert answer.json().keys() == {"title", "gpus", "starts_at", "ends_at", "code"}


def test_an_administrator_books_for_somebody_else(root: User, alice: User, gpus: list[Gpu]) -> None:
    answer = post(signed_in(root), LIST, wish(gpus[0], owner="alice"))
    assert answer.json()["owner"] == "alice"
    assert AuditEntry.objects.get(action="reservation.create").actor_name == "root"


def test_upcoming_is_moved_and_running_only_prolonged(alice: User, gpus: list[Gpu]) -> None:
    upcoming, running = booked(gpus[0], alice), booked(gpus[1], alice, -1, 2)
    moved = patch(signed_in(alice), upcoming, {"starts_at": hours(4), "ends_at": hours(6)})
    assert moved.json()["starts_at"] == "2026-06-01T16:00:00.000000Z"
    assert patch(signed_in(alice), running, {"ends_at": hours(3)}).status_code == 200
    for body in ({"starts_at": hours(1)}, {"gpus": [gpus[2].uuid]}, {"ends_at": hours(-0.5)}):
        answer = patch(signed_in(alice), running, body)
        assert (answer.status_code, answer.json()["code"]) == (409, "running")


def test_what_is_over_or_cancelled_is_not_changed(alice: User, gpus: list[Gpu]) -> None:
    over = booked(gpus[0], alice, -3, -1)
    answer = patch(signed_in(alice), over, {"title": "Rewritten"})
    assert (answer.status_code, answer.json()["code"]) == (409, "finished")
    for deed in ("cancel", "release"):
        assert post(signed_in(alice), f"{LIST}{over.pk}/{deed}/").status_code == 409
    gone = booked(gpus[1], alice)
    assert post(signed_in(alice), f"{LIST}{gone.pk}/cancel/").json()["state"] == "cancelled"
    answer = patch(signed_in(alice), gone, {"title": "Rewritten"})
    assert (answer.status_code, answer.json()["code"]) == (409, "cancelled")


def test_the_owner_of_a_reservation_stays(root: User, alice: User, gpus: list[Gpu]) -> None:
    answer = patch(signed_in(root), booked(gpus[0], alice), {"owner": "root"})
    assert answer.status_code == 400
    assert "owner" in answer.json()


def test_running_is_released_not_cancelled(alice: User, gpus: list[Gpu]) -> None:
    running = booked(gpus[0], alice, -1, 2)
    answer = post(signed_in(alice), f"{LIST}{running.pk}/cancel/")
    assert answer.status_code == 409
    assert "release it instead" in answer.json()["detail"]
    answer = post(signed_in(alice), f"{LIST}{running.pk}/release/")
    assert answer.json()["state"] == "finished"
    assert answer.json()["ends_at"] == "2026-06-01T12:00:00.000000Z"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", ["over", "gone", "running", "upcoming"]),
        ("state=upcoming", ["upcoming"]),
        ("state=running", ["running"]),
        ("state=finished", ["over"]),
        ("state=cancelled", ["gone"]),
        ("owner=bob", ["over"]),
        ("owner=nobody", []),
        ("starts_before=2026-06-01T11:30:00Z", ["over", "gone", "running"]),
        ("ends_after=2026-06-01T14:00:00Z", ["upcoming"]),
        ("ends_after=2026-06-01T14:00:00%2B02:00", ["gone", "running", "upcoming"]),
        ("starts_before=2026-06-01T12:00:00Z&ends_after=2026-06-01T12:00:00Z", ["gone", "running"]),
        ("gpu={gpu}", ["over", "running"]),
        ("gpu=GPU-unknown", []),
        ("host=gpu01&state=upcoming", ["upcoming"]),
    ],
)
def test_lists_are_narrowed(
    alice: User, bob: User, gpus: list[Gpu], query: str, expected: list[str]
) -> None:
    def add(title: str, gpu: Gpu, owner: User, begin: float, end: float, **fields: Any) -> None:
        span = {"starts_at": NOW + begin * HOUR, "ends_at": NOW + end * HOUR}
        make.reservation(gpu, owner=owner, title=title, **span, **fields)

    add("over", gpus[0], bob, -5, -3)
    add("running", gpus[0], alice, -1, 2)
    add("upcoming", gpus[1], alice, 2, 4)
    add("gone", gpus[1], alice, -2, 1, cancelled_at=NOW - 3 * HOUR)
    answer = signed_in(alice).get(f"{LIST}?{query.format(gpu=gpus[0].uuid)}")
    assert [row["title"] for row in answer.json()["results"]] == expected


@pytest.mark.parametrize(
    "query",
    [
        "starts_before=2026-06-01T11:30:00",
        "starts_before=yesterday",
        "ends_after=9999-12-31T00:00:00Z",
        "state=lost",
        "owner=%00",
        "gpu=%00",
    ],
)
def test_bad_filters_are_refused_beside_their_name(alice: User, query: str) -> None:
    answer = signed_in(alice).get(f"{LIST}?{query}")
    assert answer.status_code == 400, answer.content
    assert query.partition("=")[0] in answer.json()


def queries_of(client: Client, path: str) -> int:
    with CaptureQueriesContext(connection) as queries:
        assert client.get(path).status_code == 200
    return len(queries)


@pytest.mark.parametrize(
    "path", [LIST, "/reservations/", "/calendar/", "/api/v1/gpus/"], ids=lambda path: path
)
def test_lists_take_a_fixed_number_of_queries(alice: User, gpus: list[Gpu], path: str) -> None:
    client = signed_in(alice)
    counts = []
    for rows in (2, 20):
        for number in range(rows):
            gpu = make.gpu(gpus[0].host)
            booked(gpu, alice if number % 2 else make.user(), -1, 2)
            booked(gpu, alice, 3, 4)
            booked(gpu, alice, -3, -2)
        counts.append(queries_of(client, path))
    assert counts[0] == counts[1]
    assert counts[0] <= 10


def test_booking_takes_a_fixed_number_of_queries(alice: User, gpus: list[Gpu]) -> None:
    client = signed_in(alice)
    more = [make.gpu(gpus[0].host) for _ in range(20)]
    counts = []
    for wanted in (gpus[:2], more):
        with CaptureQueriesContext(connection) as queries:
            assert post(client, LIST, wish(*wanted)).status_code == 201
        counts.append(len(queries))
    assert counts[0] == counts[1]
