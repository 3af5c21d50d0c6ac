"""What the API's lists and series can be asked for."""

from __future__ import annotations

import datetime as dt
from typing import Any

import django_filters
from django import forms
from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator
from rest_framework import serializers

from monitoring.fields import MomentField
from monitoring.models import Gpu, Host
from monitoring.series import METRICS

LONGEST_SPAN = dt.timedelta(days=7)
_LARGEST_ID = 2**63 - 1


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


class MomentFilter(django_filters.IsoDateTimeFilter):
    field_class = MomentFormField


class RowFilter(django_filters.NumberFilter):
    """Rows of one other row, by its id; bounded, as databases choke on larger numbers."""

    field_class = forms.IntegerField

    def __init__(self, field_name: str, **options: Any) -> None:
        super().__init__(field_name, min_value=1, **options)

    def get_max_validator(self) -> MaxValueValidator:
        return MaxValueValidator(_LARGEST_ID)


class HostFilter(django_filters.FilterSet):
    name = django_filters.CharFilter()
    state = django_filters.ChoiceFilter(choices=Host.State.choices)

    class Meta:
        model = Host
        fields = ["name", "state"]


class GpuFilter(django_filters.FilterSet):
    host = django_filters.CharFilter("host__name")
    name = django_filters.CharFilter(lookup_expr="icontains", label="part of the model's name")

    class Meta:
        model = Gpu
        fields = ["host", "name"]


class ProcessQuery(serializers.Serializer):
    """Filters of the list of processes."""

    host = serializers.CharField(required=False)
    gpu = serializers.CharField(required=False)
    owner = serializers.CharField(required=False, help_text="Unix login")
    person = serializers.CharField(required=False, help_text="username")


class SeriesQuery(serializers.Serializer):
    """Which numbers of which GPU; the last hour when nothing is said."""

    gpu = serializers.CharField(help_text="UUID")
    metric = serializers.ChoiceField(list(METRICS), default="utilization_percent")
    start = MomentField(required=False)
    end = MomentField(required=False)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        now: dt.datetime = self.context["now"]
        end = attrs.setdefault("end", now)
        start = attrs.setdefault("start", end - dt.timedelta(hours=1))
        if start >= end:
            raise serializers.ValidationError({"start": "The start must lie before the end."})
        if end - start > LONGEST_SPAN:
            raise serializers.ValidationError({"start": "Ask for at most seven days at once."})
        return attrs
