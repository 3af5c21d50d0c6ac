"""Writing the audit trail. Call it from a service, inside the transaction of the change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from django.db import models
from django.utils import timezone

from monitoring.models import AuditEntry

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser


def record(
    *,
    actor: AbstractBaseUser | None,
    action: str,
    target: models.Model,
    changes: Mapping[str, Any] | None = None,
    reason: str = "",
) -> AuditEntry:
    """Add an entry: `action` is "thing.verb"; `changes` maps a field to [before, after].

    An actor of None means the product itself acted. Values are stored as text; never pass a
    secret or a job's environment.
    """
    return AuditEntry.objects.create(
        at=timezone.now(),
        actor_id=actor.pk if actor is not None else None,
        actor_name=actor.get_username() if actor is not None else "",
        action=action,
        target=str(target)[:200],
        target_type=target._meta.model_name or "",
        target_id=str(target.pk),
        changes={field: _plain(value) for field, value in (changes or {}).items()},
        reason=reason[:500],
    )


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item) for item in value]
    return str(value)
