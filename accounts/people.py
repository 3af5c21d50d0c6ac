"""Whose a Unix login is."""

from __future__ import annotations

from collections.abc import Collection

from django.db.models import Q

from accounts.models import User


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
