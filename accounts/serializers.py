"""People, groups and grants in the API."""

from __future__ import annotations

import re
from typing import Any

from django.contrib.auth.models import Group
from rest_framework import serializers

from accounts.models import (
    Grant,
    GrantWindow,
    User,
    minute_label,
    site_time_zone,
    validate_time_zone,
)
from monitoring.fields import (
    MomentField,
    NamedField,
    StrictBooleanField,
    StrictIntegerField,
    TextField,
)
from monitoring.models import Gpu, Host

_HOUR = re.compile(r"(?:([01]\d|2[0-3]):([0-5]\d)|24:00)\Z", re.ASCII)
_MOST_NAMED = 500


class UserSerializer(serializers.ModelSerializer[User]):
    groups = serializers.SlugRelatedField[Group](slug_field="name", many=True, read_only=True)

    class Meta:
        model = User
        fields = [
            *("id", "username", "first_name", "last_name", "email"),
            *("is_active", "is_staff", "unix_login", "time_zone", "groups"),
        ]
        read_only_fields = fields


class GroupSerializer(serializers.ModelSerializer[Group]):
    class Meta:
        model = Group
        fields = ["id", "name"]
        read_only_fields = fields


class HourField(serializers.CharField):
    """HH:MM from 00:00 to 24:00; minutes since midnight inside."""

    default_error_messages = {"invalid": "Give the hour as HH:MM, from 00:00 to 24:00."}

    def to_internal_value(self, data: Any) -> Any:
        match = _HOUR.match(data) if isinstance(data, str) else None
        if match is None:
            self.fail("invalid")
        hours, minutes = match.groups()
        return 1440 if hours is None else int(hours) * 60 + int(minutes)

    def to_representation(self, value: Any) -> str:
        return minute_label(value)


class WeekdaysField(serializers.ListField):
    """Days as numbers, Monday = 1 … Sunday = 7; the row keeps them as a bit mask."""

    child = StrictIntegerField(min_value=1, max_value=7)

    def to_representation(self, data: Any) -> list[int]:
        return [day for day in range(1, 8) if data & 1 << (day - 1)]


class WindowSerializer(serializers.ModelSerializer[GrantWindow]):
    """A weekly span of hours. An end at or before the start lies on the next day."""

    weekdays = WeekdaysField(allow_empty=False, max_length=7)
    starts_at = HourField(source="starts_minute")
    ends_at = HourField(source="ends_minute")
    time_zone = TextField(max_length=64, default=site_time_zone, validators=[validate_time_zone])

    class Meta:
        model = GrantWindow
        fields = ["weekdays", "starts_at", "ends_at", "time_zone"]
        validators: list[Any] = []  # constraints are the service's

    def validate_weekdays(self, days: list[int]) -> int:
        return sum(1 << (day - 1) for day in set(days))

    def validate_ends_at(self, minute: int) -> int:
        return minute or 1440  # an end at midnight is the end of the day


class GrantSerializer(serializers.ModelSerializer[Grant]):
    name = TextField(max_length=80)
    everyone = StrictBooleanField(required=False)
    everything = StrictBooleanField(required=False)
    users = NamedField(
        slug_field="username", queryset=User.objects.all(), many=True, required=False
    )
    groups = NamedField(slug_field="name", queryset=Group.objects.all(), many=True, required=False)
    gpus = NamedField(slug_field="uuid", queryset=Gpu.objects.all(), many=True, required=False)
    hosts = NamedField(slug_field="name", queryset=Host.objects.all(), many=True, required=False)
    starts_at = MomentField()
    ends_at = MomentField(required=False, allow_null=True)
    windows = WindowSerializer(many=True, required=False)

    class Meta:
        model = Grant
        fields = [
            *("id", "name", "everyone", "users", "groups"),
            *("everything", "gpus", "hosts", "starts_at", "ends_at", "windows"),
        ]
        validators: list[Any] = []  # constraints are the service's

    def validate_windows(self, windows: list[Any]) -> list[Any]:
        if len(windows) > _MOST_NAMED:
            raise serializers.ValidationError(f"At most {_MOST_NAMED} windows.")
        return windows
