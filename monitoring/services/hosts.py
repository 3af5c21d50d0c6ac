"""Every change of hosts by people: one function per change, each with its audit entry."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone

from monitoring import audit, hooks
from monitoring.models import Host, HostKey

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser

_PLACE = ("address", "port", "jump_address", "jump_port")
EDITABLE = ("name", *_PLACE, "user", "jump_user", "is_enabled", "in_maintenance")


@transaction.atomic
def add(*, actor: AbstractBaseUser | None, **fields: Any) -> Host:
    """Add a host. It stays `pending` until its key is accepted. Raises ValidationError."""
    host = Host(**fields)
    _refuse_own_jump(host)
    host.full_clean()
    host.state_since = timezone.now()
    host.reason = "Not looked at yet."
    host.save()
    audit.record(
        actor=actor,
        action="host.add",
        target=host,
        changes={field: [None, getattr(host, field)] for field in EDITABLE},
    )
    hooks.collect("AFTER_ACCESS_CHANGE")
    return host


@transaction.atomic
def change(host: Host, *, actor: AbstractBaseUser | None, **fields: Any) -> Host:
    """Change a host's settings; another address or port needs its key confirmed anew.

    Only fields in EDITABLE. An unchanged value is no change. Raises ValidationError.
    """
    before = Host.objects.select_for_update().get(pk=host.pk)
    changes = {
        field: [getattr(before, field), value]
        for field, value in fields.items()
        if field in EDITABLE and getattr(before, field) != value
    }
    for field, (_, value) in changes.items():
        setattr(host, field, value)
    if not changes:
        return host
    _refuse_own_jump(host)
    host.full_clean()
    _restate(host, set(changes))
    host.save()
    audit.record(actor=actor, action="host.change", target=host, changes=changes)
    if changes.keys() & {"is_enabled", "in_maintenance"}:
        hooks.collect("AFTER_ACCESS_CHANGE")
    return host


@transaction.atomic
def request_probe(host: Host) -> None:
    """Have the watch look at the host at its next tick, whatever its back-off says."""
    Host.objects.filter(pk=host.pk).update(probe_requested_at=timezone.now())


def parse_jump(text: str) -> dict[str, Any]:
    """USER@HOST:PORT (port optional, IPv6 in brackets) as the jump fields of a host.

    Raises ValidationError.
    """
    user, separator, place = text.rpartition("@")
    if not separator or not user or not place:
        raise ValidationError(
            {"jump_address": "Give the jump host as USER@HOST or USER@HOST:PORT."}
        )
    address, port = place, "22"
    if place.startswith("["):
        address, _, rest = place[1:].partition("]")
        port = rest.removeprefix(":") or port
    elif place.count(":") == 1:
        address, _, port = place.partition(":")
    if not port.isascii() or not port.isdigit():
        raise ValidationError({"jump_port": f"“{port[:20]}” is not a port number."})
    return {"jump_user": user, "jump_address": address, "jump_port": int(port)}


def _refuse_own_jump(host: Host) -> None:
    if host.jump_address and (host.jump_address, host.jump_port) == (host.address, host.port):
        raise ValidationError({"jump_address": "A host cannot be its own jump host."})


def _restate(host: Host, changed: set[str]) -> None:
    """Give the host the state that its switches mean; anything else waits for the next look."""
    now = timezone.now()
    if not host.is_enabled:
        state, reason = Host.State.DISABLED, "Disabled by an administrator; it is not probed."
    elif host.in_maintenance:
        state, reason = Host.State.MAINTENANCE, "In maintenance; it is not probed or bookable."
    elif changed & {*_PLACE, "user", "jump_user", "is_enabled", "in_maintenance"}:
        state, reason = Host.State.PENDING, "Changed by an administrator; the next look follows."
        host.probe_requested_at, host.failures_in_a_row = now, 0
    else:
        return
    if host.state != state:
        host.state_since = now
    host.state, host.reason = state, reason


def set_key_unknown(host: Host, key: HostKey) -> None:
    """The host showed a key that nobody accepted yet; it waits for an administrator."""
    Host.objects.filter(pk=host.pk).update(
        state=Host.State.KEY_UNKNOWN,
        reason=(
            f"Its key {key.fingerprint} is not accepted yet. An administrator compares and accepts"
            " it in the console."
        ),
        state_since=timezone.now(),
    )


@transaction.atomic
def delete(host: Host, *, actor: AbstractBaseUser | None) -> None:
    """Delete a host that never showed a GPU. Raises ValidationError for one with history."""
    if host.gpus.exists():
        raise ValidationError("History hangs on this host's GPUs. Disable it instead.")
    audit.record(actor=actor, action="host.delete", target=host)
    host.delete()
