"""The policy: one row, changed by administrators, in force at once."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.test import Client

from accounts.models import User
from monitoring.models import AuditEntry
from reservations.models import Policy
from reservations.services.policy import change_policy, current_policy
from reservations.wording import iso_duration, spoken_length

pytestmark = pytest.mark.django_db

POLICY = "/api/v1/policy/"


@pytest.fixture(autouse=True)
def policy(db: None) -> Policy:
    """The row, also after tests that empty all tables."""
    return current_policy()


@pytest.fixture
def administrator(client: Client, root: User) -> Client:
    client.force_login(root)
    return client


def patch(client: Client, body: Any) -> Any:
    return client.patch(POLICY, body, content_type="application/json")


def test_a_fresh_installation_warns_nobody_and_kills_nothing(administrator: Client) -> None:
    Policy.objects.all().delete()
    assert administrator.get(POLICY).json() == {
        "enforcement_level": 1,
        "dry_run": True,
        "warn_terminals": True,
        "mail_intruder": True,
        "mail_owner": True,
        "mail_administrators": True,
        "kill": "never",
        "grace_minutes": 10,
        "min_length": "PT30M",
        "max_length": "P8D",
        "horizon": "P90D",
        "step": "PT5M",
        "max_gpus_at_once": None,
        "max_hours_per_week": None,
        "short_notice_hours": None,
        "time_zone": "UTC",
    }


@pytest.mark.parametrize(("who", "status"), [("nobody", 401), ("alice", 403), ("root", 200)])
@pytest.mark.parametrize("method", ["get", "patch"])
def test_the_policy_is_for_administrators(
    client: Client, alice: User, root: User, who: str, method: str, status: int
) -> None:
    if who != "nobody":
        client.force_login({"alice": alice, "root": root}[who])
    answer = getattr(client, method)(POLICY, {}, content_type="application/json")
    assert answer.status_code == status


@pytest.mark.parametrize("method", ["post", "put", "delete"])
def test_the_policy_is_neither_made_nor_deleted(administrator: Client, method: str) -> None:
    assert getattr(administrator, method)(POLICY).status_code == 405


def test_changes_are_kept_and_audited(administrator: Client) -> None:
    answer = patch(administrator, {"max_length": "P1DT12H", "dry_run": False})
    assert answer.status_code == 200, answer.content
    assert answer.json()["max_length"] == "P1DT12H"
    assert current_policy().max_length == dt.timedelta(hours=36)
    entry = AuditEntry.objects.get(action="policy.change")
    assert entry.actor_name == "root"
    assert entry.changes == {
        "max_length": ["8 days, 0:00:00", "1 day, 12:00:00"],
        "dry_run": [True, False],
    }


def test_the_same_value_is_no_change(administrator: Client) -> None:
    patch(administrator, {"step": "PT5M"})
    assert not AuditEntry.objects.exists()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("enforcement_level", 3),
        ("enforcement_level", "1"),
        ("enforcement_level", True),
        ("dry_run", "false"),
        ("dry_run", 0),
        ("dry_run", None),
        ("kill", "always"),
        ("grace_minutes", 0),
        ("grace_minutes", 1.5),
        ("grace_minutes", 10**20),
        ("min_length", "PT0S"),
        ("min_length", "-PT30M"),
        ("min_length", 1800),
        ("min_length", "1800"),
        ("min_length", "00:30:00"),
        ("min_length", "P999999999999D"),
        ("max_length", "P9999D"),
        ("horizon", "PT0S"),
        ("step", "PT0S"),
        ("step", "PT7M"),
        ("step", "PT1S"),
        ("max_gpus_at_once", 0),
        ("max_gpus_at_once", -1),
        ("max_gpus_at_once", 10**9),
        ("max_hours_per_week", 10**9),
        ("short_notice_hours", 10**9),
        ("time_zone", "Mars/Base"),
        ("time_zone", "UTC\x00"),
    ],
)
def test_values_that_make_no_sense_are_refused_beside_their_field(
    administrator: Client, field: str, value: Any
) -> None:
    before = Policy.objects.values().get()
    answer = patch(administrator, {field: value})
    assert answer.status_code == 400, answer.content
    assert field in answer.json()
    assert Policy.objects.values().get() == before


def test_the_longest_is_not_below_the_shortest(administrator: Client) -> None:
    answer = patch(administrator, {"max_length": "PT10M"})
    assert answer.status_code == 400
    assert "must not be below the shortest" in answer.json()["detail"]


def test_services_refuse_what_the_api_refuses(root: User) -> None:
    with pytest.raises(ValidationError):
        change_policy(actor=root, step=dt.timedelta(minutes=7))


def test_the_console_changes_the_policy_with_audit(administrator: Client) -> None:
    address = "/admin/reservations/policy/"
    assert administrator.get(address)["Location"] == f"{address}1/change/"
    form = {
        "enforcement_level": "2",
        "dry_run": "on",
        "warn_terminals": "on",
        "min_length": "00:30:00",
        "max_length": "8 00:00:00",
        "horizon": "90 00:00:00",
        "step": "00:05:00",
        "max_gpus_at_once": "4",
        "time_zone": "UTC",
    }
    assert administrator.post(f"{address}1/change/", form).status_code == 302
    assert current_policy().max_gpus_at_once == 4
    entry = AuditEntry.objects.get(action="policy.change")
    assert entry.changes == {"enforcement_level": [1, 2], "max_gpus_at_once": [None, 4]}
    refused = administrator.post(f"{address}1/change/", {**form, "step": "00:07:00"})
    assert "divides the day evenly" in refused.text


@pytest.mark.parametrize(
    ("length", "iso", "spoken"),
    [
        (dt.timedelta(minutes=30), "PT30M", "30 minutes"),
        (dt.timedelta(days=8), "P8D", "8 days"),
        (dt.timedelta(hours=25), "P1DT1H", "1 day 1 hour"),
        (dt.timedelta(seconds=61), "PT1M1S", "1 minute 1 second"),
    ],
)
def test_lengths_are_written_for_programs_and_for_people(
    length: dt.timedelta, iso: str, spoken: str
) -> None:
    assert (iso_duration(length), spoken_length(length)) == (iso, spoken)
    assert iso_duration(dt.timedelta()) == "PT0S"
