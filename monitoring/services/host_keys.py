"""Host keys: written down when seen, trusted only when an administrator accepts them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from typing import TYPE_CHECKING

from django.db import transaction
from django.utils import timezone

from monitoring import audit, ssh
from monitoring.models import Host, HostKey

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser


def record_seen(
    host: Host, *, address: str, port: int, lines: Iterable[str], now: dt.datetime
) -> list[HostKey]:
    """Write down the keys offered at (address, port); known ones get a new `seen_at`.

    `lines` are OpenSSH public key lines without the host's name. Nothing becomes trusted.
    """
    keys = []
    for line in lines:
        key_type, public_key = line.split()[:2]
        key, _ = HostKey.objects.update_or_create(
            host=host,
            address=address,
            port=port,
            key_type=key_type,
            public_key=public_key,
            defaults={"seen_at": now, "fingerprint": ssh.fingerprint(line)},
        )
        keys.append(key)
    return keys


def pending(host: Host) -> list[HostKey]:
    """Keys last seen at the host or its jump host that nobody accepted, newest first."""
    return [
        key
        for key in host.keys.filter(accepted_at=None).order_by("-seen_at")
        if (key.address, key.port) in _places(host)
    ]


@transaction.atomic
def accept(key: HostKey, *, actor: AbstractBaseUser | None) -> None:
    """Trust this key from now on, in place of what was trusted at the same address and port.

    Keys of other types that were offered in the same look stay beside it. The host is probed again
    at once.
    """
    now = timezone.now()
    host = Host.objects.select_for_update().get(pk=key.host_id)
    there = host.keys.filter(address=key.address, port=key.port).exclude(pk=key.pk)
    replaced = list(there.exclude(accepted_at=None).exclude(seen_at=key.seen_at))
    HostKey.objects.filter(pk__in=[old.pk for old in replaced]).delete()
    key.accepted_at = now
    key.accepted_by = actor.get_username() if actor is not None else ""
    key.save(update_fields=["accepted_at", "accepted_by"])
    audit.record(
        actor=actor,
        action="host.accept_key",
        target=host,
        changes={"fingerprint": [[old.fingerprint for old in replaced], key.fingerprint]},
    )
    Host.objects.filter(pk=host.pk).update(
        state=Host.State.PENDING,
        reason=f"The host key {key.fingerprint} was accepted; the first look follows.",
        state_since=now,
        failures_in_a_row=0,
        probe_requested_at=now,
    )


def accept_all_pending(host: Host, *, actor: AbstractBaseUser | None) -> list[HostKey]:
    """Accept what was last offered at the host and at its jump host. Returns the keys."""
    newest: dict[tuple[str, int], dt.datetime] = {}
    waiting = pending(host)
    for key in waiting:
        newest.setdefault((key.address, key.port), key.seen_at)
    accepted = [key for key in waiting if key.seen_at == newest[key.address, key.port]]
    for key in accepted:
        accept(key, actor=actor)
    return accepted


def _places(host: Host) -> set[tuple[str, int]]:
    places = {(host.address, host.port)}
    if host.jump_address:
        places.add((host.jump_address, host.jump_port))
    return places
