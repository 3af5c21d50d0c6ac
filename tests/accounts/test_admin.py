"""The console for people and grants: what it saves, and what it writes into the audit."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from django.test import Client

from accounts.models import Grant, User
from monitoring.models import AuditEntry
from tests import make

pytestmark = pytest.mark.django_db


@pytest.fixture
def console(client: Client, root: User) -> Client:
    client.force_login(root)
    return client


def grant_form(windows: list[dict[str, Any]] | None = None, **fields: Any) -> dict[str, Any]:
    form = {
        "name": "Night shift",
        "everyone": "on",
        "everything": "on",
        "starts_at_0": "2026-01-01",
        "starts_at_1": "00:00:00",
        "windows-TOTAL_FORMS": len(windows or []),
        "windows-INITIAL_FORMS": 0,
    }
    for number, window in enumerate(windows or []):
        form |= {f"windows-{number}-{name}": value for name, value in window.items()}
    return {**form, **fields}


NIGHT = {"days": ["0", "4"], "begins": "22:00", "ends": "06:00", "time_zone": "Europe/Warsaw"}


def test_a_grant_with_weekly_hours_is_saved_and_audited(console: Client) -> None:
    answer = console.post("/admin/accounts/grant/add/", grant_form([NIGHT]))
    assert answer.status_code == 302, answer.context["errors"]
    window = Grant.objects.get(name="Night shift").windows.get()
    assert (window.weekdays, window.starts_minute, window.ends_minute) == (0b10001, 1320, 360)
    entry = AuditEntry.objects.get(action="grant.create")
    assert entry.actor_name == "root"
    assert entry.changes["windows"] == [None, ["Mon Fri 22:00–06:00 Europe/Warsaw"]]


@pytest.mark.parametrize(
    ("window", "sentence"),
    [
        pytest.param({"begins": "25:00"}, "from 00:00 to 24:00", id="no such hour"),
        pytest.param({"begins": "06:00"}, "must have a length", id="no length"),
        pytest.param({"begins": "24:00"}, "next day instead", id="begins at the end"),
        pytest.param({"days": []}, "This field is required", id="no day"),
        pytest.param({"time_zone": "Mars/Base"}, "not a known time zone", id="no such zone"),
    ],
)
def test_hours_that_make_no_sense_are_refused(
    console: Client, window: dict[str, Any], sentence: str
) -> None:
    answer = console.post("/admin/accounts/grant/add/", grant_form([{**NIGHT, **window}]))
    assert answer.status_code == 200
    assert sentence in answer.text
    assert not Grant.objects.filter(name="Night shift").exists()


def test_a_grant_for_nobody_is_refused(console: Client) -> None:
    answer = console.post("/admin/accounts/grant/add/", grant_form(everyone=""))
    assert "Name people or groups, or choose everyone." in answer.text


def test_saving_a_grant_unchanged_writes_nothing(console: Client) -> None:
    console.post("/admin/accounts/grant/add/", grant_form())
    grant = Grant.objects.get(name="Night shift")
    AuditEntry.objects.all()._raw_delete("default")
    console.post(f"/admin/accounts/grant/{grant.pk}/change/", grant_form())
    assert not AuditEntry.objects.exists()
    console.post(f"/admin/accounts/grant/{grant.pk}/change/", grant_form(name="Day shift"))
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.changes) == ("grant.change", {"name": ["Night shift", "Day shift"]})


def test_deleting_a_grant_is_audited(console: Client) -> None:
    grant = make.everyone_everything()
    console.post(f"/admin/accounts/grant/{grant.pk}/delete/", {"post": "yes"})
    assert not Grant.objects.exists()
    assert AuditEntry.objects.get(action="grant.delete").target == "Everyone, everything"


def person_form(person: User, **fields: Any) -> dict[str, Any]:
    form = {
        "username": person.username,
        "email": person.email,
        "time_zone": person.time_zone,
        "is_active": "on",
    }
    return {**form, **fields}


def test_an_administrator_sets_the_unix_login_and_the_audit_tells(
    console: Client, alice: User, bob: User
) -> None:
    address = f"/admin/accounts/user/{alice.pk}/change/"
    assert console.post(address, person_form(alice, unix_login="al")).status_code == 302
    alice.refresh_from_db()
    assert alice.login_on_hosts == "al"
    entry = AuditEntry.objects.get(action="person.change")
    assert entry.changes == {"unix_login": [None, "al"]}
    taken = console.post(
        f"/admin/accounts/user/{bob.pk}/change/", person_form(bob, unix_login="AL")
    )
    assert "Another person has this Unix login." in taken.text


def test_a_new_password_is_audited_but_never_written(console: Client, alice: User) -> None:
    secret = "a-rather-long-secret"
    answer = console.post(
        f"/admin/accounts/user/{alice.pk}/password/",
        {"password1": secret, "password2": secret, "usable_password": "true"},
    )
    assert answer.status_code == 302
    entry = AuditEntry.objects.get(action="person.set_password")
    assert entry.target == "alice"
    assert secret not in str(AuditEntry.objects.values_list("changes", "reason"))


def test_people_are_not_deleted(console: Client, alice: User) -> None:
    address = f"/admin/accounts/user/{alice.pk}/delete/"
    assert console.post(address, {"post": "yes"}).status_code == 403


def test_a_new_person_gets_their_login(console: Client) -> None:
    secret = "a-rather-long-secret"
    form = {"username": "carol", "unix_login": "caro", "password1": secret, "password2": secret}
    answer = console.post("/admin/accounts/user/add/", {**form, "usable_password": "true"})
    assert answer.status_code == 302
    assert User.objects.get(username="carol").unix_login == "caro"


@pytest.mark.parametrize("rows", [2, 12])
def test_lists_take_a_fixed_number_of_queries(
    console: Client, rows: int, django_assert_max_num_queries: Any
) -> None:
    host = make.host()
    for number in range(rows):
        grant = Grant.objects.create(
            name=f"grant {number}", starts_at=dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
        )
        grant.users.add(make.user())
        grant.gpus.add(make.gpu(host))
    with django_assert_max_num_queries(12):
        console.get("/admin/accounts/grant/")
    with django_assert_max_num_queries(8):
        console.get("/admin/accounts/user/")
