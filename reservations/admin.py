"""Reservations and the policy in the console."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse

from accounts.people import signed_in
from monitoring.admin import ReadOnlyAdmin
from reservations import admin_violations  # noqa: F401  registers the violations
from reservations.models import Policy, Reservation, ReservationGpu
from reservations.services import booking
from reservations.services.policy import change_policy, current_policy


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
    actions = ["cancel_selected", "release_selected"]

    def has_end_permission(self, request: HttpRequest) -> bool:
        """Rows are read-only here; ending them is for those who might otherwise change them."""
        user = signed_in(request)
        return user.is_administrator and user.has_perm("reservations.change_reservation")

    @admin.action(description="Cancel the selected upcoming reservations", permissions=["end"])
    def cancel_selected(self, request: HttpRequest, queryset: QuerySet[Reservation]) -> None:
        self._each(request, queryset, booking.cancel, "cancelled")

    @admin.action(description="Release the selected running reservations", permissions=["end"])
    def release_selected(self, request: HttpRequest, queryset: QuerySet[Reservation]) -> None:
        self._each(request, queryset, booking.release, "released")

    def _each(
        self, request: HttpRequest, queryset: QuerySet[Reservation], service: Any, what: str
    ) -> None:
        """What is refused is said; the others are done nevertheless."""
        done = 0
        for reservation in queryset:
            try:
                service(reservation, actor=signed_in(request))
            except booking.BookingError as error:
                self.message_user(request, f"{reservation.title}: {error}", messages.WARNING)
            else:
                done += 1
        if done:
            self.message_user(request, f"{done} {what}.", messages.SUCCESS)


class PolicyForm(ModelForm):
    """The policy with what each field means."""

    class Meta:
        model = Policy
        fields = "__all__"  # noqa: DJ007  the whole row is the form
        help_texts = {
            "enforcement_level": "What is noticed, and whose owners are warned.",
            "warn_terminals": "Write to every terminal of the process's owner on that host.",
            "min_length": "Days and HH:MM:SS, for example 00:30:00.",
            "max_length": "Days and HH:MM:SS, for example 8 00:00:00.",
            "horizon": "A reservation ends within this time from now, for example 90 00:00:00.",
            "step": "Start and end lie on this grid of the day; a start right now need not.",
            "max_gpus_at_once": "By one person at the same moment. Empty: no limit.",
            "max_hours_per_week": (
                "GPU-hours (hours times GPUs) of one person from Monday to Sunday. Empty: no limit."
            ),
            "short_notice_hours": (
                "What begins within this many hours is free of the two limits above. Empty: they"
                " always hold."
            ),
            "time_zone": "Its midnight begins the grid, and its Monday the week.",
        }


@admin.register(Policy)
class PolicyAdmin(admin.ModelAdmin):
    """One row, so its list is the form."""

    form = PolicyForm
    fieldsets = [
        ("Enforcement", {"fields": ["enforcement_level", "dry_run", "warn_terminals"]}),
        ("Every reservation", {"fields": ["min_length", "max_length", "horizon", "step"]}),
        (
            "Per person",
            {"fields": ["max_gpus_at_once", "max_hours_per_week", "short_notice_hours"]},
        ),
        ("Time", {"fields": ["time_zone"]}),
    ]

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        address = reverse("admin:reservations_policy_change", args=[current_policy().pk])
        return HttpResponseRedirect(address)

    def save_model(
        self, request: HttpRequest, obj: Policy, form: ModelForm[Policy], change: bool
    ) -> None:
        fields = {name: form.cleaned_data[name] for name in form.changed_data}
        change_policy(actor=signed_in(request), **fields)
