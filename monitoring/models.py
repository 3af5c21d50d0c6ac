"""Hosts, GPUs, what was last seen of them, and the rows that coordinate the watching."""

from __future__ import annotations

import datetime as dt
import hashlib
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator
from django.db import models
from django.db.models import Q

from monitoring import naming


class HostQuerySet(models.QuerySet["Host"]):
    def watched(self) -> HostQuerySet:
        """Those that are probed: enabled, and not in maintenance."""
        return self.filter(is_enabled=True, in_maintenance=False)


class Host(models.Model):
    """A machine reached by SSH. Its state is what the last probes said, with a sentence."""

    class State(models.TextChoices):
        PENDING = "pending"
        OK = "ok"
        PARTIAL = "partial"
        UNREACHABLE = "unreachable"
        KEY_UNKNOWN = "key_unknown"
        KEY_CHANGED = "key_changed"
        AUTH_FAILED = "auth_failed"
        NO_DRIVER = "no_driver"
        DRIVER_MISMATCH = "driver_mismatch"
        NO_GPUS = "no_gpus"
        MAINTENANCE = "maintenance"
        DISABLED = "disabled"

    name = models.CharField(
        max_length=64,
        unique=True,
        validators=[RegexValidator(naming.HOST_LABEL, naming.HOST_LABEL_HELP)],
        help_text="How people know it. Letters, digits, dots and dashes.",
    )
    address = models.CharField(
        max_length=253,
        validators=[naming.validate_address],
        help_text="Host name or IP address, without user or port.",
    )
    port = models.PositiveIntegerField(
        default=22, validators=[MinValueValidator(1), MaxValueValidator(65535)]
    )
    user = models.CharField(
        "observing account",
        max_length=32,
        validators=[naming.validate_login],
        help_text="The login that probes this host.",
    )
    jump_user = models.CharField(max_length=32, blank=True, validators=[naming.validate_login])
    jump_address = models.CharField(
        max_length=253,
        blank=True,
        validators=[naming.validate_address],
        help_text="Optional: a host to go through.",
    )
    jump_port = models.PositiveIntegerField(
        default=22, validators=[MinValueValidator(1), MaxValueValidator(65535)]
    )
    is_enabled = models.BooleanField("enabled", default=True)
    in_maintenance = models.BooleanField(
        default=False, help_text="Shown, but not probed and not bookable."
    )

    state = models.CharField(max_length=16, choices=State, default=State.PENDING, editable=False)
    reason = models.CharField(max_length=500, blank=True, editable=False)
    state_since = models.DateTimeField(null=True, editable=False)
    last_probe_at = models.DateTimeField(null=True, editable=False)
    last_good_at = models.DateTimeField(null=True, editable=False)
    failures_in_a_row = models.PositiveIntegerField(default=0, editable=False)
    # The interval at which it is probed now; longer than the setting where nvidia-smi is slow.
    interval_seconds = models.FloatField(null=True, editable=False)
    # "Probe now": the watch takes the host at its next tick, whatever its back-off says.
    probe_requested_at = models.DateTimeField(null=True, editable=False)
    boot_id = models.CharField(max_length=64, blank=True, editable=False)
    machine_id = models.CharField(max_length=64, blank=True, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = HostQuerySet.as_manager()

    class Meta:
        ordering = ["name"]
        constraints = [
            models.CheckConstraint(
                condition=Q(port__gte=1, port__lte=65535, jump_port__gte=1, jump_port__lte=65535),
                name="host_ports_exist",
            ),
            models.CheckConstraint(
                condition=Q(jump_address="", jump_user="") | ~Q(jump_address="") & ~Q(jump_user=""),
                name="host_jump_has_address_and_user",
                violation_error_message="A jump host needs an address and a user.",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def current_interval(self) -> dt.timedelta:
        """How often it is probed now."""
        if self.interval_seconds is None:
            return settings.PROBE_INTERVAL
        return dt.timedelta(seconds=self.interval_seconds)

    @property
    def stale_after(self) -> dt.timedelta:
        """Data older than this is shown grey and never acted upon."""
        return 3 * self.current_interval

    def age(self, now: dt.datetime) -> dt.timedelta | None:
        """How old the last good data is; None when there never was any."""
        return None if self.last_good_at is None else max(now - self.last_good_at, dt.timedelta())

    def is_stale(self, now: dt.datetime) -> bool:
        age = self.age(now)
        return age is None or age > self.stale_after

    def shard(self, shards: int) -> int:
        """The watch that looks after it: stable, and even over the hosts."""
        digest = hashlib.blake2b(str(self.pk).encode(), digest_size=4).digest()
        return int.from_bytes(digest) % shards


class HostKey(models.Model):
    """A public key seen at a host or at its jump host; only accepted ones are trusted.

    Pins belong to the address and port they were seen at: changing either asks for a new
    confirmation. Without an accepted key nothing is authenticated.
    """

    host = models.ForeignKey(Host, models.CASCADE, related_name="keys")
    address = models.CharField(max_length=253)
    port = models.PositiveIntegerField()
    key_type = models.CharField(max_length=64)
    public_key = models.TextField(help_text="base64, as in known_hosts")
    fingerprint = models.CharField(max_length=100)
    seen_at = models.DateTimeField()
    accepted_at = models.DateTimeField(null=True, blank=True)
    accepted_by = models.CharField(max_length=150, blank=True)

    class Meta:
        ordering = ["host", "address", "port", "key_type", "-seen_at"]
        constraints = [
            models.UniqueConstraint(
                fields=["host", "address", "port", "key_type", "public_key"],
                name="host_key_recorded_once",
            )
        ]

    def __str__(self) -> str:
        return f"{self.address}:{self.port} {self.key_type} {self.fingerprint}"

    @property
    def line(self) -> str:
        """As OpenSSH writes it, without the host's name."""
        return f"{self.key_type} {self.public_key}"


class GpuQuerySet(models.QuerySet["Gpu"]):
    def present(self) -> GpuQuerySet:
        return self.filter(is_retired=False)


class Gpu(models.Model):
    """One device, known by its UUID for ever; a MIG instance is one too."""

    class State(models.TextChoices):
        OK = "ok"
        PARTIAL = "partial"
        LOST = "lost"
        UNKNOWN = "unknown"

    uuid = models.CharField(max_length=96, unique=True)
    host = models.ForeignKey(Host, models.PROTECT, related_name="gpus")
    parent = models.ForeignKey(
        "self", models.PROTECT, null=True, blank=True, related_name="instances"
    )
    index = models.PositiveIntegerField(null=True)
    name = models.CharField(max_length=120, blank=True)
    bus_id = models.CharField(max_length=32, blank=True)
    memory_total_mib = models.PositiveIntegerField(null=True)
    driver_version = models.CharField(max_length=32, blank=True)
    state = models.CharField(max_length=16, choices=State, default=State.UNKNOWN)
    reason = models.CharField(max_length=500, blank=True)
    state_since = models.DateTimeField(null=True)
    first_seen_at = models.DateTimeField()
    last_seen_at = models.DateTimeField()
    is_retired = models.BooleanField(
        default=False, help_text="No longer there: kept for history, hidden from the calendar."
    )

    objects = GpuQuerySet.as_manager()

    class Meta:
        ordering = ["host__name", "index", "pk"]
        verbose_name = "GPU"
        verbose_name_plural = "GPUs"

    def __str__(self) -> str:
        return f"{self.host.name}:{'?' if self.index is None else self.index}"


class HostSnapshot(models.Model):
    """The newest good answer of a host: one row per host, overwritten by each probe.

    `data` holds `gpus`, `processes`, `logins`, `sections`, `cpu_percent` and the host's own figures
    (shapes in monitoring.services.storing); `taken_at` is the manager's clock.
    """

    host = models.OneToOneField(Host, models.CASCADE, related_name="snapshot")
    taken_at = models.DateTimeField()
    # The probe before this one, for decisions that need two in a row.
    previous_taken_at = models.DateTimeField(null=True)
    probe_seconds = models.FloatField()
    data = models.JSONField()
    previous_data = models.JSONField(null=True)

    class Meta:
        ordering = ["host"]

    def __str__(self) -> str:
        return f"{self.host} at {self.taken_at:%H:%M:%S}"


class HostSample(models.Model):
    """Raw history: the numbers of all GPUs of one host at one moment, kept for hours."""

    host = models.ForeignKey(Host, models.CASCADE, related_name="samples")
    taken_at = models.DateTimeField()
    # {uuid: [utilization_percent, memory_used_mib, memory_utilization_percent,
    #         temperature_celsius, power_watts, fan_percent]}, each possibly null
    gpus = models.JSONField()
    cpu_percent = models.FloatField(null=True)
    memory_used_mib = models.PositiveIntegerField(null=True)
    load_1m = models.FloatField(null=True)

    class Meta:
        ordering = ["host", "taken_at"]
        constraints = [
            models.UniqueConstraint(fields=["host", "taken_at"], name="host_sampled_once_a_moment")
        ]
        indexes = [models.Index(fields=["taken_at"], name="sample_taken_at")]

    def __str__(self) -> str:
        return f"{self.host} at {self.taken_at:%F %T}"


class HostRollup(models.Model):
    """History in minutes and hours: least, mean and greatest of each GPU's numbers in one stretch.

    `gpus` is {uuid: {metric: [min, mean, max, count]}}; a metric that was never known is missing.
    """

    MINUTE, HOUR = 60, 3600

    host = models.ForeignKey(Host, models.CASCADE, related_name="rollups")
    seconds = models.PositiveIntegerField(choices=[(MINUTE, "minute"), (HOUR, "hour")])
    starts_at = models.DateTimeField()
    gpus = models.JSONField()

    class Meta:
        ordering = ["host", "seconds", "starts_at"]
        constraints = [
            models.UniqueConstraint(
                fields=["host", "seconds", "starts_at"], name="host_rolled_up_once_a_stretch"
            )
        ]
        indexes = [models.Index(fields=["seconds", "starts_at"], name="rollup_seconds_start")]

    def __str__(self) -> str:
        return f"{self.host} {self.seconds} s from {self.starts_at:%F %T}"


class WatchLease(models.Model):
    """Who watches a shard of the hosts now. Taken and renewed by conditional UPDATEs only."""

    shard = models.PositiveIntegerField(unique=True)
    holder = models.CharField(max_length=200, blank=True)
    machine = models.CharField(max_length=200, blank=True)
    expires_at = models.DateTimeField()
    beat_at = models.DateTimeField(null=True)
    stop_requested = models.BooleanField(default=False)
    version = models.CharField(max_length=64, blank=True)

    class Meta:
        ordering = ["shard"]

    def __str__(self) -> str:
        return f"shard {self.shard}"


class Heartbeat(models.Model):
    """The last beat of a cluster on a machine, written by a background task of that cluster."""

    cluster = models.CharField(max_length=32)
    machine = models.CharField(max_length=200)
    process_id = models.PositiveIntegerField()
    version = models.CharField(max_length=64)
    started_at = models.DateTimeField(null=True)
    beat_at = models.DateTimeField()

    class Meta:
        ordering = ["cluster", "machine"]
        constraints = [
            models.UniqueConstraint(
                fields=["cluster", "machine"], name="heartbeat_per_cluster_and_machine"
            )
        ]

    def __str__(self) -> str:
        return f"{self.cluster} on {self.machine}"


class HostRequest(models.Model):
    """Something a person wants from a host: the web process writes the row, a worker answers it.

    The queue only rings the bell; a worker claims the row by compare-and-set.
    """

    class State(models.TextChoices):
        WAITING = "waiting"
        RUNNING = "running"
        DONE = "done"
        FAILED = "failed"

    kind = models.CharField(max_length=40)
    host = models.ForeignKey(Host, models.CASCADE, null=True, related_name="requests")
    arguments: models.JSONField[dict[str, Any], dict[str, Any]] = models.JSONField(default=dict)
    state = models.CharField(max_length=8, choices=State, default=State.WAITING)
    result: models.JSONField[Any, Any] = models.JSONField(null=True)
    reason = models.CharField(max_length=500, blank=True)
    requested_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    claimed_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-pk"]
        indexes = [models.Index(fields=["state", "created_at"], name="request_state_created")]

    def __str__(self) -> str:
        return f"{self.kind} of {self.host}"


class AuditEntry(models.Model):
    """Who changed what, when: written by services in the transaction of the change, never edited.

    The person's name is copied, so that the entry outlives the account. Secrets and the
    environments of jobs never appear in `changes`.
    """

    at = models.DateTimeField()
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="audit_entries"
    )
    actor_name = models.CharField(max_length=150, blank=True)  # "" means the product itself
    action = models.CharField(max_length=64)  # "host.accept_key", "reservation.cancel", …
    target = models.CharField(max_length=200)
    target_type = models.CharField(max_length=64)
    target_id = models.CharField(max_length=64)
    changes = models.JSONField(default=dict)
    reason = models.CharField(max_length=500, blank=True)

    class Meta:
        ordering = ["-at", "-pk"]
        verbose_name_plural = "audit entries"
        indexes = [
            models.Index(fields=["target_type", "target_id"], name="audit_target"),
            models.Index(fields=["at"], name="audit_at"),
        ]

    def __str__(self) -> str:
        return f"{self.at:%F %T} {self.actor_name or 'TensorHive'} {self.action} {self.target}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        if self.pk is not None:
            raise ValidationError("Audit entries are never changed.")
        super().save(*args, **kwargs)

    def delete(self, *args: Any, **kwargs: Any) -> tuple[int, dict[str, int]]:
        raise ValidationError("Audit entries are never deleted.")
