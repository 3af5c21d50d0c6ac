"""Hosts, GPUs, their processes and samples over HTTP, as far as the person may see them."""

from __future__ import annotations

import abc
import datetime as dt
from collections.abc import Sequence
from typing import Any, cast

from django.contrib.auth.models import AbstractBaseUser
from django.db.models import Model, QuerySet
from django.http import Http404
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import status, viewsets
from rest_framework.decorators import action
from rest_framework.permissions import IsAdminUser
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.routers import BaseRouter

from monitoring import requests
from monitoring.errors import Conflict
from monitoring.filters import GpuFilter, HostFilter, ProcessQuery, SeriesQuery
from monitoring.history import gpu_series
from monitoring.models import Gpu, Host, HostRequest
from monitoring.overview import describe_gpus, describe_hosts, person_of
from monitoring.serializers import (
    CheckSerializer,
    GpuSerializer,
    HostSerializer,
    ProcessSerializer,
    SeriesSerializer,
    WaitingSerializer,
)
from monitoring.series import METRICS


class PictureViewSet(viewsets.GenericViewSet, abc.ABC):
    """Lists and shows rows as pictures, all drawn for one moment."""

    @abc.abstractmethod
    def describe(self, rows: Sequence[Any], now: dt.datetime) -> Sequence[Any]:
        """The pictures of the rows at that moment, in their order."""

    def list(self, request: Request) -> Response:
        rows = self.paginate_queryset(self.filter_queryset(self.get_queryset()))
        return self.get_paginated_response(self._data(rows or []))

    def retrieve(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        return Response(self._data([self.get_object()])[0])

    def _data(self, rows: Sequence[Model]) -> Any:
        now = timezone.now()
        context = {**self.get_serializer_context(), "now": now}
        return self.get_serializer_class()(
            self.describe(rows, now), many=True, context=context
        ).data


class HostViewSet(PictureViewSet):
    """The hosts one may see, with state, reason and age."""

    queryset = Host.objects.none()
    serializer_class = HostSerializer
    filterset_class = HostFilter

    def get_queryset(self) -> QuerySet[Host]:
        return person_of(self.request).visible_hosts().order_by("name")

    def describe(self, rows: Sequence[Host], now: dt.datetime) -> Sequence[Any]:
        return describe_hosts(rows, user=person_of(self.request), now=now)

    @extend_schema(request=None, responses={200: CheckSerializer, 202: WaitingSerializer})
    @action(detail=True, methods=["post"], permission_classes=[IsAdminUser])
    def check(self, request: Request, pk: str) -> Response:
        """Have a worker look at the host: what it found, or 202 while it still looks.

        A client that was told to wait asks again and gets the answer of the same look.
        """
        host = self.get_object()
        asked = requests.wait(
            requests.ask_once(
                "check_host", host=host, requested_by=cast(AbstractBaseUser, request.user)
            )
        )
        if requests.is_open(asked):
            return Response({"state": "waiting"}, status=status.HTTP_202_ACCEPTED)
        if asked.state == HostRequest.State.FAILED:
            raise Conflict(asked.reason)
        return Response(asked.result)


class GpuViewSet(PictureViewSet):
    """The GPUs one may see: last sample, reservation and processes."""

    queryset = Gpu.objects.none()
    serializer_class = GpuSerializer
    filterset_class = GpuFilter
    lookup_field = "uuid"
    lookup_value_regex = "[^/]+"

    def get_queryset(self) -> QuerySet[Gpu]:
        return (
            person_of(self.request)
            .visible_gpus()
            .select_related("host")
            .order_by("host__name", "index", "pk")
        )

    def describe(self, rows: Sequence[Gpu], now: dt.datetime) -> Sequence[Any]:
        return describe_gpus(rows, user=person_of(self.request), now=now)


class ProcessViewSet(viewsets.GenericViewSet):
    """The processes on the GPUs one may see, as of the last answer of their host."""

    serializer_class = ProcessSerializer
    filter_backends: list[Any] = []

    @extend_schema(parameters=[ProcessQuery], responses=ProcessSerializer(many=True))
    def list(self, request: Request) -> Response:
        query = ProcessQuery(data=request.query_params)
        query.is_valid(raise_exception=True)
        gpus = person_of(request).visible_gpus().select_related("host")
        wanted = query.validated_data
        if "host" in wanted:
            gpus = gpus.filter(host__name=wanted["host"])
        if "gpu" in wanted:
            gpus = gpus.filter(uuid=wanted["gpu"])
        pictures = describe_gpus(
            list(gpus.order_by("host__name", "index", "pk")),
            user=person_of(request),
            now=timezone.now(),
        )
        found = [
            process
            for gpu in pictures
            for process in gpu.processes
            if all(getattr(process, field) == value for field, value in wanted.items())
        ]
        page = self.paginate_queryset(found)
        return self.get_paginated_response(self.get_serializer(page, many=True).data)


class SampleViewSet(viewsets.GenericViewSet):
    """One metric of one GPU over time."""

    serializer_class = SeriesSerializer
    filter_backends: list[Any] = []
    pagination_class = None

    @extend_schema(parameters=[SeriesQuery], responses=SeriesSerializer)
    def list(self, request: Request) -> Response:
        query = SeriesQuery(data=request.query_params, context={"now": timezone.now()})
        query.is_valid(raise_exception=True)
        wanted = query.validated_data
        gpu = (
            person_of(request)
            .visible_gpus()
            .select_related("host")
            .filter(uuid=wanted["gpu"])
            .first()
        )
        if gpu is None:
            raise Http404
        series = gpu_series(gpu, metric=wanted["metric"], start=wanted["start"], end=wanted["end"])
        return Response(
            {
                "gpu": gpu.uuid,
                "metric": wanted["metric"],
                "unit": METRICS[wanted["metric"]][1],
                "resolution_seconds": series.resolution_seconds,
                "points": [
                    [f"{point.at:%Y-%m-%dT%H:%M:%S.%fZ}", point.minimum, point.mean, point.maximum]
                    for point in series.points
                ],
            }
        )


def register(router: BaseRouter) -> None:
    router.register("hosts", HostViewSet, basename="host")
    router.register("gpus", GpuViewSet, basename="gpu")
    router.register("processes", ProcessViewSet, basename="process")
    router.register("samples", SampleViewSet, basename="sample")
