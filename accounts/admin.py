"""People, groups and grants in the console."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.auth.admin import UserAdmin
from django.db import transaction
from django.db.models import QuerySet
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponse

from accounts.forms import GrantForm, GrantWindowForm
from accounts.models import Grant, GrantWindow, User
from accounts.people import signed_in
from accounts.services import grants
from monitoring import audit, hooks

_SECRET = {"password", "password1", "password2", "usable_password"}
_ABOUT_ACCESS = {"groups", "is_active", "is_staff", "is_superuser"}


@admin.register(User)
class PersonAdmin(UserAdmin):
    """Who may sign in, and who they are on the hosts.

    People are deactivated, never deleted: their reservations and what they did stay theirs.
    """

    list_display = ["username", "unix_login", "email", "is_active", "is_staff", "last_login"]
    search_fields = ["username", "unix_login", "first_name", "last_name", "email"]
    fieldsets = [
        (None, {"fields": ["username", "password"]}),
        ("Person", {"fields": ["first_name", "last_name", "email", "time_zone"]}),
        ("On the hosts", {"fields": ["unix_login"]}),
        ("Rights", {"fields": ["is_active", "is_staff", "is_superuser", "groups"]}),
        ("Dates", {"fields": ["last_login", "date_joined"]}),
    ]
    add_fieldsets = [
        (
            None,
            {
                "classes": ["wide"],
                "fields": ["username", "email", "unix_login", "password1", "password2"],
            },
        )
    ]
    readonly_fields = ["last_login", "date_joined"]

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        """The console saves in one transaction; here everything is saved and the audit joins it."""
        super().save_related(request, form, formsets, change)
        changes = {name: _before_and_after(form, name) for name in set(form.changed_data) - _SECRET}
        changes = {name: pair for name, pair in sorted(changes.items()) if pair[0] != pair[1]}
        if change and not changes:
            return
        audit.record(
            actor=signed_in(request),
            action="person.change" if change else "person.create",
            target=form.instance,
            changes=changes,
        )
        if changes.keys() & _ABOUT_ACCESS:
            hooks.collect("AFTER_ACCESS_CHANGE")

    def user_change_password(self, request: HttpRequest, id: str, form_url: str = "") -> Any:
        with transaction.atomic():
            response: HttpResponse = super().user_change_password(request, id, form_url)
            person = self.get_object(request, id)
            if request.method == "POST" and response.status_code == 302 and person:
                audit.record(actor=signed_in(request), action="person.set_password", target=person)
        return response


def _before_and_after(form: Any, name: str) -> list[Any]:
    return [_plain(form.initial.get(name)), _plain(form.cleaned_data.get(name))]


def _plain(value: Any) -> Any:
    return [str(row) for row in value] if isinstance(value, list | QuerySet) else value


class WindowInline(admin.TabularInline):
    model = GrantWindow
    form = GrantWindowForm
    fields = ["days", "begins", "ends", "time_zone"]
    extra = 0
    verbose_name = "weekly hours"
    verbose_name_plural = "weekly hours (none: at every hour of the period)"


@admin.register(Grant)
class GrantAdmin(admin.ModelAdmin):
    """Who may use which GPUs when."""

    form = GrantForm
    list_display = ["name", "people", "devices", "starts_at", "ends_at"]
    list_filter = ["everyone", "everything"]
    search_fields = ["name", "users__username", "groups__name", "hosts__name", "gpus__uuid"]
    autocomplete_fields = ["users", "groups", "gpus", "hosts"]
    inlines = [WindowInline]
    actions = None  # deleting goes one by one, with its audit entry
    fieldsets = [
        (None, {"fields": ["name"]}),
        ("Who", {"fields": ["everyone", "users", "groups"]}),
        ("What", {"fields": ["everything", "hosts", "gpus"]}),
        ("When", {"fields": ["starts_at", "ends_at"]}),
    ]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Grant]:
        rows = super().get_queryset(request)
        return rows.prefetch_related("users", "groups", "hosts", "gpus__host")

    @admin.display(description="who")
    def people(self, grant: Grant) -> str:
        return _short(grant.everyone, "everyone", [*grant.users.all(), *grant.groups.all()])

    @admin.display(description="what")
    def devices(self, grant: Grant) -> str:
        return _short(grant.everything, "everything", [*grant.hosts.all(), *grant.gpus.all()])

    def save_model(
        self, request: HttpRequest, obj: Grant, form: ModelForm[Grant], change: bool
    ) -> None:
        # Kept on the form: the console itself is shared by all requests.
        form.before = grants.described(obj) if change else {}  # type: ignore[attr-defined]
        super().save_model(request, obj, form, change)

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        super().save_related(request, form, formsets, change)
        grants.record_change(form.instance, actor=signed_in(request), before=form.before)

    def delete_model(self, request: HttpRequest, obj: Grant) -> None:
        grants.delete(obj, actor=signed_in(request))


def _short(all_of_them: bool, word: str, rows: list[Any]) -> str:
    names = [str(row) for row in rows]
    more = f" and {len(names) - 4} more" if len(names) > 4 else ""
    return word if all_of_them else ", ".join(names[:4]) + more
