"""What of a task becomes text for a shell: pure, and the only place where that happens."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence

from django.core.exceptions import ValidationError

from monitoring import naming

MAX_COMMAND = 65_536
MAX_VARIABLES = 200
# The kernel takes 128 KiB for one variable, and some MiB for all together with the arguments.
MAX_ENV_BYTES = 100 * 1024
_ENV_NAME = re.compile(r"^[A-Za-z_][A-Za-z0-9_]{0,199}\Z")
# These are set by the product from the task's GPUs.
_OURS = frozenset(
    {"CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "TENSORHIVE_JOB", "TENSORHIVE_TASK"}
)


def validate_env(env: object) -> None:
    """Refuse anything but {NAME: "text"} with names a shell accepts. Raises ValidationError."""
    if not isinstance(env, dict):
        raise ValidationError('Give the environment as an object: {"NAME": "value"}.')
    if len(env) > MAX_VARIABLES:
        raise ValidationError(f"At most {MAX_VARIABLES} variables.")
    for name, value in env.items():
        if not isinstance(name, str) or not _ENV_NAME.match(name):
            raise ValidationError(
                f"“{naming.printable(str(name), 40)}” is not a name for a variable."
            )
        if name in _OURS:
            raise ValidationError(f"{name} is set from the GPUs of the task; leave it out.")
        if not isinstance(value, str) or "\0" in value:
            raise ValidationError(f"The value of {name} must be a text without NUL characters.")
    if sum(len(name) + _length(value) for name, value in env.items()) > MAX_ENV_BYTES:
        raise ValidationError(f"An environment has at most {MAX_ENV_BYTES // 1024} KiB.")


def validate_parameters(parameters: object) -> None:
    """Refuse anything but [{"name": "text", "value": "text"}]. Raises ValidationError."""
    if not isinstance(parameters, list) or len(parameters) > MAX_VARIABLES:
        raise ValidationError('Give parameters as a list: [{"name": "--rank=", "value": "0"}].')
    for parameter in parameters:
        if not isinstance(parameter, dict) or set(parameter) - {"name", "value"}:
            raise ValidationError('Each parameter is {"name": "…", "value": "…"}.')
        for part in parameter.values():
            if not isinstance(part, str) or len(part) > 4096 or _breaks_line(part):
                raise ValidationError("Names and values of parameters are texts of one line.")


def validate_command(command: str) -> None:
    """Refuse an empty command and NUL, which no shell can take. Raises ValidationError."""
    if not command.strip():
        raise ValidationError("Give a command.")
    if "\0" in command:
        raise ValidationError("A command cannot hold NUL characters.")
    if len(command) > MAX_COMMAND:
        raise ValidationError(f"A command has at most {MAX_COMMAND} characters.")


def full_command(command: str, parameters: Sequence[Mapping[str, str]]) -> str:
    """The command with its parameters behind it; a name that ends in "=" is joined to its value."""
    words = [
        _word(parameter.get("name", ""), parameter.get("value", "")) for parameter in parameters
    ]
    return " ".join([command.rstrip("\n"), *filter(None, words)])


def environment_text(
    env: Mapping[str, str], *, gpu_uuids: Iterable[str], job_id: int, mark: str
) -> str:
    """Shell lines that set a task's environment; GPUs by UUID, none for a CPU-only task."""
    variables = {
        **env,
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "CUDA_VISIBLE_DEVICES": ",".join(gpu_uuids),
        "TENSORHIVE_JOB": str(job_id),
        "TENSORHIVE_TASK": mark,
    }
    return "".join(f"export {name}={shlex.quote(value)}\n" for name, value in variables.items())


def session_name(task_id: int) -> str:
    """Of fixed width with an end mark: screen matches names by their beginnings."""
    return f"th-{task_id:010d}-e"


def _word(name: str, value: str) -> str:
    if not value:
        return name
    if not name or name.endswith("="):
        return name + shlex.quote(value)
    return f"{name} {shlex.quote(value)}"


def _length(text: str) -> int:
    return len(text.encode(errors="replace"))


def _breaks_line(text: str) -> bool:
    return any(character in text for character in "\0\n\r")
