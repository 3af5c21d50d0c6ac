"""What people change about their own account."""

from __future__ import annotations

from django.db import transaction

from accounts.models import User
from monitoring import audit


@transaction.atomic
def change_own_details(*, user: User, email: str, time_zone: str) -> None:
    """Set the person's e-mail and time zone. Raises ValidationError."""
    before = User.objects.select_for_update().get(pk=user.pk)
    wanted = {"email": email, "time_zone": time_zone}
    changes = {
        field: [getattr(before, field), value]
        for field, value in wanted.items()
        if getattr(before, field) != value
    }
    if not changes:
        return
    for field, value in wanted.items():
        setattr(before, field, value)
    before.full_clean()
    before.save(update_fields=list(wanted))
    audit.record(actor=user, action="user.change_details", target=user, changes=changes)
