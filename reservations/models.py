"""Reservations, the policy, and violations with the steps taken against them."""

from __future__ import annotations

import datetime as dt

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import MinValueValidator
from django.db import models
from django.db.models import F, Q

from accounts.models import User, site_time_zone, validate_time_zone
from monitoring import naming
from monitoring.models import Gpu, Host

_LONGEST = dt.timedelta(days=3660)
_MOST = 100_000


class ReservationQuerySet(models.QuerySet["Reservation"]):
    def visible_to(self, user: User) -> ReservationQuerySet:
        """Their own, and those of the GPUs they see; all for administrators."""
        if user.is_administrator:
            return self
        seen = ReservationGpu.objects.filter(gpu__in=user.visible_gpus()).values("reservation")
        return self.filter(Q(pk__in=seen) | Q(owner=user))

    def standing(self) -> ReservationQuerySet:
        """Those that were not cancelled."""
        return self.filter(cancelled_at=None)

    def active_at(self, now: dt.datetime) -> ReservationQuerySet:
        return self.standing().filter(starts_at__lte=now, ends_at__gt=now)

    def overlapping(self, starts_at: dt.datetime, ends_at: dt.datetime) -> ReservationQuerySet:
        """Those that share a moment with [starts_at, ends_at); touching ends do not overlap."""
        return self.standing().filter(starts_at__lt=ends_at, ends_at__gt=starts_at)


class Reservation(models.Model):
    """One person's right to one or several GPUs from starts_at up to, not including, ends_at."""

    class State(models.TextChoices):
        UPCOMING = "upcoming"
        RUNNING = "running"
        FINISHED = "finished"
        CANCELLED = "cancelled"

    title = models.CharField(max_length=60, validators=[naming.validate_plain_text])
    description = models.CharField(
        max_length=200, blank=True, validators=[naming.validate_plain_lines]
    )
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="reservations")
    gpus = models.ManyToManyField(Gpu, through="ReservationGpu", related_name="reservations")
    starts_at = models.DateTimeField()
    ends_at = models.DateTimeField()
    cancelled_at = models.DateTimeField(null=True, editable=False)
    cancel_reason = models.CharField(max_length=500, blank=True, editable=False)
    released_at = models.DateTimeField(null=True, editable=False)
    # Set when an administrator booked past the grants and limits: who, and recorded in the audit.
    override_access = models.BooleanField(default=False, editable=False)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+", editable=False
    )
    created_at = models.DateTimeField(auto_now_add=True)

    objects = ReservationQuerySet.as_manager()

    class Meta:
        ordering = ["starts_at", "pk"]
        constraints = [
            models.CheckConstraint(
                condition=Q(ends_at__gt=F("starts_at")),
                name="reservation_ends_after_start",
                violation_error_message="A reservation must end after it starts.",
            )
        ]
        indexes = [
            models.Index(fields=["ends_at", "starts_at"], name="reservation_span"),
            models.Index(fields=["owner", "starts_at"], name="reservation_owner_start"),
        ]

    def __str__(self) -> str:
        return f"{self.title} ({self.owner})"

    def state(self, now: dt.datetime) -> Reservation.State:
        """What it is at the given moment; computed, never stored."""
        if self.cancelled_at is not None:
            return self.State.CANCELLED
        if now < self.starts_at:
            return self.State.UPCOMING
        return self.State.RUNNING if now < self.ends_at else self.State.FINISHED


class ReservationGpu(models.Model):
    """One GPU of a reservation, with the reservation's span beside it.

    The span is a copy that the database itself keeps equal (triggers), because an exclusion
    constraint sees one table only. It is what makes a double booking impossible.
    """

    reservation = models.ForeignKey(Reservation, models.CASCADE, related_name="slots")
    gpu = models.ForeignKey(Gpu, models.PROTECT, related_name="slots")
    starts_at = models.DateTimeField(editable=False)
    ends_at = models.DateTimeField(editable=False)
    is_standing = models.BooleanField(default=True, editable=False)

    class Meta:
        ordering = ["reservation", "gpu"]
        constraints = [
            models.UniqueConstraint(
                fields=["reservation", "gpu"], name="reservation_holds_a_gpu_once"
            )
        ]
        indexes = [models.Index(fields=["gpu", "ends_at", "starts_at"], name="slot_gpu_span")]

    def __str__(self) -> str:
        return f"{self.gpu} of reservation {self.reservation_id}"


