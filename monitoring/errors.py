"""Answers of the API beyond DRF's own: a conflict, and a refusal by a rule."""

from __future__ import annotations

from rest_framework import status
from rest_framework.exceptions import APIException


class Conflict(APIException):
    """409: somebody else has it, or the object is not in a state for this."""

    status_code = status.HTTP_409_CONFLICT
    default_detail = "This conflicts with what is there now."
    default_code = "conflict"


class Refused(APIException):
    """422: well-formed, but a rule says no; the sentence says which and what would help."""

    status_code = status.HTTP_422_UNPROCESSABLE_ENTITY
    default_detail = "A rule of this installation refuses this."
    default_code = "refused"
