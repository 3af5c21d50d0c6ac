"""People, groups and grants over HTTP."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from accounts.models import Grant, User
from accounts.services.grants import access_of, ensure_open_grant
from monitoring.models import AuditEntry
from tests import make

pytestmark = pytest.mark.django_db

GRANTS = "/api/v1/grants/"
BEGIN = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


@pytest.fixture(autouse=True)
def only_what_the_test_grants(db: None) -> None:
    Grant.objects.all().delete()


def signed_in(person: User | None) -> Client:
    client = Client()
    if person is not None:
        client.force_login(person)
    return client


def body(**fields: Any) -> dict[str, Any]:
    return {
        "name": "Students at night",
        "everyone": True,
        "everything": True,
        "starts_at": "2026-01-01T00:00:00Z",
        **fields,
    }


def post(client: Client, fields: dict[str, Any]) -> Any:
    return client.post(GRANTS, fields, content_type="application/json")


NIGHT = {"weekdays": [1, 7], "starts_at": "22:00", "ends_at": "06:00", "time_zone": "Europe/Warsaw"}


def test_a_grant_is_given_back_as_it_was_sent(root: User, alice: User) -> None:
    host = make.host("gpu01")
    gpu = make.gpu(make.host("gpu02"))
    Group.objects.create(name="students")
    wanted = body(
        everyone=False,
        everything=False,
        users=["alice"],
        groups=["students"],
        gpus=[gpu.uuid],
        hosts=[host.name],
        windows=[NIGHT, {**NIGHT, "starts_at": "00:00", "ends_at": "24:00"}],
    )
    answer = post(signed_in(root), wanted)
    assert answer.status_code == 201, answer.content
    grant = Grant.objects.get()
    assert answer.json() == {
        **wanted,
        "id": grant.pk,
        "starts_at": "2026-01-01T00:00:00.000000Z",
        "ends_at": None,
    }
    assert AuditEntry.objects.get().action == "grant.create"
    [access] = access_of(alice)
    assert access.gpus == {gpu.uuid}
    assert [sorted(window.weekdays) for window in access.windows] == [[0, 6], [0, 6]]


def test_a_host_means_all_its_gpus_later_ones_too(alice: User) -> None:
    host = make.host()
    grant = Grant.objects.create(name="host", everyone=True, starts_at=BEGIN)
    grant.hosts.add(host)
    gpus = {make.gpu(host).uuid, make.gpu(host).uuid}
    assert [access.gpus for access in access_of(alice)] == [gpus]


def test_an_end_at_midnight_is_the_end_of_the_day(root: User) -> None:
    window = {**NIGHT, "starts_at": "08:00", "ends_at": "00:00"}
    answer = post(signed_in(root), body(windows=[window]))
    assert answer.json()["windows"][0]["ends_at"] == "24:00"


def test_what_is_not_sent_stays(root: User) -> None:
    grant = post(signed_in(root), body(windows=[NIGHT])).json()
    address = f"{GRANTS}{grant['id']}/"
    changed = signed_in(root).patch(
        address, {"ends_at": "2027-01-01T00:00:00Z"}, content_type="application/json"
    )
    assert changed.json() == {**grant, "ends_at": "2027-01-01T00:00:00.000000Z"}
    assert list(AuditEntry.objects.get(action="grant.change").changes) == ["ends_at"]
    signed_in(root).patch(address, {"windows": [NIGHT]}, content_type="application/json")
    assert AuditEntry.objects.filter(action="grant.change").count() == 1


def test_deleting_is_audited_and_no_open_grant_comes_back(root: User) -> None:
    grant = post(signed_in(root), body()).json()
    assert signed_in(root).delete(f"{GRANTS}{grant['id']}/").status_code == 204
    assert AuditEntry.objects.get(action="grant.delete").actor_name == "root"
    ensure_open_grant(BEGIN)
    assert not Grant.objects.exists()


def test_a_fresh_installation_gets_the_open_grant_once() -> None:
    ensure_open_grant(BEGIN)
    ensure_open_grant(BEGIN)
    grant = Grant.objects.get()
    assert (grant.name, grant.everyone, grant.everything) == ("Everyone, everything", True, True)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", ""),
        ("name", "x" * 81),
        ("name", "a\u202eb"),
        ("name", 7),
        ("everyone", "true"),
        ("everything", 1),
        ("users", ["nobody-there"]),
        ("users", "alice"),
        ("users", ["a\x00"]),
        ("groups", ["none"]),
        ("gpus", ["GPU-none"]),
        ("hosts", [5]),
        ("starts_at", "2026-01-01T00:00:00"),
        ("starts_at", None),
        ("ends_at", "later"),
        ("windows", {}),
        ("windows", [{}]),
        ("windows", [{**NIGHT, "weekdays": []}]),
        ("windows", [{**NIGHT, "weekdays": [0]}]),
        ("windows", [{**NIGHT, "weekdays": ["1"]}]),
        ("windows", [{**NIGHT, "starts_at": "24:00"}]),
        ("windows", [{**NIGHT, "starts_at": "06:00"}]),
        ("windows", [{**NIGHT, "ends_at": "25:00"}]),
        ("windows", [{**NIGHT, "ends_at": 360}]),
        ("windows", [{**NIGHT, "time_zone": "Mars/Base"}]),
    ],
)
def test_bad_values_are_refused_beside_their_field(root: User, field: str, value: Any) -> None:
    answer = post(signed_in(root), body(**{field: value}))
    assert answer.status_code == 400, answer.content
    assert field in answer.json()
    assert not Grant.objects.exists()


@pytest.mark.parametrize(
    ("fields", "word"), [({"everyone": False}, "people"), ({"everything": False}, "GPUs")]
)
def test_a_grant_names_somebody_and_something(
    root: User, fields: dict[str, Any], word: str
) -> None:
    answer = post(signed_in(root), body(**fields))
    assert answer.status_code == 400
    assert word in str(answer.json())


def test_a_grant_ends_after_it_starts_and_its_name_is_its_own(root: User) -> None:
    assert post(signed_in(root), body(ends_at="2025-01-01T00:00:00Z")).status_code == 400
    assert post(signed_in(root), body()).status_code == 201
    assert "name" in post(signed_in(root), body()).json()


@pytest.mark.parametrize(
    ("who", "statuses"),
    [
        ("nobody", [401, 401, 401, 401, 401, 401, 401, 401]),
        ("alice", [200, 200, 403, 403, 403, 403, 403, 200]),
        ("root", [200, 200, 400, 200, 204, 200, 200, 200]),
    ],
)
def test_who_may_do_what(who: str, statuses: list[int], alice: User, root: User) -> None:
    grant = make.everyone_everything()
    client = signed_in({"nobody": None, "alice": alice, "root": root}[who])
    one = f"{GRANTS}{grant.pk}/"
    json: dict[str, Any] = {"content_type": "application/json"}
    answers = [
        client.get(GRANTS),
        client.get(one),
        client.post(GRANTS, {}, **json),
        client.patch(one, {}, **json),
        client.delete(one),
        client.get("/api/v1/users/"),
        client.get(f"/api/v1/users/{alice.pk}/"),
        client.get("/api/v1/users/me/"),
    ]
    assert [answer.status_code for answer in answers] == statuses


def test_people_read_the_grants_about_them(alice: User, bob: User, root: User) -> None:
    students = Group.objects.create(name="students")
    alice.groups.add(students)
    for name, fields in {"all": {"everyone": True}, "group": {}, "bob": {}}.items():
        grant = Grant.objects.create(name=name, starts_at=BEGIN, everything=True, **fields)
        grant.groups.set([students] if name == "group" else [])
        grant.users.set([bob] if name == "bob" else [])

    def seen(person: User) -> list[str]:
        return [row["name"] for row in signed_in(person).get(GRANTS).json()["results"]]

    assert seen(alice) == ["all", "group"]
    assert seen(bob) == ["all", "bob"]
    assert seen(root) == ["all", "bob", "group"]
    hidden = Grant.objects.get(name="bob")
    assert signed_in(alice).get(f"{GRANTS}{hidden.pk}/").status_code == 404


def test_people_read_themselves_and_their_groups(alice: User) -> None:
    alice.groups.add(Group.objects.create(name="students"))
    Group.objects.create(name="staff")
    me = signed_in(alice).get("/api/v1/users/me/").json()
    assert (me["username"], me["groups"]) == ("alice", ["students"])
    assert "password" not in me
    rows = signed_in(alice).get("/api/v1/groups/").json()["results"]
    assert [row["name"] for row in rows] == ["students"]


@pytest.mark.parametrize("path", ["grants", "users", "groups"])
def test_lists_take_a_fixed_number_of_queries(root: User, path: str) -> None:
    client = signed_in(root)
    counts = []
    for rows in (2, 20):
        for number in range(rows):
            person, group = make.user(), Group.objects.create(name=f"group {rows} {number}")
            person.groups.add(group)
            grant = Grant.objects.create(name=f"grant {rows} {number}", starts_at=BEGIN)
            grant.users.add(person)
            grant.groups.add(group)
            grant.gpus.add(make.gpu())
            grant.hosts.add(make.host())
            grant.windows.create(weekdays=1, starts_minute=0, ends_minute=1440)
        with CaptureQueriesContext(connection) as queries:
            assert client.get(f"/api/v1/{path}/").status_code == 200
        counts.append(len(queries))
    assert counts[0] == counts[1]


def test_judging_a_person_takes_a_fixed_number_of_queries(alice: User) -> None:
    counts = []
    for rows in (2, 20):
        for number in range(rows):
            grant = Grant.objects.create(
                name=f"grant {rows} {number}", everyone=True, starts_at=BEGIN
            )
            grant.hosts.add(make.gpu().host)
            grant.gpus.add(make.gpu())
            grant.windows.create(weekdays=1, starts_minute=0, ends_minute=1440)
        with CaptureQueriesContext(connection) as queries:
            assert access_of(alice)
        counts.append(len(queries))
    assert counts[0] == counts[1]
