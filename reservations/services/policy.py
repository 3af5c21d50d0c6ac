"""The policy: one row, read where it is used, so that a change is in force at once."""

from __future__ import annotations

from typing import Any

from django.db import transaction

from accounts.models import User
from monitoring import audit
from reservations.models import Policy


def current_policy() -> Policy:
    """The policy as it is now. One query; a lost row comes back with the defaults."""
    return Policy.objects.get_or_create(pk=1)[0]


@transaction.atomic
def change_policy(*, actor: User | None, **fields: Any) -> Policy:
    """Change fields of the policy. Raises ValidationError; an unchanged value is no change."""
    policy, _ = Policy.objects.select_for_update().get_or_create(pk=1)
    changes = {
        name: [getattr(policy, name), value]
        for name, value in fields.items()
        if getattr(policy, name) != value
    }
    for name, (_, value) in changes.items():
        setattr(policy, name, value)
    policy.full_clean()
    if changes:
        policy.save()
        audit.record(actor=actor, action="policy.change", target=policy, changes=changes)
    return policy
