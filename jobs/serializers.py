"""The API's form of jobs and tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rest_framework import serializers

from accounts.models import User
from jobs import commands
from jobs.models import Job, Task, TaskState
from jobs.services import editing
from jobs.services.logs import MAX_PIECE
from monitoring.fields import MomentField
from monitoring.models import Gpu, Host


class ParameterSerializer(serializers.Serializer):
    name = serializers.CharField(allow_blank=True, default="", trim_whitespace=False)
    value = serializers.CharField(allow_blank=True, default="", trim_whitespace=False)


class TaskSerializer(serializers.ModelSerializer[Task]):
    """A task as it stands; `session` and `log` are those of its last run."""

    host = serializers.CharField(source="host.name", read_only=True)
    gpus = serializers.SerializerMethodField()
    reason = serializers.SerializerMethodField()
    session = serializers.SerializerMethodField()
    log = serializers.SerializerMethodField()
    started_at = serializers.SerializerMethodField()
    ended_at = serializers.SerializerMethodField()
    state = serializers.ChoiceField(TaskState.choices, read_only=True)
    parameters = ParameterSerializer(many=True, read_only=True)
    env = serializers.DictField(child=serializers.CharField(), read_only=True)

    class Meta:
        model = Task
        fields = [
            "id",
            "job",
            "host",
            "gpus",
            "command",
            "env",
            "parameters",
            "state",
            "state_since",
            "reason",
            "exit_code",
            "session",
            "log",
            "started_at",
            "ended_at",
        ]
        read_only_fields = fields

    def get_gpus(self, task: Task) -> list[str]:
        """UUIDs"""
        return [gpu.uuid for gpu in task.gpus.all()]

    def get_reason(self, task: Task) -> str | None:
        return task.reason or None

    def get_session(self, task: Task) -> str | None:
        """Of screen, on the host"""
        return (task.run.session or None) if task.run and task.run.started_at else None

    def get_log(self, task: Task) -> str | None:
        """File on the host"""
        return (task.run.log or None) if task.run else None

    def get_started_at(self, task: Task) -> str | None:
        return _moment(task.run.started_at) if task.run else None

    def get_ended_at(self, task: Task) -> str | None:
        return _moment(task.run.ended_at) if task.run else None


class JobSerializer(serializers.ModelSerializer[Job]):
    owner = serializers.CharField(source="owner.username", read_only=True)
    project = serializers.SerializerMethodField()
    state = serializers.ChoiceField(TaskState.choices, read_only=True)
    reason = serializers.SerializerMethodField()
    tasks = TaskSerializer(many=True, read_only=True)

    class Meta:
        model = Job
        fields = [
            "id",
            "name",
            "description",
            "owner",
            "project",
            "state",
            "reason",
            "start_at",
            "stop_at",
            "created_at",
            "tasks",
        ]
        read_only_fields = ["created_at"]

    def get_project(self, job: Job) -> str | None:
        return None  # jobs have no project yet

    def get_reason(self, job: Job) -> str | None:
        return job.reason or None


class NewTaskSerializer(serializers.Serializer):
    """A task to be created. Its host may be left out where its GPUs tell it."""

    host = serializers.CharField(required=False)
    gpus = serializers.ListField(child=serializers.CharField(), default=list, max_length=128)
    command = serializers.CharField(trim_whitespace=False, max_length=commands.MAX_COMMAND)
    env = serializers.DictField(
        child=serializers.CharField(allow_blank=True, trim_whitespace=False), default=dict
    )
    parameters = ParameterSerializer(many=True, default=list)

    def validate_command(self, command: str) -> str:
        commands.validate_command(command)
        return command

    def validate_env(self, env: dict[str, str]) -> dict[str, str]:
        commands.validate_env(env)
        return env

    def validate_parameters(self, parameters: list[dict[str, str]]) -> list[dict[str, str]]:
        plain = [dict(parameter) for parameter in parameters]
        commands.validate_parameters(plain)
        return plain

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if "host" not in attrs and not attrs["gpus"]:
            raise serializers.ValidationError({"host": ["Name the host, or GPUs of one host."]})
        return attrs


class NewJobSerializer(serializers.Serializer):
    """A job to be created, with its tasks."""

    name = serializers.CharField(max_length=40)
    description = serializers.CharField(max_length=200, allow_blank=True, default="")
    start_at = MomentField(allow_null=True, default=None)
    stop_at = MomentField(allow_null=True, default=None)
    tasks = NewTaskSerializer(many=True, allow_empty=False, max_length=editing.MAX_TASKS)  # type: ignore[call-arg]

    def validate_tasks(self, tasks: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Put rows in the place of names; two queries, however many tasks."""
        user: User = self.context["request"].user
        found = Places.named_in(tasks, user)
        errors = [found.resolve(task) for task in tasks]
        if any(errors):
            raise serializers.ValidationError(errors)
        return tasks

    def create(self, validated_data: dict[str, Any]) -> Job:
        return editing.create(owner=self.context["request"].user, **validated_data)


