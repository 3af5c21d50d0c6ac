"""Reservations and the policy in the console."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse

from monitoring.admin import ReadOnlyAdmin
from reservations import admin_violations  # noqa: F401  registers the violations
from reservations.models import Policy, Reservation, ReservationGpu
from reservations.services import booking
from reservations.services.policy import change_policy


class SlotInline(admin.TabularInline):
    model = ReservationGpu
    extra = 0
    fields = ["gpu"]
    readonly_fields = ["gpu"]
    can_delete = False

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(Reservation)
class ReservationAdmin(ReadOnlyAdmin):
    """To look and to cancel; booking and changing is the calendar's."""

    list_display = ["title", "owner", "starts_at", "ends_at", "cancelled_at", "override_access"]
    list_select_related = ["owner"]
    list_filter = ["starts_at", ("cancelled_at", admin.EmptyFieldListFilter), "override_access"]
    search_fields = ["title", "owner__username", "slots__gpu__uuid", "slots__gpu__host__name"]
    inlines = [SlotInline]
    actions = ["cancel_selected"]

    @admin.action(description="Cancel the selected upcoming reservations", permissions=["view"])
    def cancel_selected(self, request: HttpRequest, queryset: QuerySet[Reservation]) -> None:
        cancelled = 0
        for reservation in queryset:
            try:
                booking.cancel(reservation, actor=request.user)  # type: ignore[arg-type]
            except (booking.BookingError, PermissionDenied) as error:
                self.message_user(request, f"{reservation.title}: {error}", messages.WARNING)
            else:
                cancelled += 1
        self.message_user(request, f"{cancelled} cancelled.", messages.SUCCESS)


@admin.register(Policy)
class PolicyAdmin(admin.ModelAdmin):
    """One row, so its list is the form."""

    fieldsets = [
        ("Enforcement", {"fields": ["enforcement_level", "dry_run", "warn_terminals"]}),
        (
            "Limits of a reservation",
            {
                "fields": [
                    *("min_length", "max_length", "horizon", "step"),
                    *("max_gpus_at_once", "max_hours_per_week", "short_notice_hours"),
                ]
            },
        ),
        ("Time", {"fields": ["time_zone"]}),
    ]

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        return HttpResponseRedirect(reverse("admin:reservations_policy_change", args=[1]))

    def save_model(
        self, request: HttpRequest, obj: Policy, form: ModelForm[Policy], change: bool
    ) -> None:
        fields = {name: form.cleaned_data[name] for name in form.changed_data}
        change_policy(actor=request.user, **fields)  # type: ignore[arg-type]
