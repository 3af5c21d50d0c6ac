"""Jobs and their tasks over HTTP: people see their own, administrators all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import mixins, status, viewsets
from rest_framework.decorators import action
from rest_framework.exceptions import PermissionDenied
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.routers import BaseRouter

from accounts.models import User
from jobs.filters import JobFilter, TaskFilter
from jobs.models import Job, Task
from jobs.serializers import (
    JobChangeSerializer,
    JobSerializer,
    LogQuery,
    LogSerializer,
    NewJobSerializer,
    TaskSerializer,
)
from jobs.services import editing, launching, logs, stopping
from monitoring import errors
from monitoring.requests import RequestFailed
from monitoring.serializers import WaitingSerializer

T = TypeVar("T")


@extend_schema_view(
    create=extend_schema(request=NewJobSerializer, responses={201: JobSerializer}),
    partial_update=extend_schema(request=JobChangeSerializer, responses=JobSerializer),
)
class JobViewSet(viewsets.ReadOnlyModelViewSet[Job]):
    """Jobs with their tasks. `execute` and `stop` only ask; the states tell what came of it."""

    queryset = Job.objects.none()
    serializer_class = JobSerializer
    filterset_class = JobFilter

    def get_queryset(self) -> QuerySet[Job]:
        return Job.objects.visible_to(self.request.user).with_tasks()

    def create(self, request: Request) -> Response:
        new = NewJobSerializer(data=request.data, context=self.get_serializer_context())
        new.is_valid(raise_exception=True)
        return self._show(new.save(), status.HTTP_201_CREATED)

    def partial_update(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        job = self.get_object()
        change = JobChangeSerializer(
            job, data=request.data, partial=True, context=self.get_serializer_context()
        )
        change.is_valid(raise_exception=True)
        _answered(change.save)
        return self._show(job, status.HTTP_200_OK)

    def destroy(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        job = self.get_object()
        _answered(lambda: editing.delete(job, actor=_user(request)))
        return Response(status=status.HTTP_204_NO_CONTENT)

    @extend_schema(request=None, responses={202: JobSerializer})
    @action(detail=True, methods=["post"])
    def execute(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Start all tasks now, as the owner."""
        job = self.get_object()
        if job.owner_id != request.user.pk:
            raise PermissionDenied("Only its owner starts a job: it runs in their account.")
        _answered(lambda: launching.execute(job, actor=_user(request)))
        return self._show(job, status.HTTP_202_ACCEPTED)

    @extend_schema(request=None, responses={202: JobSerializer})
    @action(detail=True, methods=["post"])
    def stop(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Ask all running tasks to end: Ctrl-C at once, TERM and KILL later."""
        job = self.get_object()
        _answered(lambda: stopping.stop(job, actor=_user(request)))
        return self._show(job, status.HTTP_202_ACCEPTED)

    def _show(self, job: Job, code: int) -> Response:
        fresh = Job.objects.with_tasks().get(pk=job.pk)
        return Response(self.get_serializer(fresh).data, status=code)


class TaskViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Task]):
    """The tasks of the jobs one may see."""

    queryset = Task.objects.none()
    serializer_class = TaskSerializer
    filterset_class = TaskFilter

    def get_queryset(self) -> QuerySet[Task]:
        jobs = Job.objects.visible_to(self.request.user)
        return Task.objects.filter(job__in=jobs).with_run().order_by("-job", "position")

    @extend_schema(
        parameters=[LogQuery], responses={200: LogSerializer, 202: WaitingSerializer}, filters=False
    )
    @action(detail=True, methods=["get"], pagination_class=None)
    def log(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """A piece of the log of the last run, read from the host."""
        task = self.get_object()
        query = LogQuery(data=request.query_params)
        query.is_valid(raise_exception=True)
        wanted = query.validated_data
        piece = _answered(lambda: logs.read(task, **wanted, requested_by=_user(request)))
        if piece is None:
            return Response({"state": "waiting"}, status=status.HTTP_202_ACCEPTED)
        return Response(LogSerializer(piece).data)


def _user(request: Request) -> User:
    return cast(User, request.user)


def _answered(act: Callable[[], T]) -> T:
    """What the service returns; its refusals in the API's form."""
    try:
        return act()
    except editing.WrongState as wrong:
        raise errors.Conflict(str(wrong), code="wrong_state") from None
    except launching.Refused as refused:
        raise errors.Refused(str(refused)) from None
    except RequestFailed as failed:
        raise errors.Conflict(str(failed), code="log_unavailable") from None


def register(router: BaseRouter) -> None:
    router.register("jobs", JobViewSet, basename="job")
    router.register("tasks", TaskViewSet, basename="task")
