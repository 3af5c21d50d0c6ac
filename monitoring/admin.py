"""Hosts and GPUs in the administrator's console."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.contrib import admin, messages
from django.contrib.auth.models import AbstractBaseUser
from django.core.exceptions import PermissionDenied
from django.db.models import Count, QuerySet
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404, render
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.html import format_html

from monitoring import requests
from monitoring.models import AuditEntry, Gpu, Host, HostKey
from monitoring.picture import STATES
from monitoring.services import host_keys, hosts


class ReadOnlyAdmin(admin.ModelAdmin):
    """Rows that the product writes: to be read and searched, never edited here."""

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class HostKeyInline(admin.TabularInline):
    """The keys seen at a host; accepting is an action with its own page."""

    model = HostKey
    extra = 0
    can_delete = False
    fields = ("address", "port", "key_type", "fingerprint", "seen_at", "accepted_at", "accepted_by")
    readonly_fields = fields

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(Host)
class HostAdmin(admin.ModelAdmin):
    list_display = [
        "name",
        "state_label",
        "reason",
        "gpu_count",
        "place",
        "last_good",
        "is_enabled",
    ]
    list_filter = ["state", "is_enabled", "in_maintenance"]
    search_fields = ["name", "address", "reason"]
    actions = ["check_now", "enable", "disable", "begin_maintenance", "end_maintenance"]
    inlines = [HostKeyInline]
    readonly_fields = ["state_label", "reason", "state_since", "last_good_at", "boot_id"]
    fieldsets = [
        (None, {"fields": ["name", "address", "port", "user"]}),
        ("Jump host", {"fields": ["jump_address", "jump_port", "jump_user"]}),
        ("Use", {"fields": ["is_enabled", "in_maintenance"]}),
        ("State", {"fields": ["state_label", "reason", "state_since", "last_good_at", "boot_id"]}),
    ]
    change_form_template = "admin/monitoring/host/change_form.html"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Host]:
        return super().get_queryset(request).annotate(gpus_known=Count("gpus"))

    def get_fieldsets(self, request: HttpRequest, obj: Host | None = None) -> Any:
        return self.fieldsets if obj else self.fieldsets[:3]

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """History hangs on a host that had GPUs; it is disabled instead."""
        allowed = super().has_delete_permission(request, obj)
        return allowed and (obj is None or not obj.gpus.exists())

    @admin.display(description="state", ordering="state")
    def state_label(self, host: Host) -> str:
        return format_html(
            '<span class="badge" data-state="{}">{}</span>', host.state, STATES[host.state]
        )

    @admin.display(description="GPUs", ordering="gpus_known")
    def gpu_count(self, host: Any) -> int:
        return host.gpus_known

    @admin.display(description="reached at")
    def place(self, host: Host) -> str:
        jump = f" via {host.jump_address}" if host.jump_address else ""
        return f"{host.user}@{host.address}:{host.port}{jump}"

    @admin.display(description="last good data", ordering="last_good_at")
    def last_good(self, host: Host) -> str:
        age = host.age(timezone.now())
        return "never" if age is None else f"{age.total_seconds():.0f} s ago"

    def save_model(
        self, request: HttpRequest, obj: Host, form: ModelForm[Host], change: bool
    ) -> None:
        fields = {name: form.cleaned_data[name] for name in form.changed_data}
        if change:
            hosts.change(obj, actor=_actor(request), **fields)
            return
        added = hosts.add(actor=_actor(request), **form.cleaned_data)
        obj.pk, obj._state = added.pk, added._state
        requests.ask("check_host", host=added, requested_by=_actor(request))

    def response_add(
        self, request: HttpRequest, obj: Host, post_url_continue: str | None = None
    ) -> HttpResponse:
        """After adding, the next step is the host's key."""
        return HttpResponseRedirect(reverse("admin:monitoring_host_check", args=[obj.pk]))

    def delete_model(self, request: HttpRequest, obj: Host) -> None:
        hosts.delete(obj, actor=_actor(request))

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Host]) -> None:
        for host in queryset:
            hosts.delete(host, actor=_actor(request))

    def get_urls(self) -> list[URLPattern]:
        wrap = self.admin_site.admin_view
        return [
            path("<int:pk>/check/", wrap(self.check_view), name="monitoring_host_check"),
            path(
                "<int:pk>/accept-key/<int:key_pk>/",
                wrap(self.accept_key_view),
                name="monitoring_host_accept_key",
            ),
            *super().get_urls(),
        ]

    def check_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """A POST asks a worker to look at the host; a GET shows what it found, and waiting keys."""
        if not self.has_change_permission(request):
            raise PermissionDenied
        host = get_object_or_404(Host, pk=pk)
        if request.method == "POST":
            return self._asked_to_check(request, host)
        asked = host.requests.filter(kind="check_host").first()
        if asked is not None:
            asked = requests.wait(asked)
        context = {
            **self.admin_site.each_context(request),
            "title": f"Check of {host.name}",
            "opts": self.model._meta,
            "host": host,
            "asked": asked,
            "is_waiting": asked is not None and requests.is_open(asked),
            "pending_keys": host_keys.pending(host),
        }
        return render(request, "admin/monitoring/host/check.html", context)

    def _asked_to_check(self, request: HttpRequest, host: Host) -> HttpResponse:
        requests.ask("check_host", host=host, requested_by=_actor(request))
        return HttpResponseRedirect(reverse("admin:monitoring_host_check", args=[host.pk]))

    def accept_key_view(self, request: HttpRequest, pk: int, key_pk: int) -> HttpResponse:
        """Show both fingerprints; a POST accepts the new one."""
        if not self.has_change_permission(request):
            raise PermissionDenied
        key = get_object_or_404(HostKey.objects.select_related("host"), pk=key_pk, host_id=pk)
        if request.method == "POST":
            host_keys.accept(key, actor=_actor(request))
            self.message_user(
                request, f"{key.fingerprint} is trusted for {key.host.name} now.", messages.SUCCESS
            )
            return self._asked_to_check(request, key.host)
        replaced = key.host.keys.filter(address=key.address, port=key.port).exclude(
            accepted_at=None
        )
        context = {
            **self.admin_site.each_context(request),
            "title": f"Accept the key of {key.host.name}",
            "opts": self.model._meta,
            "key": key,
            "replaced": replaced,
        }
        return render(request, "admin/monitoring/host/accept_key.html", context)

    @admin.action(description="Check now", permissions=["change"])
    def check_now(self, request: HttpRequest, queryset: QuerySet[Host]) -> HttpResponse | None:
        selected = list(queryset)
        if len(selected) == 1:
            return self._asked_to_check(request, selected[0])
        for host in selected:
            hosts.request_probe(host)
        self.message_user(
            request, f"{len(selected)} hosts are looked at now; see their states in a moment."
        )
        return None

    @admin.action(description="Enable", permissions=["change"])
    def enable(self, request: HttpRequest, queryset: QuerySet[Host]) -> None:
        self._change_all(request, queryset, "enabled", is_enabled=True)

    @admin.action(description="Disable", permissions=["change"])
    def disable(self, request: HttpRequest, queryset: QuerySet[Host]) -> None:
        self._change_all(request, queryset, "disabled", is_enabled=False)

    @admin.action(description="Begin maintenance", permissions=["change"])
    def begin_maintenance(self, request: HttpRequest, queryset: QuerySet[Host]) -> None:
        self._change_all(request, queryset, "in maintenance", in_maintenance=True)

    @admin.action(description="End maintenance", permissions=["change"])
    def end_maintenance(self, request: HttpRequest, queryset: QuerySet[Host]) -> None:
        self._change_all(request, queryset, "back from maintenance", in_maintenance=False)

    def _change_all(
        self, request: HttpRequest, queryset: Sequence[Host] | QuerySet[Host], what: str, **to: bool
    ) -> None:
        changed = [hosts.change(host, actor=_actor(request), **to).name for host in queryset]
        self.message_user(request, f"{', '.join(changed)}: {what}.", messages.SUCCESS)


@admin.register(Gpu)
class GpuAdmin(ReadOnlyAdmin):
    list_display = ["label", "name", "memory_total_mib", "state", "reason", "uuid", "last_seen_at"]
    list_filter = ["host", "name", "state", "is_retired"]
    list_select_related = ["host"]
    search_fields = ["uuid", "name", "host__name"]

    @admin.display(description="GPU", ordering="host__name")
    def label(self, gpu: Gpu) -> str:
        return str(gpu)


@admin.register(AuditEntry)
class AuditEntryAdmin(ReadOnlyAdmin):
    list_display = ["at", "actor_name", "action", "target", "reason"]
    list_filter = ["action", "target_type"]
    search_fields = ["actor_name", "target", "reason"]
    date_hierarchy = "at"


def _actor(request: HttpRequest) -> AbstractBaseUser:
    """Who is signed in; the console lets nobody else in."""
    if not isinstance(request.user, AbstractBaseUser):
        raise PermissionDenied
    return request.user
