"""From a host's row to what the SSH door needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from monitoring import ssh
from monitoring.models import Host, HostKey


def target_of(host: Host, *, key: str = "observing", user: str | None = None) -> ssh.Target:
    """Where and how to log in at a host, trusting the keys accepted for its address and port.

    `key` is "observing" (as the host's observing account) or "acting", then with the login `user`.
    A jump host is always entered with the observing key. One query.
    """
    return _target(host, _pins([host]), key=key, user=user)


def targets_of(hosts: Sequence[Host]) -> dict[int, ssh.Target]:
    """The targets of the observing account for many hosts, by their keys. One query."""
    pins = _pins(hosts)
    return {host.pk: _target(host, pins, key="observing", user=None) for host in hosts}


_Pins = Mapping[tuple[int, str, int], tuple[str, ...]]


def _target(host: Host, pins: _Pins, *, key: str, user: str | None) -> ssh.Target:
    if settings.ROLE == "web":
        raise ImproperlyConfigured("The web process never opens SSH: ask with monitoring.requests.")
    jump = None
    if host.jump_address:
        jump = ssh.Target(
            ssh.Address(host.jump_address, host.jump_port, host.jump_user),
            pins.get((host.pk, host.jump_address, host.jump_port), ()),
            settings.OBSERVING_KEY,
        )
    return ssh.Target(
        ssh.Address(host.address, host.port, user or host.user),
        pins.get((host.pk, host.address, host.port), ()),
        _key_path(key),
        jump,
    )


def _key_path(key: str) -> Path:
    return settings.ACTING_KEY if key == "acting" else settings.OBSERVING_KEY


def _pins(hosts: Sequence[Host]) -> _Pins:
    """(host, address, port) -> the lines of the keys accepted there."""
    pins: dict[tuple[int, str, int], tuple[str, ...]] = {}
    for key in HostKey.objects.filter(host__in=hosts).exclude(accepted_at=None):
        place = (key.host_id, key.address, key.port)
        pins[place] = (*pins.get(place, ()), key.line)
    return pins
