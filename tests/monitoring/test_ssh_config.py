"""Hosts out of an OpenSSH configuration: read, never obeyed."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from hypothesis import given
from hypothesis import strategies as st

from monitoring.models import AuditEntry, Host
from monitoring.ssh_config import Entry, entries

TEXT = """
# our machines
Host gate
    HostName gate.example.org
    User jumper
    Port 2200

Host gpu01 gpu02 !gpu03
    HostName=%h.example.org
    ProxyJump gate

Host "gpu03"
  hostname 192.0.2.3
  Port nonsense

Match exec "touch /tmp/canary"
    User root

Host laptop
    ProxyJump none

Host *
    User observer
    Port 22
"""


def test_aliases_come_with_what_is_said_of_them() -> None:
    assert entries(TEXT) == [
        Entry("gate", "gate.example.org", "jumper", 2200),
        Entry("gpu01", "gpu01.example.org", "observer", 22, "gate"),
        Entry("gpu02", "gpu02.example.org", "observer", 22, "gate"),
        Entry("gpu03", "192.0.2.3", "observer"),
        Entry("laptop", "laptop", "observer", 22),
    ]


def test_a_pattern_chooses() -> None:
    assert [entry.alias for entry in entries(TEXT, "gpu*")] == ["gpu01", "gpu02", "gpu03"]


@given(st.text(max_size=300))
def test_any_text_is_survived(text: str) -> None:
    for entry in entries(text):
        assert entry.alias in text


# -- The command --------------------------------------------------------------------------------


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "config"
    # Ports on which nobody listens: the import does not need the hosts to answer.
    path.write_text(TEXT.replace(".example.org", ".invalid"))
    return path


def run(*words: Any) -> str:
    out = io.StringIO()
    call_command("add_host", *words, stdout=out, stderr=out)
    return out.getvalue()


@pytest.mark.django_db
def test_hosts_are_imported_with_their_jump_hosts(config: Path) -> None:
    said = run("gpu0[12]", "--from-ssh-config", str(config))
    assert "2 hosts added" in said
    host = Host.objects.get(name="gpu01")
    assert (host.address, host.user, host.port) == ("gpu01.invalid", "observer", 22)
    assert (host.jump_user, host.jump_address, host.jump_port) == ("jumper", "gate.invalid", 2200)
    assert AuditEntry.objects.filter(action="host.add").count() == 2


@pytest.mark.django_db
def test_importing_again_adds_what_is_missing_and_says_what_was_there(config: Path) -> None:
    run("gpu01", "--from-ssh-config", str(config))
    said = run("gpu*", "--from-ssh-config", str(config), "--user", "watcher")
    assert "gpu01 is there already" in said
    assert Host.objects.get(name="gpu02").user == "watcher"


@pytest.mark.django_db
def test_what_cannot_be_a_host_is_named_and_stops_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text("Host good\n  User a\nHost bad\n  HostName -oProxyCommand=x\n  User a\n")
    with pytest.raises(CommandError, match="1 could not be added"):
        run("*", "--from-ssh-config", str(path))
    assert [host.name for host in Host.objects.all()] == ["good"]


@pytest.mark.django_db
@pytest.mark.parametrize("words", [("x", "--user", "u"), ("x", "--address", "h")])
def test_one_host_needs_address_and_user(words: tuple[str, ...]) -> None:
    with pytest.raises(CommandError, match="--address and --user"):
        run(*words)


@pytest.mark.django_db
def test_a_file_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="cannot be read"):
        run("*", "--from-ssh-config", str(tmp_path / "none"))
