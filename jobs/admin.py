"""Jobs in the console: read, search, stop. Environments may hold secrets and are not shown."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html

from accounts.models import User
from jobs.models import Attempt, Job, Task
from jobs.services import stopping
from jobs.services.editing import WrongState
from monitoring.admin import ReadOnlyAdmin


class TaskInline(admin.TabularInline):
    model = Task
    extra = 0
    can_delete = False
    readonly_fields = (
        "position",
        "host",
        "command",
        "state",
        "state_since",
        "exit_code",
        "reason",
    )
    fields = readonly_fields

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(Job)
class JobAdmin(ReadOnlyAdmin):
    list_display = ["name", "owner", "state_label", "hosts", "start_at", "stop_at", "created_at"]
    list_filter = ["tasks__state", "tasks__host", "created_at"]
    search_fields = ["name", "description", "owner__username", "tasks__host__name"]
    actions = ["stop_selected"]
    inlines = [TaskInline]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Job]:
        return super().get_queryset(request).select_related("owner").prefetch_related("tasks__host")

    @admin.display(description="state")
    def state_label(self, job: Job) -> str:
        return format_html(
            '<span class="badge {}" data-state="{}">{}</span>', job.state, job.state, job.state
        )

    @admin.display(description="hosts")
    def hosts(self, job: Job) -> str:
        return ", ".join(dict.fromkeys(task.host.name for task in job.tasks.all()))

    # Not a change of the row: whoever may look at jobs here is an administrator.
    @admin.action(description="Stop the selected jobs", permissions=["view"])
    def stop_selected(self, request: HttpRequest, queryset: QuerySet[Job]) -> None:
        assert isinstance(request.user, User)  # noqa: S101  for the type checker
        asked = 0
        for job in queryset:
            try:
                stopping.stop(job, actor=request.user)
                asked += 1
            except WrongState as wrong:
                self.message_user(request, f"{job}: {wrong}", messages.WARNING)
        if asked:
            self.message_user(request, f"{asked} asked to stop.", messages.SUCCESS)


@admin.register(Attempt)
class AttemptAdmin(ReadOnlyAdmin):
    """Each run of a task, with what its host showed of it."""

    list_display = ["task", "number", "login", "claimed_at", "started_at", "ended_at", "exit_code"]
    list_select_related = ["task__job"]
    list_filter = ["task__host", ("ended_at", admin.EmptyFieldListFilter), "claimed_at"]
    search_fields = ["task__job__name", "login", "session", "reason"]
