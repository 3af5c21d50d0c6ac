"""Violations in the console: read, search, never edit."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from monitoring.admin import ReadOnlyAdmin
from reservations.models import Violation, ViolationStep


class StepInline(admin.TabularInline):
    model = ViolationStep
    extra = 0
    can_delete = False
    fields = ("at", "kind", "result", "text", "finished_at")
    readonly_fields = fields

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(Violation)
class ViolationAdmin(ReadOnlyAdmin):
    list_display = [
        "gpu",
        "intruder",
        "person",
        "reservation",
        "first_seen_at",
        "last_seen_at",
        "ended_at",
    ]
    list_select_related = ["gpu__host", "person", "reservation__owner"]
    list_filter = ["host", ("ended_at", admin.EmptyFieldListFilter), "first_seen_at"]
    search_fields = ["intruder", "person__username", "gpu__uuid", "reservation__title"]
    inlines = [StepInline]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Violation]:
        """Single sightings are not violations yet."""
        return super().get_queryset(request).exclude(confirmed_at=None)
