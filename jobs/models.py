"""Jobs, their tasks on hosts, and each attempt to run one."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q

from monitoring import naming
from monitoring.models import Gpu, Host


class TaskState(models.TextChoices):
    """Of a task; a job's state is derived from its tasks (jobs.states)."""

    IDLE = "idle"
    QUEUED = "queued"
    STARTING = "starting"
    RUNNING = "running"
    FINISHED = "finished"
    STOPPED = "stopped"
    FAILED = "failed"
    LOST = "lost"
    UNKNOWN = "unknown"


class JobQuerySet(models.QuerySet["Job"]):
    def visible_to(self, user: object) -> JobQuerySet:
        """Their own jobs; all for administrators."""
        if getattr(user, "is_staff", False):
            return self
        return self.filter(owner_id=getattr(user, "pk", None))


class Job(models.Model):
    """Commands that belong together. Its state is derived from its tasks."""

    name = models.CharField(max_length=40, validators=[naming.validate_plain_text])
    description = models.CharField(
        max_length=200, blank=True, validators=[naming.validate_plain_lines]
    )
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="jobs")
    start_at = models.DateTimeField(null=True, blank=True)
    stop_at = models.DateTimeField(null=True, blank=True)
    # The start at start_at was seen to, whatever came of it: it happens once.
    start_handled_at = models.DateTimeField(null=True, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = JobQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-pk"]

    def __str__(self) -> str:
        return self.name


class Task(models.Model):
    """One command of a job on one host, with the GPUs it may use."""

    State = TaskState
    ACTIVE = frozenset({TaskState.STARTING, TaskState.RUNNING, TaskState.UNKNOWN})
    ENDED = frozenset({TaskState.FINISHED, TaskState.STOPPED, TaskState.FAILED, TaskState.LOST})

    job = models.ForeignKey(Job, models.CASCADE, related_name="tasks")
    position = models.PositiveIntegerField(default=0)
    host = models.ForeignKey(Host, models.PROTECT, related_name="tasks")
    gpus = models.ManyToManyField(Gpu, blank=True, related_name="tasks")
    command = models.TextField(max_length=65536)
    env = models.JSONField(default=dict, blank=True)
    parameters = models.JSONField(default=list, blank=True)

    state = models.CharField(max_length=10, choices=TaskState, default=TaskState.IDLE)
    state_since = models.DateTimeField(null=True)
    reason = models.CharField(max_length=500, blank=True)
    exit_code = models.IntegerField(null=True)
    # Asked to stop; who, when, and how far the escalation went.
    stop_requested_at = models.DateTimeField(null=True)
    stop_requested_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+"
    )

    class Meta:
        ordering = ["job", "position", "pk"]
        constraints = [
            models.UniqueConstraint(fields=["job", "position"], name="task_position_once"),
        ]

    def __str__(self) -> str:
        return f"{self.job} #{self.position}"


class Attempt(models.Model):
    """One run of a task: claimed before the remote start, described by what the host showed."""

    task = models.ForeignKey(Task, models.CASCADE, related_name="attempts")
    number = models.PositiveIntegerField()
    login = models.CharField(max_length=32)
    uid = models.PositiveBigIntegerField(null=True)
    session = models.CharField(max_length=80, blank=True)
    screen_directory = models.CharField(max_length=300, blank=True)
    directory = models.CharField(max_length=300, blank=True)
    log = models.CharField(max_length=300, blank=True)
    pid = models.PositiveBigIntegerField(null=True)
    start_ticks = models.PositiveBigIntegerField(null=True)
    boot_id = models.CharField(max_length=64, blank=True)
    claimed_at = models.DateTimeField()
    # The remote start is being sent: from here on a second start is forbidden until looked up.
    launching_at = models.DateTimeField(null=True)
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    exit_code = models.IntegerField(null=True)
    reason = models.CharField(max_length=500, blank=True)

    class Meta:
        ordering = ["task", "number"]
        constraints = [
            models.UniqueConstraint(fields=["task", "number"], name="attempt_number_once"),
            models.UniqueConstraint(
                fields=["task"], condition=Q(ended_at=None), name="attempt_open_once"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.task} attempt {self.number}"
