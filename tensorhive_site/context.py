"""What every template may ask."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest


def site(request: HttpRequest) -> dict[str, bool]:
    return {"is_demo": settings.IS_DEMO}
