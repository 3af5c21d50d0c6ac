"""Grants: read as plain values for judging, and changed by one function each."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction

from accounts.access import Access, WeeklyWindow
from accounts.models import Grant, GrantWindow, User, minute_label
from monitoring import audit, hooks, naming
from monitoring.models import AuditEntry

OPEN_GRANT = "Everyone, everything"
WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
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
    record_change(grant, actor=actor, before={})
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
    grant = Grant.objects.select_for_update().get(pk=grant.pk)
    before = described(grant)
    for name in _PLAIN:
        setattr(grant, name, fields.get(name, getattr(grant, name)))
    lists = {name: fields.get(name, list(getattr(grant, name).all())) for name in _LISTS}
    _save(grant, lists, windows)
    record_change(grant, actor=actor, before=before)
    return grant


@transaction.atomic
def delete(grant: Grant, *, actor: User | None) -> None:
    """Delete a grant; what it allowed is judged anew."""
    changes = {name: [value, None] for name, value in described(grant).items()}
    audit.record(actor=actor, action="grant.delete", target=grant, changes=changes)
    grant.delete()
    hooks.collect("AFTER_ACCESS_CHANGE")


def record_change(grant: Grant, *, actor: User | None, before: Mapping[str, Any]) -> None:
    """Audit what differs from `before` (of `described`; empty for a new grant), and say so.

    Nothing differs: nothing is written and nothing judged anew.
    """
    changes = {
        name: [before.get(name), value]
        for name, value in described(grant).items()
        if before.get(name) != value
    }
    if not changes:
        return
    action = "grant.change" if before else "grant.create"
    audit.record(actor=actor, action=action, target=grant, changes=changes)
    hooks.collect("AFTER_ACCESS_CHANGE")


def described(grant: Grant) -> dict[str, Any]:
    """The grant as plain values, to compare and to keep in the audit."""
    fresh = Grant.objects.prefetch_related(*_LISTS, "gpus__host", "windows").get(pk=grant.pk)
    plain = {name: getattr(fresh, name) for name in _PLAIN}
    lists = {name: sorted(str(row) for row in getattr(fresh, name).all()) for name in _LISTS}
    return {**plain, **lists, "windows": [spoken_window(row) for row in fresh.windows.all()]}


def spoken_window(window: GrantWindow) -> str:
    """As people write it: Mon Tue 22:00–06:00 Europe/Warsaw."""
    days = " ".join(WEEKDAYS[day] for day in sorted(_as_window(window).weekdays))
    hours = f"{minute_label(window.starts_minute)}–{minute_label(window.ends_minute)}"
    return f"{days} {hours} {window.time_zone}"


def ensure_open_grant(now: dt.datetime) -> None:
    """Where there is no grant, let everyone use everything, visibly.

    Not where an administrator ever deleted one: then it is meant that there is none.
    """
    if Grant.objects.exists() or AuditEntry.objects.filter(action="grant.delete").exists():
        return
    create(actor=None, name=OPEN_GRANT, everyone=True, everything=True, starts_at=now)


def refuse_empty(values: Mapping[str, Any]) -> None:
    """Raise ValidationError for a grant that names nobody or nothing."""
    if not (values["everyone"] or values["users"] or values["groups"]):
        raise ValidationError({"users": "Name people or groups, or choose everyone."})
    if not (values["everything"] or values["gpus"] or values["hosts"]):
        raise ValidationError({"gpus": "Name GPUs or hosts, or choose everything."})


def _save(
    grant: Grant, lists: Mapping[str, Sequence[Any]], windows: Sequence[Mapping[str, Any]] | None
) -> None:
    grant.name = naming.normalized(grant.name)
    refuse_empty({"everyone": grant.everyone, "everything": grant.everything, **lists})
    grant.full_clean()
    grant.save()
    for name, rows in lists.items():
        getattr(grant, name).set(rows)
    if windows is not None:
        _replace_windows(grant, windows)


def _replace_windows(grant: Grant, windows: Sequence[Mapping[str, Any]]) -> None:
    grant.windows.all().delete()
    for fields in windows:
        window = GrantWindow(grant=grant, **fields)
        try:
            window.full_clean()
        except ValidationError as error:
            raise ValidationError({"windows": error.messages}) from None
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
