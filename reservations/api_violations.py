"""Violations in the API: administrators see all, people those about them or their bookings."""

from __future__ import annotations

from typing import Any

from django.db.models import Q, QuerySet
from django_filters import rest_framework as filters
from rest_framework import mixins, serializers, viewsets
from rest_framework.routers import BaseRouter

from reservations.models import Violation, ViolationStep


class StepSerializer(serializers.ModelSerializer[ViolationStep]):
    class Meta:
        model = ViolationStep
        fields = ["kind", "at", "result", "text"]


class ViolationSerializer(serializers.ModelSerializer[Violation]):
    """`processes` is the evidence of the newest probe, for those who may see the violation."""

    host = serializers.SlugRelatedField(slug_field="name", read_only=True)  # type: ignore[var-annotated]
    gpu = serializers.SlugRelatedField(slug_field="uuid", read_only=True)  # type: ignore[var-annotated]
    person = serializers.SlugRelatedField(slug_field="username", read_only=True)  # type: ignore[var-annotated]
    steps = StepSerializer(many=True, read_only=True)

    class Meta:
        model = Violation
        fields = [
            "id",
            "host",
            "gpu",
            "intruder",
            "person",
            "reservation",
            "rule",
            "first_seen_at",
            "last_seen_at",
            "ended_at",
            "processes",
            "steps",
        ]


class ViolationFilter(filters.FilterSet):
    host = filters.CharFilter(field_name="host__name")
    gpu = filters.CharFilter(field_name="gpu__uuid")
    intruder = filters.CharFilter()
    is_open = filters.BooleanFilter(field_name="ended_at", lookup_expr="isnull")

    class Meta:
        model = Violation
        fields = ["host", "gpu", "intruder", "reservation", "is_open"]


class ViolationViewSet(
    mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Violation]
):
    queryset = Violation.objects.none()
    serializer_class = ViolationSerializer
    filterset_class = ViolationFilter

    def get_queryset(self) -> QuerySet[Violation]:
        rows = (
            Violation.objects.exclude(confirmed_at=None)
            .select_related("host", "gpu", "person")
            .prefetch_related("steps")
        )
        user: Any = self.request.user
        if user.is_staff:
            return rows
        return rows.filter(Q(person=user) | Q(reservation__owner=user))


def register(router: BaseRouter) -> None:
    router.register("violations", ViolationViewSet, basename="violation")
