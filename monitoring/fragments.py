"""Parts of pages that are fetched again every few seconds, with their ETags."""

from __future__ import annotations

import hashlib

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.utils.cache import get_conditional_response


def etag_of(part: str | bytes) -> str:
    """Of the part as it is rendered; equal parts have equal ones."""
    content = part.encode() if isinstance(part, str) else part
    return f'"{hashlib.blake2b(content, digest_size=12).hexdigest()}"'


def unless_known(request: HttpRequest, response: HttpResponse) -> HttpResponseBase:
    """The response, or 304 when the browser already has the same."""
    etag = response["ETag"] = etag_of(response.content)
    response["Cache-Control"] = "private, no-cache"
    return get_conditional_response(request, etag=etag, response=response) or response
