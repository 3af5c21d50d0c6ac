"""What lists of reservations can be narrowed to."""

from __future__ import annotations

from django.db.models import QuerySet
from django.utils import timezone
from django_filters import rest_framework as filters

from monitoring.filters import MomentFilter
from reservations.models import Reservation


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
