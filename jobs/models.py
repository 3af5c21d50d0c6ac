"""Jobs, their tasks on hosts, and each attempt to run one."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Exists, OuterRef, Prefetch, Q

from jobs.states import TaskState, job_state
from monitoring import naming
from monitoring.models import Gpu, Host


class JobQuerySet(models.QuerySet["Job"]):
    def visible_to(self, user: object) -> JobQuerySet:
        """Their own jobs; all for administrators."""
        if getattr(user, "is_staff", False):
            return self
        return self.filter(owner_id=getattr(user, "pk", None))

    def with_tasks(self) -> JobQuerySet:
        """With owner and tasks, in a constant number of queries."""
        return self.select_related("owner").prefetch_related(
            Prefetch("tasks", Task.objects.with_run())
        )


class TaskQuerySet(models.QuerySet["Task"]):
    def with_run(self) -> TaskQuerySet:
        """With what lists and pages show of a task, in a constant number of queries."""
        newer = Attempt.objects.filter(task=OuterRef("task"), number__gt=OuterRef("number"))
        last = Attempt.objects.filter(~Exists(newer))
        return self.select_related("host", "job__owner").prefetch_related(
            Prefetch("gpus", Gpu.objects.select_related("host")),
            Prefetch("attempts", last, to_attr="last_attempts"),
        )


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

    @property
    def state(self) -> TaskState:
        return job_state(task.state for task in self.tasks.all())

    @property
    def reason(self) -> str:
        """The sentence of the first task that is in the job's state."""
        state = self.state
        return next((task.reason for task in self.tasks.all() if task.state == state), "")

    @property
    def is_active(self) -> bool:
        """Whether anything of it may be running."""
        return any(task.state in Task.ACTIVE for task in self.tasks.all())


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

    state = models.CharField(
        max_length=10, choices=TaskState, default=TaskState.IDLE, editable=False
    )
    state_since = models.DateTimeField(null=True, editable=False)
    reason = models.CharField(max_length=500, blank=True, editable=False)
    exit_code = models.IntegerField(null=True, editable=False)
    # Asked to stop: when, and by whom (nobody: by its time).
    stop_requested_at = models.DateTimeField(null=True, editable=False)
    stop_requested_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+", editable=False
    )

    objects = TaskQuerySet.as_manager()

    class Meta:
        ordering = ["job", "position", "pk"]
        constraints = [
            models.UniqueConstraint(fields=["job", "position"], name="task_position_once"),
        ]

    def __str__(self) -> str:
        return f"{self.job} #{self.position}"

    @property
    def run(self) -> Attempt | None:
        """The last attempt; needs `with_run`."""
        last: list[Attempt] = self.last_attempts  # type: ignore[attr-defined]
        return last[0] if last else None


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
    # [[pid, start ticks], …]: what was last seen running in its session.
    processes: models.JSONField[list[list[int]], list[list[int]]] = models.JSONField(default=list)
    claimed_at = models.DateTimeField()
    # The remote start is being sent: from here on a second start is forbidden until looked up.
    launching_at = models.DateTimeField(null=True)
    started_at = models.DateTimeField(null=True)
    # The hardest signal sent so far, written down before it is sent: each goes out once.
    stop_signal = models.CharField(max_length=4, blank=True)
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
