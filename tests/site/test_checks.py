"""The checks at the start: each fault is found, and a sound installation has none."""

from __future__ import annotations

import dataclasses
import datetime as dt
import socket
from pathlib import Path
from typing import Any

import pytest
from django.core.checks import run_checks
from django.db import connection
from django.utils import timezone

from monitoring import ssh
from monitoring.models import Heartbeat
from tensorhive_site import checks


def found(*, deploy: bool = False) -> set[str]:
    names = [message.id or "" for message in run_checks(include_deployment_checks=deploy)]
    return {name for name in names if name.startswith("tensorhive")}


@pytest.fixture
def keys(data_dir: Path) -> Path:
    """The two keys as `init` makes them."""
    ssh.generate_key(data_dir / "keys" / "observing", "observing")
    ssh.generate_key(data_dir / "keys" / "acting", "acting")
    return data_dir / "keys"


@pytest.mark.usefixtures("keys")
def test_a_sound_installation_has_no_fault() -> None:
    assert found() == set()


@pytest.mark.usefixtures("data_dir")
def test_keys_that_init_has_yet_to_make_are_no_fault() -> None:
    assert found() == set()


@pytest.mark.parametrize("name", ["observing", "acting"])
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660])
def test_a_key_that_others_can_read_stops_the_start(keys: Path, name: str, mode: int) -> None:
    (keys / name).chmod(mode)
    assert found() == {"tensorhive.E001"}


def test_an_open_directory_of_keys_stops_the_start(keys: Path) -> None:
    keys.chmod(0o755)
    assert found() == {"tensorhive.E001"}


def test_a_key_that_is_a_link_stops_the_start(keys: Path) -> None:
    (keys / "acting").rename(keys / "elsewhere")
    (keys / "acting").symlink_to(keys / "elsewhere")
    assert found() == {"tensorhive.E001"}


def test_the_web_process_looks_for_no_keys(keys: Path, settings: Any) -> None:
    (keys / "acting").chmod(0o666)
    settings.ROLE = "web"
    assert found() == set()


@pytest.mark.parametrize("name", ["watch", "actions", "slow"])
def test_a_longer_task_needs_a_longer_retry(settings: Any, name: str) -> None:
    longer = dataclasses.replace(settings.CLUSTER_SIZES[name], timeout=10_000)
    settings.CLUSTER_SIZES = {**settings.CLUSTER_SIZES, name: longer}
    assert "tensorhive.E002" in found()


def test_mail_without_a_limit_stops_the_start(settings: Any) -> None:
    settings.EMAIL_TIMEOUT = None
    assert "tensorhive.E003" in found()


def test_a_cache_of_each_process_its_own_is_warned_of(settings: Any) -> None:
    assert "tensorhive.W001" in found(deploy=True)
    backend = "django.core.cache.backends.filebased.FileBasedCache"
    settings.CACHES = {"default": {"BACKEND": backend, "LOCATION": "/nonexistent"}}
    assert "tensorhive.W001" not in found(deploy=True)


@pytest.mark.parametrize(
    ("address", "is_https", "is_warned"),
    [
        ("http://127.0.0.1:8000", False, False),
        ("http://localhost:8000", False, False),
        ("https://gpus.example.org", True, False),
        ("http://gpus.example.org", False, True),
    ],
)
def test_passwords_in_the_clear_are_warned_of(
    settings: Any, address: str, is_https: bool, is_warned: bool
) -> None:
    settings.PUBLIC_URL, settings.IS_HTTPS = address, is_https
    assert ("tensorhive.W002" in found(deploy=True)) == is_warned


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("machine", "age_seconds", "is_refused"),
    [
        pytest.param("another-machine", 1, True, id="a-second-machine-works"),
        pytest.param("another-machine", 86_400, False, id="a-former-name-of-this-one"),
        pytest.param(socket.gethostname(), 1, False, id="this-machine"),
    ],
)
def test_clusters_of_a_second_machine_do_not_start_on_sqlite(
    machine: str, age_seconds: int, is_refused: bool
) -> None:
    beat_at = timezone.now() - dt.timedelta(seconds=age_seconds)
    for name in ("watch", "of-an-older-version"):
        Heartbeat.objects.create(
            cluster=name, machine=machine, process_id=1, version="1", beat_at=beat_at
        )
    messages = checks.sqlite_has_one_machine(None, databases=["default"])
    refused = is_refused and connection.vendor == "sqlite"
    assert [message.id for message in messages] == (["tensorhive.E004"] if refused else [])
    assert all(machine in message.msg for message in messages)
