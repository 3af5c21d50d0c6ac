"""People, their Unix logins, and the grants that say what they may use."""

from __future__ import annotations

import datetime as dt
import zoneinfo

from django.conf import settings
from django.contrib.auth.models import AbstractUser, Group
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Lower

from monitoring import naming
from monitoring.models import Gpu, Host


def validate_time_zone(value: str) -> None:
    """Refuse what the IANA database does not know."""
    if value not in zoneinfo.available_timezones():
        raise ValidationError(f"“{naming.printable(value, 60)}” is not a known time zone.")


def site_time_zone() -> str:
    """The installation's zone: what people and windows get unless they choose."""
    return settings.TIME_ZONE


class User(AbstractUser):
    """A person. `unix_login` is who they are on the hosts; an administrator sets it."""

    unix_login = models.CharField(  # noqa: DJ001  it is unique, and many have none
        "Unix login",
        max_length=32,
        null=True,
        blank=True,
        validators=[naming.validate_login],
        help_text="Their login on the hosts. Empty means the same as the username.",
    )
    time_zone = models.CharField(
        max_length=64,
        default=site_time_zone,
        validators=[validate_time_zone],
        help_text="Pages show times in this zone, for example Europe/Warsaw.",
    )

    class Meta(AbstractUser.Meta):
        constraints = [
            models.UniqueConstraint(
                Lower("unix_login"),
                name="unix_login_belongs_to_one_person",
                violation_error_message="Another person has this Unix login.",
            )
        ]

    def save(self, *args: object, **kwargs: object) -> None:
        self.unix_login = self.unix_login or None
        super().save(*args, **kwargs)  # type: ignore[arg-type]

    @property
    def login_on_hosts(self) -> str:
        """The Unix login of this person on the hosts."""
        return self.unix_login or self.username

    @property
    def is_administrator(self) -> bool:
        return self.is_active and self.is_staff

    def visible_gpus(self) -> models.QuerySet[Gpu]:
        """The GPUs this person sees on pages and in the API: for now, all that are there."""
        return Gpu.objects.present()

    def visible_hosts(self) -> models.QuerySet[Host]:
        return Host.objects.all()


class GrantQuerySet(models.QuerySet["Grant"]):
    def for_person(self, user: User) -> GrantQuerySet:
        """The grants that name the person, one of their groups, or everyone."""
        return self.filter(
            Q(everyone=True) | Q(users=user) | Q(groups__in=user.groups.all())
        ).distinct()


class Grant(models.Model):
    """Who may use which GPUs when. Without windows it holds at every hour of its period."""

    name = models.CharField(max_length=80, unique=True, validators=[naming.validate_plain_text])
    everyone = models.BooleanField(default=False, help_text="All people, later ones too.")
    users = models.ManyToManyField(settings.AUTH_USER_MODEL, blank=True, related_name="grants")
    groups = models.ManyToManyField(Group, blank=True, related_name="grants")
    everything = models.BooleanField(default=False, help_text="All GPUs, later ones too.")
    gpus = models.ManyToManyField(Gpu, blank=True, related_name="grants", verbose_name="GPUs")
    hosts = models.ManyToManyField(
        Host, blank=True, related_name="grants", help_text="All GPUs of these, later ones too."
    )
    starts_at = models.DateTimeField()
    ends_at = models.DateTimeField(null=True, blank=True, help_text="Empty: without end.")

    objects = GrantQuerySet.as_manager()

    class Meta:
        ordering = ["name"]
        constraints = [
            models.CheckConstraint(
                condition=Q(ends_at=None) | Q(ends_at__gt=F("starts_at")),
                name="grant_ends_after_start",
                violation_error_message="A grant must end after it starts.",
            )
        ]

    def __str__(self) -> str:
        return self.name


class GrantWindow(models.Model):
    """A weekly span of hours of a grant, in a named time zone.

    `weekdays` is a bit mask, Monday = 1 … Sunday = 64. Hours are minutes since midnight; an end of
    1440 is 24:00, and an end at or before the start passes midnight.
    """

    grant = models.ForeignKey(Grant, models.CASCADE, related_name="windows")
    weekdays = models.PositiveSmallIntegerField()
    starts_minute = models.PositiveSmallIntegerField()
    ends_minute = models.PositiveSmallIntegerField()
    time_zone = models.CharField(
        max_length=64, default=site_time_zone, validators=[validate_time_zone]
    )

    class Meta:
        ordering = ["grant", "pk"]
        constraints = [
            models.CheckConstraint(
                condition=Q(weekdays__gte=1, weekdays__lte=127),
                name="grant_window_has_a_weekday",
                violation_error_message="Choose at least one weekday.",
            ),
            models.CheckConstraint(
                condition=Q(starts_minute__lt=1440, ends_minute__gt=0, ends_minute__lte=1440)
                & ~Q(starts_minute=F("ends_minute")),
                name="grant_window_has_a_length",
                violation_error_message="A window must have a length; 00:00 to 24:00 is a day.",
            ),
        ]

    def __str__(self) -> str:
        return f"{minute_label(self.starts_minute)}–{minute_label(self.ends_minute)}"


def minute_label(minute: int) -> str:
    """Minutes since midnight as HH:MM, 1440 as 24:00."""
    return f"{minute // 60:02d}:{minute % 60:02d}"


def zone_of(user: object) -> dt.tzinfo:
    """The zone in which times are shown to this person; the installation's when signed out."""
    return zoneinfo.ZoneInfo(getattr(user, "time_zone", None) or settings.TIME_ZONE)
