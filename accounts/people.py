"""Who asks, and whose a Unix login is."""

from __future__ import annotations

from collections.abc import Collection

from django.core.exceptions import PermissionDenied
from django.db.models import Q
from django.http import HttpRequest
from rest_framework.request import Request

from accounts.models import User


def signed_in(request: HttpRequest | Request) -> User:
    """The person who asks, where being signed in was checked before. Raises PermissionDenied."""
    if not isinstance(request.user, User):
        raise PermissionDenied("Sign in first.")
    return request.user


def people_by_login(logins: Collection[str]) -> dict[str, str]:
    """Unix login -> username of the person it belongs to; logins of nobody are missing.

    A login that was given to a person goes before a person who is merely called like it.
    """
    if not logins:
        return {}
    found = User.objects.filter(
        Q(unix_login__in=logins) | Q(unix_login=None, username__in=logins)
    ).values_list("unix_login", "username")
    by_name = {username: username for login, username in found if login is None}
    return by_name | {login: username for login, username in found if login is not None}
