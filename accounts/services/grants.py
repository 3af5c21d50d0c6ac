"""Grants: read as plain values for judging, and changed by one function each."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction

from accounts.access import Access, WeeklyWindow
from accounts.models import Grant, GrantWindow, User
from monitoring import audit, hooks, naming

_PLAIN = ("name", "everyone", "everything", "starts_at", "ends_at")
_LISTS = ("users", "groups", "gpus", "hosts")


def access_of(user: User) -> list[Access]:
    """What the person was granted, as values for accounts.access. A fixed number of queries."""
    grants = Grant.objects.for_person(user).prefetch_related("gpus", "hosts__gpus", "windows")
    return [_as_access(grant) for grant in grants]


@transaction.atomic
def create(
    *, actor: User | None, windows: Sequence[Mapping[str, Any]] = (), **fields: Any
) -> Grant:
    """Create a grant. `fields` as the model's, lists as lists of rows. Raises ValidationError."""
    grant = Grant(**{name: fields[name] for name in _PLAIN if name in fields})
    _save(grant, {name: fields.get(name, ()) for name in _LISTS}, windows)
    audit.record(actor=actor, action="grant.create", target=grant, changes=_shown(fields))
    hooks.collect("AFTER_ACCESS_CHANGE")
    return grant


@transaction.atomic
def change(
    grant: Grant,
    *,
    actor: User | None,
    windows: Sequence[Mapping[str, Any]] | None = None,
    **fields: Any,
) -> Grant:
    """Change what is given; windows are replaced as a whole. Raises ValidationError."""
    before = {name: getattr(grant, name) for name in _PLAIN}
    for name in _PLAIN:
        setattr(grant, name, fields.get(name, before[name]))
    lists = {name: fields.get(name, list(getattr(grant, name).all())) for name in _LISTS}
    _save(grant, lists, windows)
    changes = {
        name: [before.get(name), value]
        for name, value in _shown(fields).items()
        if before.get(name) != value
    }
    if changes or windows is not None:
        audit.record(actor=actor, action="grant.change", target=grant, changes=changes)
    hooks.collect("AFTER_ACCESS_CHANGE")
    return grant


@transaction.atomic
def delete(grant: Grant, *, actor: User | None) -> None:
    """Delete a grant; what it allowed is judged anew."""
    audit.record(actor=actor, action="grant.delete", target=grant)
    grant.delete()
    hooks.collect("AFTER_ACCESS_CHANGE")


def ensure_open_grant(now: dt.datetime) -> None:
    """Where there is no grant at all, let everyone use everything, visibly."""
    if not Grant.objects.exists():
        create(
            actor=None, name="Everyone, everything", everyone=True, everything=True, starts_at=now
        )


def _save(
    grant: Grant, lists: Mapping[str, Sequence[Any]], windows: Sequence[Mapping[str, Any]] | None
) -> None:
    grant.name = naming.normalized(grant.name)
    if not (grant.everyone or lists["users"] or lists["groups"]):
        raise ValidationError({"users": "Name people or groups, or choose everyone."})
    if not (grant.everything or lists["gpus"] or lists["hosts"]):
        raise ValidationError({"gpus": "Name GPUs or hosts, or choose everything."})
    grant.full_clean()
    grant.save()
    for name, rows in lists.items():
        getattr(grant, name).set(rows)
    if windows is not None:
        grant.windows.all().delete()
        for fields in windows:
            window = GrantWindow(grant=grant, **fields)
            window.full_clean()
            window.save()


def _as_access(grant: Grant) -> Access:
    uuids = {gpu.uuid for gpu in grant.gpus.all()}
    uuids |= {gpu.uuid for host in grant.hosts.all() for gpu in host.gpus.all()}
    return Access(
        starts_at=grant.starts_at,
        ends_at=grant.ends_at,
        gpus=None if grant.everything else frozenset(uuids),
        windows=tuple(_as_window(window) for window in grant.windows.all()),
    )


def _as_window(window: GrantWindow) -> WeeklyWindow:
    return WeeklyWindow(
        frozenset(day for day in range(7) if window.weekdays & 1 << day),
        window.starts_minute,
        window.ends_minute,
        window.time_zone,
    )


def _shown(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: [str(row) for row in value] if name in _LISTS else value
        for name, value in fields.items()
    }
