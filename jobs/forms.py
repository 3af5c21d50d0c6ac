"""The form of a new job: the job, and one or several tasks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, cast

from django import forms
from django.core.exceptions import ValidationError

from accounts.models import User
from jobs import commands
from jobs.services import editing
from monitoring import naming
from monitoring.models import Gpu, Host

MAX_TASKS = 50


class MomentInput(forms.DateTimeInput):
    input_type = "datetime-local"

    def __init__(self) -> None:
        super().__init__(format="%Y-%m-%dT%H:%M")


class JobForm(forms.Form):
    name = forms.CharField(max_length=40, validators=[naming.validate_plain_text])
    description = forms.CharField(
        max_length=200, required=False, validators=[naming.validate_plain_lines]
    )
    start_at = forms.DateTimeField(
        label="Start at",
        required=False,
        widget=MomentInput,
        help_text="Empty: when you press Start.",
    )
    stop_at = forms.DateTimeField(
        label="Stop at",
        required=False,
        widget=MomentInput,
        help_text="Empty: it runs until it ends by itself.",
    )

    def clean(self) -> dict[str, Any]:
        moments = self.cleaned_data
        try:
            editing.refuse_past(moments.get("start_at"))
            editing.refuse_wrong_order(moments.get("start_at"), moments.get("stop_at"))
        except ValidationError as error:
            self.add_error(None, error)
        return moments


class TaskForm(forms.Form):
    """A task; the host may be left open where the GPUs tell it."""

    host = forms.ChoiceField(required=False)
    gpus = forms.MultipleChoiceField(
        label="GPUs", required=False, help_text="Choose none, and the task sees no GPU."
    )
    command = forms.CharField(
        strip=False,
        max_length=commands.MAX_COMMAND,
        widget=forms.Textarea(attrs={"rows": 4, "spellcheck": "false", "autocapitalize": "off"}),
        help_text=(
            "A shell script; it starts in your home directory. The first line may be"
            " <code>#!/usr/bin/env python3</code> or the like."
        ),
    )
    env = forms.CharField(
        label="Environment",
        required=False,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 2, "spellcheck": "false", "autocapitalize": "off"}),
        help_text="One <code>NAME=value</code> on each line.",
    )

    def __init__(self, *args: Any, gpus: Sequence[Gpu], hosts: Sequence[Host], **kwargs: Any):
        super().__init__(*args, **{"label_suffix": "", **kwargs})
        self._gpus = {gpu.uuid: gpu for gpu in gpus}
        self._hosts = {host.name: host for host in hosts}
        names = [(host.name, host.name) for host in hosts]
        self.fields["host"].choices = [("", "Choose a host"), *names]  # type: ignore[attr-defined]
        self.fields["gpus"].choices = [(uuid, str(gpu)) for uuid, gpu in self._gpus.items()]  # type: ignore[attr-defined]

    def gpu_groups(self) -> list[dict[str, Any]]:
        """The GPUs to choose from by host, the chosen ones marked."""
        chosen = set(self["gpus"].value() or [])
        groups: dict[str, list[dict[str, Any]]] = {name: [] for name in self._hosts}
        for gpu in self._gpus.values():
            if gpu.host.name in groups:
                groups[gpu.host.name].append({"gpu": gpu, "is_chosen": gpu.uuid in chosen})
        return [{"host": name, "gpus": gpus} for name, gpus in groups.items()]

    def clean_command(self) -> str:
        # A browser sends a text area's line ends as CR LF, which a shell takes for part of words.
        command: str = self.cleaned_data["command"].replace("\r\n", "\n")
        commands.validate_command(command)
        return command

    def clean_env(self) -> dict[str, str]:
        env = parse_env(self.cleaned_data["env"])
        commands.validate_env(env)
        return env

    def clean(self) -> dict[str, Any]:
        data = self.cleaned_data
        gpus = [self._gpus[uuid] for uuid in data.get("gpus", [])]
        host = self._hosts.get(data.get("host", ""))
        if host is None and not gpus and "host" in data and "gpus" in data:
            self.add_error("host", "Choose a host.")
        host = host or (gpus[0].host if gpus else None)
        if any(gpu.host != host for gpu in gpus):
            self.add_error("gpus", "A task runs on one host: choose GPUs of one host.")
        return {**data, "host": host, "gpus": gpus}


class TaskFormSet(forms.BaseFormSet):
    """The tasks of a new job: at least one."""

    default_error_messages: ClassVar = {
        **forms.BaseFormSet.default_error_messages,
        "too_few_forms": "A job needs at least one task.",
        "too_many_forms": f"A job has at most {MAX_TASKS} tasks.",
    }

    def service_tasks(self) -> list[dict[str, Any]]:
        """As jobs.services.editing.create takes them."""
        fields = ("host", "gpus", "command", "env")
        return [{field: form.cleaned_data[field] for field in fields} for form in self.forms]


def task_forms(user: User, data: Any = None) -> TaskFormSet:
    """The forms of the tasks, with the hosts and GPUs that the person sees; two queries."""
    kind = forms.formset_factory(
        TaskForm,
        formset=TaskFormSet,
        extra=0,
        min_num=1,
        max_num=MAX_TASKS,
        absolute_max=MAX_TASKS,
        validate_min=True,
        validate_max=True,
    )
    gpus = user.visible_gpus().select_related("host").order_by("host__name", "index", "pk")
    hosts = user.visible_hosts().filter(is_enabled=True).order_by("name")
    # A form that nobody touched is an error to show, not a task to leave out.
    places = {"gpus": list(gpus), "hosts": list(hosts), "empty_permitted": False}
    return cast(TaskFormSet, kind(data, prefix="tasks", form_kwargs=places))


def parse_env(text: str) -> dict[str, str]:
    """Lines NAME=value as a mapping. Raises ValidationError, naming the line."""
    env: dict[str, str] = {}
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), start=1):
        if not line.strip():
            continue
        name, is_pair, value = line.partition("=")
        name = name.strip()
        if not is_pair:
            raise ValidationError(f"Line {number} has no “=”: write NAME=value.")
        if name in env:
            raise ValidationError(f"Line {number} sets {name} again.")
        env[name] = value
    return env
