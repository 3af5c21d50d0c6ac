"""From a host's row to what SSH needs: which key, which login, and which keys of hosts count."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.utils import timezone

from monitoring.models import Host, HostKey
from monitoring.services.targets import target_of, targets_of
from tests import make

pytestmark = pytest.mark.django_db


def pin(host: Host, *, key: str, accepted: bool = True, **place: Any) -> None:
    now = timezone.now()
    where = {"address": host.address, "port": host.port, **place}
    HostKey.objects.create(
        host=host,
        key_type="ssh-ed25519",
        public_key=key,
        fingerprint=f"SHA256:{key}",
        seen_at=now,
        accepted_at=now if accepted else None,
        **where,
    )


def test_only_keys_accepted_for_this_place_are_trusted() -> None:
    host = make.host(address="10.0.0.1", port=22)
    pin(host, key="accepted")
    pin(host, key="offered", accepted=False)
    pin(host, key="before-it-moved", address="10.0.0.2")
    pin(host, key="another-port", port=2222)
    pin(make.host(address="10.0.0.1"), key="another-host")
    assert target_of(host).pins == ("ssh-ed25519 accepted",)


def test_a_jump_host_has_its_own_pins_and_is_entered_with_the_observing_key(settings: Any) -> None:
    host = make.host(jump_address="10.0.0.9", jump_port=2200, jump_user="hop")
    pin(host, key="of-the-host")
    pin(host, key="of-the-jump", address="10.0.0.9", port=2200)
    target = target_of(host, key="acting", user="alice")
    assert target.jump is not None
    assert (target.pins, target.jump.pins) == (
        ("ssh-ed25519 of-the-host",),
        ("ssh-ed25519 of-the-jump",),
    )
    assert (target.key_path, target.jump.key_path) == (settings.ACTING_KEY, settings.OBSERVING_KEY)
    assert (target.address.user, target.jump.address.user) == ("alice", "hop")


def test_the_web_process_gets_no_target_and_so_no_key(settings: Any) -> None:
    host = make.host()
    settings.ROLE = "web"
    for ask in (lambda: target_of(host), lambda: targets_of([host])):
        with pytest.raises(ImproperlyConfigured, match="The web process never opens SSH"):
            ask()
