"""Pages show times in the reader's zone; the API speaks UTC."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from accounts.models import zone_of


class TimeZoneMiddleware:
    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if request.path.startswith("/api/"):
            # DRF writes moments in the current zone, and the API promises `Z`.
            with timezone.override(dt.UTC):
                return self.get_response(request)
        with timezone.override(zone_of(request.user)):
            return self.get_response(request)
