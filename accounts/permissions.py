"""Who may do what to people, groups and grants through the API."""

from __future__ import annotations

from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request
from rest_framework.views import APIView


class AdministratorsChange(BasePermission):
    """Signed-in people read, administrators change."""

    message = "Only administrators change this."

    def has_permission(self, request: Request, view: APIView) -> bool:
        if not request.user.is_authenticated:
            return False
        return request.method in SAFE_METHODS or bool(request.user.is_staff)
