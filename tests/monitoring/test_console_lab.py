"""Hosts in the console and on the command line, on real hosts: add, compare, accept, check."""

from __future__ import annotations

import datetime as dt
import io
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from monitoring import requests
from monitoring.models import AuditEntry, Host, HostRequest
from monitoring.services import host_keys
from tests import make
from tests.lab import Lab, LabHost
from tests.monitoring.watching import add, use_keys_of

pytestmark = [pytest.mark.lab, pytest.mark.django_db]


@pytest.fixture(autouse=True)
def keys(lab: Lab, settings: Any) -> None:
    use_keys_of(lab, settings)
    settings.SSH_DEADLINE = dt.timedelta(seconds=5)


@pytest.fixture
def console(client: Client, root: Any) -> Client:
    client.force_login(root)
    return client


def run(*words: Any) -> str:
    out = io.StringIO()
    call_command(*words, stdout=out, stderr=out)
    return out.getvalue()


def add_by_command(lab: Lab, host: LabHost, *options: str) -> str:
    place = ("--address", host.address, "--port", str(host.port), "--user", lab.observer)
    return run("add_host", host.name, *place, *options)


def answer_all() -> None:
    for request in HostRequest.objects.filter(state="waiting"):
        requests.answer(request.pk)


# -- Commands -----------------------------------------------------------------------------------


def test_add_host_shows_the_fingerprint_and_logs_in_nowhere(lab: Lab) -> None:
    machine = lab["gpu01"]
    machine.forget_log()
    with pytest.raises(CommandError, match="accepts its key") as refused:
        add_by_command(lab, machine)
    assert refused.value.returncode == 1
    host = Host.objects.get(name="gpu01")
    assert (host.state, machine.fingerprint in host.reason) == ("key_unknown", True)
    assert machine.authentication_attempts() == []


def test_add_host_with_accept_key_checks_the_host(lab: Lab) -> None:
    said = add_by_command(lab, lab["gpu01"], "--accept-key")
    assert "4 found" in said
    assert "is watched from now on" in said
    assert AuditEntry.objects.filter(action="host.accept_key").count() == 1


def test_the_same_add_host_accepts_the_key_later_but_never_another(lab: Lab) -> None:
    with pytest.raises(CommandError, match="by the same command with --accept-key"):
        add_by_command(lab, lab["gpu01"])
    assert "is watched from now on" in add_by_command(lab, lab["gpu01"], "--accept-key")
    with pytest.raises(CommandError, match="There is a host gpu01 already"):
        add_by_command(lab, lab["gpu01"], "--accept-key")


def test_add_host_does_not_take_another_place_for_a_host_that_it_knows(lab: Lab) -> None:
    make.host("gpu01", address="127.0.9.9")
    with pytest.raises(CommandError, match="There is a host gpu01 already"):
        add_by_command(lab, lab["gpu01"], "--accept-key")
    assert Host.objects.get().address == "127.0.9.9"


def test_add_host_through_a_jump_host_asks_for_both_keys(lab: Lab) -> None:
    inner, outer = lab["gpu01"], lab["gpu02"]
    jump = f"{lab.observer}@{outer.address}:{outer.port}"
    said = add_by_command(lab, inner, "--jump", jump, "--accept-key")
    assert "is watched from now on" in said
    host = Host.objects.get(name="gpu01")
    assert {key.fingerprint for key in host.keys.all()} == {inner.fingerprint, outer.fingerprint}


@pytest.mark.parametrize(
    "words",
    [
        ("bad name", "--address", "127.0.1.1", "--user", "x"),
        ("h", "--address", "root@127.0.1.1", "--user", "x"),
        ("h", "--address", "-oProxyCommand=x", "--user", "x"),
        ("h", "--address", "127.0.1.1", "--user", "-x"),
        ("h", "--address", "127.0.1.1", "--user", "x", "--port", "0"),
        ("h", "--address", "127.0.1.1", "--user", "x", "--jump", "nowhere"),
    ],
)
def test_add_host_refuses_what_is_no_host_in_one_sentence(words: tuple[str, ...]) -> None:
    with pytest.raises(CommandError) as refused:
        # As one word each, so that the parser takes what begins with a dash for a value.
        run("add_host", words[0], *(f"{a}={b}" for a, b in zip(words[1::2], words[2::2])))  # noqa: B905
    assert str(refused.value)
    assert not Host.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_check_hosts_says_which_fails(lab: Lab) -> None:
    assert "no hosts yet" in run("check_hosts")
    add(lab, lab["gpu01"])
    assert "ok" in run("check_hosts")
    add(lab, lab["gpu02"])
    lab["gpu02"].stop()
    with pytest.raises(CommandError, match="1 of 2 failed: gpu02"):
        run("check_hosts")
    with pytest.raises(CommandError, match="No such host: gpu77"):
        run("check_hosts", "gpu77")


def test_ssh_key_prints_a_line_that_lets_in(lab: Lab, data_dir: Any) -> None:
    from django.conf import settings

    from monitoring import ssh

    ssh.generate_key(settings.OBSERVING_KEY, "tensorhive-observing")
    ssh.generate_key(settings.ACTING_KEY, "tensorhive-acting")
    out = io.StringIO()
    call_command("ssh_key", stdout=out, stderr=io.StringIO())
    lab["gpu01"].authorize(lab.observer, out.getvalue().strip())
    assert "4 found" in add_by_command(lab, lab["gpu01"], "--accept-key")
    assert ssh.public_line(settings.ACTING_KEY) in run("ssh_key", "--acting")


