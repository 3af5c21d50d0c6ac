"""Signing in on pages: guessing passwords there is as slow as over the API."""

from __future__ import annotations

from typing import Any

from django.contrib.admin.forms import AdminAuthenticationForm
from django.contrib.auth.forms import AuthenticationForm
from django.core.exceptions import ValidationError

from accounts.tokens import LoginThrottle


class SignInForm(AuthenticationForm):
    def clean(self) -> dict[str, Any]:
        _refuse_haste(self.request)
        return super().clean()


class ConsoleSignInForm(AdminAuthenticationForm):
    def clean(self) -> dict[str, Any]:
        _refuse_haste(self.request)
        return super().clean()


def _refuse_haste(request: Any) -> None:
    if not LoginThrottle().allow_request(request, None):  # type: ignore[arg-type]
        raise ValidationError(
            "Too many attempts to sign in from here. Please wait a minute.", code="throttled"
        )
