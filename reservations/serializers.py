"""Reservations and the policy in the API."""

from __future__ import annotations

import datetime as dt
from typing import Any

from django.core.exceptions import ValidationError as ModelValidationError
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from rest_framework import serializers

from accounts.models import User
from monitoring import naming
from monitoring.models import Gpu
from reservations.models import Policy, Reservation


class MomentField(serializers.DateTimeField):
    """A moment with its offset from UTC; without one it would be a guess, so it is refused."""

    default_error_messages = {
        "naive": "Give the moment with its offset, for example 2026-12-01T14:00:00Z.",
    }

    def to_internal_value(self, value: Any) -> dt.datetime:
        if isinstance(value, str):
            try:
                parsed = parse_datetime(value)
            except ValueError:
                parsed = None
            if parsed is not None and parsed.tzinfo is None:
                self.fail("naive")
        try:
            return super().to_internal_value(value)
        except OverflowError:
            self.fail("invalid", format="YYYY-MM-DDThh:mm:ssZ")


class TextField(serializers.CharField):
    """Text only (a number is not a title), in NFC, without invisible characters."""

    def __init__(self, *, lines: bool = False, **options: Any) -> None:
        self.may_have_lines = lines
        super().__init__(**options)

    def to_internal_value(self, value: Any) -> str:
        if not isinstance(value, str):
            self.fail("invalid")
        text = naming.normalized(super().to_internal_value(value))
        check = naming.validate_plain_lines if self.may_have_lines else naming.validate_plain_text
        try:
            check(text)
        except ModelValidationError as error:
            raise serializers.ValidationError(error.messages) from None
        return text


class GpusField(serializers.ListField):
    """A list of UUIDs of GPUs that the asking person may see; gives the rows."""

    child = serializers.CharField(max_length=96)

    def to_internal_value(self, data: Any) -> list[Gpu]:
        uuids = super().to_internal_value(data)
        visible = self.context["request"].user.visible_gpus().select_related("host")
        found = {gpu.uuid: gpu for gpu in visible.filter(uuid__in=uuids)}
        if unknown := [uuid for uuid in uuids if uuid not in found]:
            names = ", ".join(naming.printable(uuid, 60) for uuid in unknown[:3])
            raise serializers.ValidationError(f"No such GPU: {names}.")
        return list(found.values())

    def to_representation(self, data: Any) -> list[str]:
        return [slot.gpu.uuid for slot in data]


class ReservationSerializer(serializers.ModelSerializer[Reservation]):
    title = TextField(max_length=60)
    description = TextField(max_length=200, lines=True, required=False, allow_blank=True)
    owner = serializers.SlugRelatedField(
        slug_field="username", queryset=User.objects.filter(is_active=True), required=False
    )
    gpus = GpusField(source="slots.all", allow_empty=False, max_length=1024)
    starts_at = MomentField()
    ends_at = MomentField()
    override_access = serializers.BooleanField(required=False)
    state = serializers.SerializerMethodField()
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
        read_only_fields = ["cancel_reason", "released_at"]

    def to_internal_value(self, data: Any) -> Any:
        values = super().to_internal_value(data)
        if "slots" in values:
            values["gpus"] = values.pop("slots")["all"]
        return values

    def get_state(self, reservation: Reservation) -> str:
        return reservation.state(self.context.get("now") or timezone.now()).value

    def get_project(self, reservation: Reservation) -> str | None:
        return None

    def get_usage(self, reservation: Reservation) -> dict[str, Any] | None:
        return None


class IsoDurationField(serializers.DurationField):
    """ISO 8601 both ways: PT30M, P8D."""

    def __init__(self, **options: Any) -> None:
        super().__init__(format="iso-8601", **options)


class PolicySerializer(serializers.ModelSerializer[Policy]):
    min_length = IsoDurationField()
    max_length = IsoDurationField()
    horizon = IsoDurationField()
    step = IsoDurationField()

    class Meta:
        model = Policy
        fields = [
            "enforcement_level",
            "dry_run",
            "warn_terminals",
            "mail_intruder",
            "mail_owner",
            "mail_administrators",
            "kill",
            "grace_minutes",
            "min_length",
            "max_length",
            "horizon",
            "step",
            "max_gpus_at_once",
            "max_hours_per_week",
            "short_notice_hours",
            "time_zone",
        ]
