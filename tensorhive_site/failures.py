"""What is answered where no view answers: pages to people, the API's form of errors to programs."""

from __future__ import annotations

from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views import defaults

_API = "/api/"


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """400, also for a body that is too large."""
    if not request.path.startswith(_API):
        return defaults.bad_request(request, exception)
    if isinstance(exception, RequestDataTooBig):
        return _told(400, "The body is too large.", "too_large")
    return _told(400, "The request is malformed.", "bad_request")


def page_not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    if not request.path.startswith(_API):
        return defaults.page_not_found(request, exception)
    return _told(404, "There is nothing at this address.", "not_found")


def server_error(request: HttpRequest) -> HttpResponse:
    if not request.path.startswith(_API):
        return defaults.server_error(request)
    return _told(500, "TensorHive made a mistake here, and it is in its log.", "error")


def _told(status: int, detail: str, code: str) -> JsonResponse:
    return JsonResponse({"detail": detail, "code": code}, status=status)
