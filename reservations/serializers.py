"""Reservations and the policy in the API."""

from __future__ import annotations

import datetime as dt
from typing import Any

from django.db import models
from django.utils import timezone
from rest_framework import serializers

from accounts.models import User, validate_time_zone
from monitoring import naming
from monitoring.fields import (
    MomentField,
    NamedField,
    StrictBooleanField,
    StrictIntegerField,
    TextField,
)
from monitoring.models import Gpu
from reservations.models import Policy, Reservation
from reservations.wording import iso_duration


class GpusField(serializers.ListField):
    """A list of UUIDs of GPUs that the asking person may see; gives the rows."""

    child = TextField(max_length=96)

    def to_internal_value(self, data: Any) -> list[Gpu]:
        uuids = super().to_internal_value(data)
        if len(set(uuids)) < len(uuids):
            raise serializers.ValidationError("Name each GPU once.", code="duplicate")
        visible = self.context["request"].user.visible_gpus().select_related("host")
        found = {gpu.uuid: gpu for gpu in visible.filter(uuid__in=uuids)}
        if unknown := [uuid for uuid in uuids if uuid not in found]:
            names = ", ".join(naming.printable(uuid, 60) for uuid in unknown[:3])
            raise serializers.ValidationError(f"No such GPU: {names}.", code="does_not_exist")
        return list(found.values())

    def to_representation(self, data: Any) -> list[str]:
        return [slot.gpu.uuid for slot in data]


class ReservationSerializer(serializers.ModelSerializer[Reservation]):
    title = TextField(max_length=60)
    description = TextField(max_length=200, lines=True, required=False, allow_blank=True)
    owner = NamedField(
        slug_field="username", queryset=User.objects.filter(is_active=True), required=False
    )
    gpus = GpusField(source="slots.all", allow_empty=False, max_length=1024)
    starts_at = MomentField()
    ends_at = MomentField()
    override_access = StrictBooleanField(
        required=False, help_text="Administrators: book past the grants and limits; recorded."
    )
    state = serializers.SerializerMethodField()
    cancel_reason = serializers.SerializerMethodField()
    # Projects and usage are not kept yet: unknown, not empty.
    project = serializers.SerializerMethodField()
    usage = serializers.SerializerMethodField()

    class Meta:
        model = Reservation
        fields = [
            "id",
            "title",
            "description",
            "project",
            "owner",
            "gpus",
            "starts_at",
            "ends_at",
            "state",
            "cancel_reason",
            "released_at",
            "override_access",
            "usage",
        ]
        read_only_fields = ["released_at"]

    def to_internal_value(self, data: Any) -> Any:
        values = super().to_internal_value(data)
        if "slots" in values:
            values["gpus"] = values.pop("slots")["all"]
        return values

    def get_state(self, reservation: Reservation) -> str:
        return reservation.state(self.context.get("now") or timezone.now()).value

    def get_cancel_reason(self, reservation: Reservation) -> str | None:
        return reservation.cancel_reason if reservation.cancelled_at else None

    def get_project(self, reservation: Reservation) -> str | None:
        return None

    def get_usage(self, reservation: Reservation) -> dict[str, Any] | None:
        return None


class IsoDurationField(serializers.DurationField):
    """ISO 8601 both ways: PT30M, P8D."""

    default_error_messages = {"invalid": "Give the length as ISO 8601, for example PT30M or P8D."}

    def to_internal_value(self, value: Any) -> dt.timedelta:
        if not isinstance(value, str) or not value.startswith("P"):
            self.fail("invalid")
        return super().to_internal_value(value)

    def to_representation(self, value: dt.timedelta) -> str:
        return iso_duration(value)


class PolicySerializer(serializers.ModelSerializer[Policy]):
    """Bounds and the sense of the whole are judged by the service."""

    serializer_field_mapping = {
        **serializers.ModelSerializer.serializer_field_mapping,
        models.BooleanField: StrictBooleanField,
        models.PositiveIntegerField: StrictIntegerField,
        models.DurationField: IsoDurationField,
    }
    enforcement_level = StrictIntegerField(min_value=0, max_value=2)
    time_zone = TextField(max_length=64, validators=[validate_time_zone])

    class Meta:
        model = Policy
        fields = [
            *("enforcement_level", "dry_run", "warn_terminals"),
            *("mail_intruder", "mail_owner", "mail_administrators", "kill", "grace_minutes"),
            *("min_length", "max_length", "horizon", "step"),
            *("max_gpus_at_once", "max_hours_per_week", "short_notice_hours", "time_zone"),
        ]
