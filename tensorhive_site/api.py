"""The API's router and its one form of errors."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import NON_FIELD_ERRORS
from django.core.exceptions import ValidationError as ModelValidationError
from django.urls import path
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView
from rest_framework import exceptions
from rest_framework.response import Response
from rest_framework.routers import DefaultRouter
from rest_framework.views import exception_handler

from accounts import api as accounts_api
from accounts import tokens
from jobs import api as jobs_api
from monitoring import api as monitoring_api
from reservations import api as reservations_api

router = DefaultRouter()
router.include_root_view = True
monitoring_api.register(router)
accounts_api.register(router)
jobs_api.register(router)
reservations_api.register(router)

urlpatterns = [
    path("auth/token/", tokens.LoginView.as_view(), name="token"),
    path("auth/token/refresh/", tokens.RefreshView.as_view(), name="token-refresh"),
    path("auth/token/revoke/", tokens.RevokeView.as_view(), name="token-revoke"),
    path("policy/", reservations_api.PolicyView.as_view(), name="policy"),
    path("schema/", SpectacularAPIView.as_view(), name="schema"),
    path("docs/", SpectacularSwaggerSplitView.as_view(url_name="schema"), name="api-docs"),
    *router.urls,
]


def handle_exception(error: Exception, context: dict[str, Any]) -> Response | None:
    """DRF's form with one top-level `code` beside `detail` or beside the fields' lists.

    A model's ValidationError becomes 400 in the same form.
    """
    if isinstance(error, ModelValidationError):
        error = _as_api_error(error)
    response = exception_handler(error, context)
    if response is None:
        return None
    if isinstance(response.data, list):
        response.data = {"detail": " ".join(str(item) for item in response.data)}
    if "non_field_errors" in response.data:
        response.data = {"detail": " ".join(map(str, response.data["non_field_errors"]))}
    response.data.setdefault("code", _code(error))
    return response


def _as_api_error(error: ModelValidationError) -> exceptions.ValidationError:
    code = getattr(error, "code", None) or "invalid"
    if not hasattr(error, "error_dict"):
        return exceptions.ValidationError({"detail": " ".join(error.messages)}, code=code)
    fields = dict(error.message_dict)
    general = fields.pop(NON_FIELD_ERRORS, None)
    if general:
        return exceptions.ValidationError({"detail": " ".join(general)}, code=code)
    return exceptions.ValidationError(fields, code=code)


def _code(error: Exception) -> str:
    """The first code in the error; simplejwt's errors carry their own in a dictionary."""
    if not isinstance(error, exceptions.APIException):
        return "not_found" if type(error).__name__ == "Http404" else "permission_denied"
    codes: Any = error.get_codes()
    while isinstance(codes, dict | list):
        if not codes:
            return error.default_code
        codes = next(iter(codes.values())) if isinstance(codes, dict) else codes[0]
    return str(codes)
