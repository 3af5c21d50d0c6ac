"""From a host's row to what the SSH door needs."""

from __future__ import annotations

from pathlib import Path

from django.conf import settings

from monitoring import ssh
from monitoring.models import Host, HostKey


def target_of(host: Host, *, key: str = "observing", user: str | None = None) -> ssh.Target:
    """Where and how to log in at a host, trusting the keys accepted for its address and port.

    `key` is "observing" (as the host's observing account) or "acting", then with the login `user`.
    A jump host is always entered with the observing key. One query.
    """
    pins = _pins(host)
    jump = None
    if host.jump_address:
        jump = ssh.Target(
            ssh.Address(host.jump_address, host.jump_port, host.jump_user),
            pins.get((host.jump_address, host.jump_port), ()),
            settings.OBSERVING_KEY,
        )
    return ssh.Target(
        ssh.Address(host.address, host.port, user or host.user),
        pins.get((host.address, host.port), ()),
        _key_path(key),
        jump,
    )


def _key_path(key: str) -> Path:
    return settings.ACTING_KEY if key == "acting" else settings.OBSERVING_KEY


def _pins(host: Host) -> dict[tuple[str, int], tuple[str, ...]]:
    """(address, port) -> the lines of the keys accepted there."""
    pins: dict[tuple[str, int], tuple[str, ...]] = {}
    for key in HostKey.objects.filter(host=host).exclude(accepted_at=None):
        place = (key.address, key.port)
        pins[place] = (*pins.get(place, ()), key.line)
    return pins