class JobChangeSerializer(serializers.Serializer):
    """What of a job may change later."""

    name = serializers.CharField(max_length=40, required=False)
    description = serializers.CharField(max_length=200, allow_blank=True, required=False)
    start_at = MomentField(allow_null=True, required=False)
    stop_at = MomentField(allow_null=True, required=False)

    def update(self, instance: Job, validated_data: dict[str, Any]) -> Job:
        return editing.change(instance, actor=self.context["request"].user, **validated_data)


class LogQuery(serializers.Serializer):
    offset = serializers.IntegerField(
        default=0, min_value=-MAX_PIECE, max_value=2**53, help_text="negative: from the end"
    )
    limit = serializers.IntegerField(default=64 * 1024, min_value=16, max_value=MAX_PIECE)


class LogSerializer(serializers.Serializer):
    """A piece of a log; `complete`: nothing more will come."""

    offset = serializers.IntegerField()
    next_offset = serializers.IntegerField()
    size = serializers.IntegerField()
    text = serializers.CharField()
    complete = serializers.BooleanField()


class Places:
    """The hosts and GPUs that a request names, as far as the person may see them."""

    def __init__(self, hosts: Mapping[str, Host], gpus: Mapping[str, Gpu]) -> None:
        self._hosts, self._gpus = hosts, gpus

    @classmethod
    def named_in(cls, tasks: Sequence[Mapping[str, Any]], user: User) -> Places:
        names = {task["host"] for task in tasks if "host" in task}
        uuids = {uuid for task in tasks for uuid in task["gpus"]}
        hosts = user.visible_hosts().filter(name__in=names)
        gpus = user.visible_gpus().filter(uuid__in=uuids).select_related("host")
        return cls({host.name: host for host in hosts}, {gpu.uuid: gpu for gpu in gpus})

    def resolve(self, task: dict[str, Any]) -> dict[str, list[str]]:
        """Put the rows into the task; return what is wrong with it, by field."""
        if unknown := [uuid for uuid in task["gpus"] if uuid not in self._gpus]:
            return {"gpus": [f"There is no GPU {uuid[:100]}." for uuid in unknown]}
        gpus = [self._gpus[uuid] for uuid in dict.fromkeys(task["gpus"])]
        if "host" in task and task["host"] not in self._hosts:
            return {"host": [f"There is no host {task['host'][:100]}."]}
        host = self._hosts[task["host"]] if "host" in task else gpus[0].host
        if any(gpu.host_id != host.pk for gpu in gpus):
            return {"gpus": [f"A task runs on one host; these are not all on {host.name}."]}
        task["host"], task["gpus"] = host, gpus
        return {}


def _moment(moment: Any) -> str | None:
    return serializers.DateTimeField().to_representation(moment) if moment else None
