"""Making and changing people: one function per change."""

from __future__ import annotations

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import transaction

from accounts.models import User
from monitoring import audit, naming


@transaction.atomic
def create_person(
    *,
    actor: User | None,
    username: str,
    password: str,
    email: str = "",
    is_administrator: bool = False,
    unix_login: str | None = None,
) -> User:
    """Create a person. Raises ValidationError, also for a password that is easily guessed."""
    person = User(
        username=naming.normalized(username),
        email=email,
        unix_login=unix_login,
        is_staff=is_administrator,
        is_superuser=is_administrator,
    )
    try:
        validate_password(password, person)
    except ValidationError as error:
        raise ValidationError({"password": error.messages}) from None
    person.set_password(password)
    person.full_clean()
    person.save()
    audit.record(
        actor=actor,
        action="person.create",
        target=person,
        changes={"administrator": [None, is_administrator], "unix_login": [None, unix_login]},
    )
    return person
