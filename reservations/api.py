"""Reservations and the policy through the API."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db.models import Prefetch, QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import mixins, serializers, status, viewsets
from rest_framework.decorators import action
from rest_framework.exceptions import NotFound
from rest_framework.permissions import IsAdminUser
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.routers import BaseRouter
from rest_framework.views import APIView

from accounts.people import signed_in
from monitoring.errors import Conflict, Refused
from reservations import api_violations
from reservations.filters import ReservationFilter
from reservations.models import Reservation, ReservationGpu
from reservations.serializers import PolicySerializer, ReservationSerializer
from reservations.services import booking
from reservations.services.policy import change_policy, current_policy


@contextmanager
def answered() -> Iterator[None]:
    """Turn what booking refuses into the API's answers."""
    try:
        yield
    except booking.RuleRefusal as refusal:
        raise Refused(str(refusal), refusal.code) from None
    except (booking.GpuTaken, booking.WrongState) as conflict:
        raise Conflict(str(conflict), conflict.code) from None


class ReservationViewSet(
    mixins.ListModelMixin,
    mixins.RetrieveModelMixin,
    viewsets.GenericViewSet[Reservation],
):
    """Everybody sees the reservations of the GPUs they see; owners and administrators change."""

    queryset = Reservation.objects.none()
    serializer_class = ReservationSerializer
    filterset_class = ReservationFilter
    lookup_value_regex = r"\d+"

    def get_queryset(self) -> QuerySet[Reservation]:
        slots = ReservationGpu.objects.select_related("gpu").order_by(
            "gpu__host__name", "gpu__index"
        )
        return (
            Reservation.objects.visible_to(signed_in(self.request))
            .select_related("owner")
            .prefetch_related(Prefetch("slots", slots))
        )

    def get_serializer_context(self) -> dict[str, Any]:
        return {**super().get_serializer_context(), "now": timezone.now()}

    def create(self, request: Request) -> Response:
        values = self._values(request)
        with answered():
            made = booking.reserve(actor=signed_in(request), **values)
        return self._shown(made, status.HTTP_201_CREATED)

    def partial_update(self, request: Request, pk: str) -> Response:
        values = self._values(request, partial=True)
        if "owner" in values:
            raise serializers.ValidationError({"owner": ["The owner stays; make a new one."]})
        with answered():
            changed = booking.change(self.get_object(), actor=signed_in(request), **values)
        return self._shown(changed)

    @extend_schema(request=None)
    @action(detail=True, methods=["post"])
    def cancel(self, request: Request, pk: str) -> Response:
        with answered():
            return self._shown(booking.cancel(self.get_object(), actor=signed_in(request)))

    @extend_schema(request=None)
    @action(detail=True, methods=["post"])
    def release(self, request: Request, pk: str) -> Response:
        with answered():
            return self._shown(booking.release(self.get_object(), actor=signed_in(request)))

    def _values(self, request: Request, *, partial: bool = False) -> dict[str, Any]:
        serializer = self.get_serializer(data=request.data, partial=partial)
        serializer.is_valid(raise_exception=True)
        return dict(serializer.validated_data)

    def _shown(self, reservation: Reservation, code: int = status.HTTP_200_OK) -> Response:
        row = self.get_queryset().filter(pk=reservation.pk).first()
        if row is None:
            raise NotFound
        return Response(self.get_serializer(row).data, status=code)


class PolicyView(APIView):
    """One object: GET shows it, PATCH changes it; for administrators."""

    permission_classes = [IsAdminUser]

    @extend_schema(responses=PolicySerializer)
    def get(self, request: Request) -> Response:
        return Response(PolicySerializer(current_policy()).data)

    @extend_schema(request=PolicySerializer, responses=PolicySerializer)
    def patch(self, request: Request) -> Response:
        serializer = PolicySerializer(current_policy(), data=request.data, partial=True)
        serializer.is_valid(raise_exception=True)
        changed = change_policy(actor=signed_in(request), **serializer.validated_data)
        return Response(PolicySerializer(changed).data)


def register(router: BaseRouter) -> None:
    router.register("reservations", ReservationViewSet, basename="reservation")
    api_violations.register(router)