class Policy(models.Model):
    """The rules of this installation: one row, changed in the console, in force at once."""

    class Level(models.IntegerChoices):
        OFF = 0, "0: nothing is enforced"
        RESERVED = 1, "1: processes on a GPU reserved by somebody else"
        UNRESERVED = 2, "2: also processes on a GPU that nobody reserved"

    class Kill(models.TextChoices):
        NEVER = "never", "never"
        OWNER = "owner", "as the process's owner"
        SUDO = "sudo", "by sudo"

    enforcement_level = models.PositiveSmallIntegerField(choices=Level, default=Level.RESERVED)
    dry_run = models.BooleanField(
        default=True, help_text="Only record what would have been done; nobody is warned."
    )
    warn_terminals = models.BooleanField(default=True)
    mail_intruder = models.BooleanField(default=True)
    mail_owner = models.BooleanField(default=True)
    mail_administrators = models.BooleanField(default=True)
    kill = models.CharField(max_length=8, choices=Kill, default=Kill.NEVER)
    grace_minutes = models.PositiveIntegerField(default=10, validators=[MinValueValidator(1)])
    min_length = models.DurationField(default=dt.timedelta(minutes=30))
    max_length = models.DurationField(default=dt.timedelta(days=8))
    horizon = models.DurationField(
        default=dt.timedelta(days=90), help_text="How far ahead a reservation may end."
    )
    step = models.DurationField(default=dt.timedelta(minutes=5))
    max_gpus_at_once = models.PositiveIntegerField(null=True, blank=True)
    max_hours_per_week = models.PositiveIntegerField(null=True, blank=True)
    short_notice_hours = models.PositiveIntegerField(null=True, blank=True)
    time_zone = models.CharField(
        max_length=64, default=site_time_zone, validators=[validate_time_zone]
    )

    class Meta:
        verbose_name_plural = "policy"
        constraints = [
            models.CheckConstraint(condition=Q(pk=1), name="policy_is_one_row"),
            models.CheckConstraint(
                condition=Q(enforcement_level__lte=2), name="policy_level_exists"
            ),
            models.CheckConstraint(
                condition=Q(min_length__gt=dt.timedelta(), max_length__gte=F("min_length")),
                name="policy_lengths_make_sense",
                violation_error_message="The longest length must not be below the shortest.",
            ),
            models.CheckConstraint(
                condition=Q(kill__in=["never", "owner", "sudo"]), name="policy_kill_exists"
            ),
        ]

    def __str__(self) -> str:
        return "Policy"

    def clean(self) -> None:
        """Refuse values that no booking could keep, or that no clock can count."""
        day, problems = dt.timedelta(days=1), {}
        if self.step is not None and (self.step < dt.timedelta(minutes=1) or day % self.step):
            problems["step"] = "A step is at least one minute and divides the day evenly."
        for name in ("min_length", "max_length", "horizon"):
            length = getattr(self, name)
            if length is not None and not dt.timedelta(minutes=1) <= length <= _LONGEST:
                problems[name] = "Between one minute and ten years."
        if not problems and self.horizon < self.min_length:
            problems["horizon"] = "The horizon must not be below the shortest length."
        for name in ("max_gpus_at_once", "max_hours_per_week"):
            value = getattr(self, name)
            if value is not None and not 1 <= value <= _MOST:
                problems[name] = f"Between 1 and {_MOST}, or empty for no limit."
        for name in ("short_notice_hours", "grace_minutes"):
            if (getattr(self, name) or 0) > _MOST:
                problems[name] = f"At most {_MOST}."
        if problems:
            raise ValidationError(problems)


class Violation(models.Model):
    """One intruder on one GPU against one reservation (or none), from first to last sight."""

    host = models.ForeignKey(Host, models.PROTECT, related_name="violations")
    gpu = models.ForeignKey(Gpu, models.PROTECT, related_name="violations")
    intruder = models.CharField("intruder's login", max_length=64)
    intruder_uid = models.PositiveBigIntegerField(null=True)
    person = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="violations"
    )
    reservation = models.ForeignKey(
        Reservation, models.PROTECT, null=True, blank=True, related_name="violations"
    )
    rule = models.CharField(max_length=300)
    first_seen_at = models.DateTimeField()
    # The second of two consecutive fresh probes: from here on steps are taken.
    confirmed_at = models.DateTimeField(null=True)
    last_seen_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    # [{pid, start_ticks, uid, login, command, memory_used_mib, owner_confidence}], newest probe
    processes = models.JSONField(default=list)
    boot_id = models.CharField(max_length=64, blank=True)

    class Meta:
        ordering = ["-first_seen_at", "-pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["gpu", "intruder", "reservation"],
                condition=Q(ended_at=None),
                name="violation_open_once",
            ),
            # NULLs are distinct in the one above, and SQLite knows no other way.
            models.UniqueConstraint(
                fields=["gpu", "intruder"],
                condition=Q(ended_at=None, reservation=None),
                name="violation_without_reservation_open_once",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.intruder} on {self.gpu}"


class ViolationStep(models.Model):
    """Something done about a violation; the row is written before the deed, completed after."""

    class Kind(models.TextChoices):
        SEEN = "seen"
        TERMINAL = "terminal"
        MAIL_INTRUDER = "mail_intruder"
        MAIL_OWNER = "mail_owner"
        MAIL_ADMINISTRATORS = "mail_administrators"
        WEBHOOK = "webhook"
        TERM = "term"
        KILL = "kill"
        VERIFY = "verify"

    class Result(models.TextChoices):
        DONE = "done"
        FAILED = "failed"
        DRY_RUN = "dry_run"
        SKIPPED = "skipped"
        NOT_CONFIRMED = "not_confirmed"

    violation = models.ForeignKey(Violation, models.CASCADE, related_name="steps")
    kind = models.CharField(max_length=20, choices=Kind)
    at = models.DateTimeField()
    # Empty while it is being done.
    result = models.CharField(max_length=16, choices=Result, blank=True)
    text = models.CharField(max_length=1000, blank=True)
    finished_at = models.DateTimeField(null=True)
    # The number of this warning within the violation: a step is taken once.
    round = models.PositiveIntegerField(default=0)
    evidence = models.JSONField(default=dict)

    class Meta:
        ordering = ["at", "pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["violation", "kind", "round"], name="violation_step_once_a_round"
            )
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.result}"
