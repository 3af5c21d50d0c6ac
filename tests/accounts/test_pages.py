"""Signing in and out, and one's own account."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.cache import cache

from accounts.tokens import LoginThrottle
from monitoring.models import AuditEntry
from tests import make

pytestmark = pytest.mark.django_db


def test_signing_in_leads_to_the_page_one_wanted(client: Any, alice: Any) -> None:
    response = client.post(
        "/login/", {"username": "alice", "password": make.PASSWORD, "next": "/account/"}
    )

    assert (response.status_code, response.url) == (302, "/account/")


def test_signing_in_never_leads_to_another_site(client: Any, alice: Any) -> None:
    response = client.post(
        "/login/",
        {"username": "alice", "password": make.PASSWORD, "next": "https://example.org/"},
    )

    assert response.url == "/"


def test_a_wrong_password_is_refused_with_a_sentence(client: Any, alice: Any) -> None:
    response = client.post("/login/", {"username": "alice", "password": "wrong"})

    assert response.status_code == 200
    assert 'role="alert"' in response.content.decode()
    assert "_auth_user_id" not in client.session


def test_signing_out_ends_the_session(client: Any, alice: Any) -> None:
    client.force_login(alice)

    assert client.get("/logout/").status_code == 405
    assert client.post("/logout/").url == "/login/"
    assert client.get("/").status_code == 302


def test_a_person_changes_e_mail_and_zone_and_it_is_recorded(client: Any, alice: Any) -> None:
    client.force_login(alice)

    response = client.post("/account/", {"email": "a@example.org", "time_zone": "Asia/Tokyo"})

    assert response.url == "/account/"
    alice.refresh_from_db()
    assert (alice.email, alice.time_zone) == ("a@example.org", "Asia/Tokyo")
    entry = AuditEntry.objects.get(action="user.change_details")
    assert entry.actor == alice
    assert entry.changes == {"email": ["", "a@example.org"], "time_zone": ["UTC", "Asia/Tokyo"]}
    assert "Asia/Tokyo" in client.get("/account/").content.decode()


def test_saving_without_a_change_records_nothing(client: Any, alice: Any) -> None:
    client.force_login(alice)

    client.post("/account/", {"email": alice.email, "time_zone": alice.time_zone})

    assert not AuditEntry.objects.exists()


@pytest.mark.parametrize(
    "fields",
    [
        {"email": "not an address", "time_zone": "UTC"},
        {"email": "", "time_zone": "Mars/Olympus"},
    ],
)
def test_what_makes_no_sense_is_refused(client: Any, alice: Any, fields: dict[str, str]) -> None:
    client.force_login(alice)

    response = client.post("/account/", fields)

    assert response.status_code == 200
    assert "errorlist" in response.content.decode()
    alice.refresh_from_db()
    assert (alice.email, alice.time_zone) == ("", "UTC")


def test_only_ones_own_e_mail_and_zone_can_be_changed_here(client: Any, alice: Any) -> None:
    client.force_login(alice)

    client.post(
        "/account/",
        {"email": "", "time_zone": "UTC", "unix_login": "root", "is_staff": "on", "username": "x"},
    )

    alice.refresh_from_db()
    assert (alice.unix_login, alice.is_staff, alice.username) == (None, False, "alice")


def test_a_zone_set_elsewhere_stays_a_choice(client: Any, db: None) -> None:
    person = make.user(time_zone="CET")
    client.force_login(person)

    client.post("/account/", {"email": "a@example.org", "time_zone": "CET"})

    person.refresh_from_db()
    assert (person.email, person.time_zone) == ("a@example.org", "CET")


def test_changing_the_password_keeps_one_signed_in_and_is_recorded(client: Any, alice: Any) -> None:
    client.force_login(alice)
    new = "entirely different words"

    response = client.post(
        "/account/password/",
        {"old_password": make.PASSWORD, "new_password1": new, "new_password2": new},
    )

    assert response.url == "/account/"
    assert client.get("/account/").status_code == 200
    alice.refresh_from_db()
    assert alice.check_password(new)
    entry = AuditEntry.objects.get(action="user.change_password")
    assert entry.changes == {}


def test_the_unix_login_is_shown(client: Any, db: None) -> None:
    client.force_login(make.user("anna", unix_login="akowalska"))

    assert "<code>akowalska</code>" in client.get("/account/").content.decode()


def test_a_forged_form_is_refused_in_plain_words(alice: Any) -> None:
    from django.test import Client

    client = Client(enforce_csrf_checks=True)
    client.force_login(alice)

    response = client.post("/account/", {"email": "", "time_zone": "UTC"})

    assert response.status_code == 403
    assert "Please try again" in response.content.decode()


@pytest.mark.parametrize("path", ["/login/", "/admin/login/"])
@pytest.mark.parametrize("guesser", [None, "bob"], ids=["anonymous", "signed in"])
def test_passwords_are_guessed_slowly_on_pages_too(
    client: Any, alice: Any, bob: Any, monkeypatch: Any, path: str, guesser: str | None
) -> None:
    monkeypatch.setattr(LoginThrottle, "THROTTLE_RATES", {"login": "3/min"})
    cache.clear()
    if guesser:
        client.force_login(bob)
    for _ in range(3):
        assert "Too many" not in guess(client, path, "wrong")

    assert "Too many" in guess(client, path, make.PASSWORD)
    cache.clear()


def guess(client: Any, path: str, password: str) -> str:
    return client.post(path, {"username": "alice", "password": password}).content.decode()
