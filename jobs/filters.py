"""What lists of jobs and tasks can be asked for."""

from __future__ import annotations

import django_filters
from django.db.models import QuerySet

from jobs.models import Job, Task, TaskState
from monitoring.filters import MomentFilter, RowFilter


class JobFilter(django_filters.FilterSet):
    owner = django_filters.CharFilter("owner__username")
    name = django_filters.CharFilter(lookup_expr="icontains", label="part of the name")
    state = django_filters.ChoiceFilter(
        choices=TaskState.choices, method="with_task_in", label="jobs with a task in this state"
    )
    host = django_filters.CharFilter("tasks__host__name", distinct=True)
    created_after = MomentFilter("created_at", lookup_expr="gte")
    created_before = MomentFilter("created_at", lookup_expr="lt")

    class Meta:
        model = Job
        fields = ["owner", "name", "state", "host", "created_after", "created_before"]

    def with_task_in(self, jobs: QuerySet[Job], name: str, state: str) -> QuerySet[Job]:
        return jobs.filter(pk__in=Task.objects.filter(state=state).values("job"))


class TaskFilter(django_filters.FilterSet):
    job = RowFilter("job_id")
    host = django_filters.CharFilter("host__name")
    gpu = django_filters.CharFilter("gpus__uuid")
    state = django_filters.ChoiceFilter(choices=TaskState.choices)

    class Meta:
        model = Task
        fields = ["job", "host", "gpu", "state"]
