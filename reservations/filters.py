"""What lists of reservations can be narrowed to."""

from __future__ import annotations

from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.utils import timezone
from django_filters import rest_framework as filters
from rest_framework import serializers

from monitoring.fields import MomentField
from reservations.models import Reservation


class MomentFormField(forms.CharField):
    """A moment with its offset, under the same rules as in a body."""

    def to_python(self, value: Any) -> Any:
        text = super().to_python(value)
        if not text:
            return None
        try:
            return MomentField().run_validation(text)
        except serializers.ValidationError as error:
            raise ValidationError([str(sentence) for sentence in error.detail]) from None


class MomentFilter(filters.IsoDateTimeFilter):
    field_class = MomentFormField


class ReservationFilter(filters.FilterSet):
    """A span is asked for with `starts_before` and `ends_after`: what touches it is shown."""

    starts_before = MomentFilter(field_name="starts_at", lookup_expr="lt")
    ends_after = MomentFilter(field_name="ends_at", lookup_expr="gt")
    owner = filters.CharFilter(field_name="owner__username")
    gpu = filters.CharFilter(field_name="slots__gpu__uuid")
    host = filters.CharFilter(field_name="slots__gpu__host__name", distinct=True)
    state = filters.ChoiceFilter(choices=Reservation.State.choices, method="with_state")

    class Meta:
        model = Reservation
        fields = ["starts_before", "ends_after", "owner", "gpu", "host", "state"]

    def with_state(
        self, rows: QuerySet[Reservation], name: str, value: str
    ) -> QuerySet[Reservation]:
        now = timezone.now()
        if value == Reservation.State.CANCELLED:
            return rows.exclude(cancelled_at=None)
        rows = rows.filter(cancelled_at=None)
        if value == Reservation.State.UPCOMING:
            return rows.filter(starts_at__gt=now)
        if value == Reservation.State.RUNNING:
            return rows.filter(starts_at__lte=now, ends_at__gt=now)
        return rows.filter(ends_at__lte=now)