def test_ssh_key_without_keys_says_what_makes_them(data_dir: Any) -> None:
    with pytest.raises(CommandError, match=r"manage\.py init"):
        run("ssh_key")


# -- Console ------------------------------------------------------------------------------------


def fields_of(lab: Lab, host: LabHost, **changed: Any) -> dict[str, Any]:
    values = {
        "name": host.name,
        "address": host.address,
        "port": host.port,
        "user": lab.observer,
        "jump_address": "",
        "jump_port": 22,
        "jump_user": "",
        "is_enabled": "on",
        "keys-TOTAL_FORMS": 0,
        "keys-INITIAL_FORMS": 0,
    }
    return {**values, **changed}


def test_a_host_is_added_compared_and_accepted_in_the_console(lab: Lab, console: Client) -> None:
    machine = lab["gpu01"]
    console.post("/admin/monitoring/host/add/", fields_of(lab, machine))
    host = Host.objects.get(name="gpu01")
    check = f"/admin/monitoring/host/{host.pk}/check/"
    answer_all()
    assert machine.fingerprint in console.get(check).content.decode()
    (key,) = host_keys.pending(host)
    accept = f"/admin/monitoring/host/{host.pk}/accept-key/{key.pk}/"
    assert machine.fingerprint in console.get(accept).content.decode()
    host.refresh_from_db()
    assert host.keys.exclude(accepted_at=None).count() == 0
    console.post(accept)
    answer_all()
    page = console.get(check).content.decode()
    assert "Everything that watching needs works" in page
    entry = AuditEntry.objects.get(action="host.accept_key")
    assert entry.actor_name == "root"


def test_a_changed_key_is_shown_beside_the_trusted_one(lab: Lab, console: Client) -> None:
    machine = lab["gpu01"]
    host, old = add(lab, machine), machine.fingerprint
    machine.change_key()
    machine.forget_log()
    console.post(f"/admin/monitoring/host/{host.pk}/check/")
    answer_all()
    assert machine.authentication_attempts() == []
    (key,) = host_keys.pending(host)
    page = console.get(f"/admin/monitoring/host/{host.pk}/accept-key/{key.pk}/").content.decode()
    assert old in page
    assert machine.fingerprint in page
    assert "somebody may be in between" in page
    console.post(f"/admin/monitoring/host/{host.pk}/accept-key/{key.pk}/")
    assert [one.fingerprint for one in host.keys.exclude(accepted_at=None)] == [machine.fingerprint]


def test_another_address_needs_its_key_accepted_anew(lab: Lab, console: Client) -> None:
    host = add(lab, lab["gpu01"])
    changed = fields_of(lab, lab["gpu02"], name="gpu01")
    changed |= {"keys-TOTAL_FORMS": 1, "keys-INITIAL_FORMS": 1, "keys-0-id": host.keys.get().pk,
                "keys-0-host": host.pk}  # fmt: skip
    console.post(f"/admin/monitoring/host/{host.pk}/change/", changed)
    host.refresh_from_db()
    assert (host.address, host.state) == (lab["gpu02"].address, "pending")
    lab["gpu02"].forget_log()
    console.post(f"/admin/monitoring/host/{host.pk}/check/")
    answer_all()
    assert lab["gpu02"].authentication_attempts() == []


@pytest.mark.parametrize(
    ("action", "field", "value", "state"),
    [
        ("disable", "is_enabled", False, "disabled"),
        ("begin_maintenance", "in_maintenance", True, "maintenance"),
    ],
)
def test_hosts_are_switched_by_actions_with_an_audit(
    console: Client, action: str, field: str, value: bool, state: str
) -> None:
    host = make.host()
    console.post("/admin/monitoring/host/", {"action": action, "_selected_action": [str(host.pk)]})
    host.refresh_from_db()
    assert (getattr(host, field), host.state) == (value, state)
    assert AuditEntry.objects.get(action="host.change").changes == {field: [not value, value]}


def test_a_host_with_history_is_not_deleted(console: Client) -> None:
    gpu = make.gpu()
    console.post(f"/admin/monitoring/host/{gpu.host.pk}/delete/", {"post": "yes"})
    assert Host.objects.filter(pk=gpu.host.pk).exists()


def test_people_see_none_of_the_console(client: Client, alice: Any) -> None:
    host = make.host()
    client.force_login(alice)
    for address in ("", f"{host.pk}/change/", f"{host.pk}/check/"):
        assert client.get(f"/admin/monitoring/host/{address}").status_code in (302, 403)
    client.post(f"/admin/monitoring/host/{host.pk}/check/")
    assert not HostRequest.objects.exists()


def test_the_list_of_hosts_costs_the_same_with_more_of_them(
    console: Client, django_assert_max_num_queries: Any
) -> None:
    for _ in range(20):
        make.gpu()
    with django_assert_max_num_queries(12):
        assert console.get("/admin/monitoring/host/").status_code == 200
