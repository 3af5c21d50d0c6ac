"""The API's form of hosts, GPUs and processes; unknown is null."""

from __future__ import annotations

import datetime as dt

from rest_framework import serializers

from monitoring.models import Gpu, Host
from monitoring.picture import GpuPicture, HostPicture, Usage


class AgeMixin(serializers.Serializer):
    """`age_seconds` of the last good data at the moment of the answer (`context["now"]`)."""

    age_seconds = serializers.SerializerMethodField()

    def get_age_seconds(self, picture: HostPicture | GpuPicture) -> float | None:
        if picture.last_good_at is None:
            return None
        age: dt.timedelta = self.context["now"] - picture.last_good_at
        return round(max(age.total_seconds(), 0), 1)


class SampleSerializer(serializers.Serializer):
    utilization_percent = serializers.FloatField(allow_null=True)
    memory_used_mib = serializers.IntegerField(allow_null=True)
    memory_utilization_percent = serializers.FloatField(allow_null=True)
    temperature_celsius = serializers.FloatField(allow_null=True)
    power_watts = serializers.FloatField(allow_null=True)
    fan_percent = serializers.FloatField(allow_null=True)
    taken_at = serializers.DateTimeField()


class BookingSerializer(serializers.Serializer):
    id = serializers.IntegerField()
    title = serializers.CharField()
    owner = serializers.CharField()
    starts_at = serializers.DateTimeField()
    ends_at = serializers.DateTimeField()
    is_mine = serializers.BooleanField()


class ProcessSerializer(serializers.Serializer):
    pid = serializers.IntegerField()
    gpu = serializers.CharField()
    host = serializers.CharField()
    owner = serializers.CharField(allow_null=True, help_text="Unix login on the host")
    owner_confidence = serializers.ChoiceField(["certain", "likely", "unknown"])
    person = serializers.CharField(allow_null=True, help_text="username of the login's person")
    command = serializers.CharField(
        allow_null=True, help_text="with arguments only for those who may read them"
    )
    memory_used_mib = serializers.IntegerField(allow_null=True)
    started_at = serializers.DateTimeField(allow_null=True)


class GpuSerializer(AgeMixin, serializers.Serializer):
    id = serializers.IntegerField()
    uuid = serializers.CharField()
    host = serializers.CharField()
    index = serializers.IntegerField(allow_null=True)
    name = serializers.CharField()
    memory_total_mib = serializers.IntegerField(allow_null=True)
    state = serializers.ChoiceField(Gpu.State.choices)
    reason = serializers.CharField(allow_null=True)
    usage = serializers.ChoiceField([usage.value for usage in Usage])
    sample = SampleSerializer(allow_null=True)
    reservation = BookingSerializer(allow_null=True)
    next_reservation = BookingSerializer(allow_null=True)
    processes = ProcessSerializer(many=True)


class HostSerializer(AgeMixin, serializers.Serializer):
    id = serializers.IntegerField()
    name = serializers.CharField()
    address = serializers.CharField()
    port = serializers.IntegerField()
    state = serializers.ChoiceField(Host.State.choices)
    reason = serializers.CharField(allow_null=True)
    since = serializers.DateTimeField(allow_null=True)
    is_stale = serializers.BooleanField(help_text="older than three intervals")
    gpus = serializers.SerializerMethodField()
    cpu_percent = serializers.FloatField(allow_null=True)
    memory_total_mib = serializers.IntegerField(allow_null=True)
    memory_used_mib = serializers.IntegerField(allow_null=True)

    def get_gpus(self, host: HostPicture) -> list[str]:
        """UUIDs of the GPUs one may see."""
        return [gpu.uuid for gpu in host.gpus]


class SeriesSerializer(serializers.Serializer):
    """One metric of one GPU over time."""

    gpu = serializers.CharField()
    metric = serializers.CharField()
    unit = serializers.CharField()
    resolution_seconds = serializers.FloatField()
    points = serializers.ListField(
        child=serializers.ListField(),
        help_text="[moment, minimum, mean, maximum]; the three are null in a gap",
    )


class FindingSerializer(serializers.Serializer):
    name = serializers.CharField()
    ok = serializers.BooleanField(allow_null=True, help_text="null: a remark, or not to be told")
    text = serializers.CharField()


class CheckSerializer(serializers.Serializer):
    ok = serializers.BooleanField(help_text="the host can be watched as it is")
    findings = FindingSerializer(many=True)


class WaitingSerializer(serializers.Serializer):
    """The host has not answered yet: ask again."""

    state = serializers.ChoiceField(["waiting"])
