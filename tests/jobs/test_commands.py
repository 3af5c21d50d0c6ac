"""What becomes text for a shell, read back by a real shell."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs import commands

VALUES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40)


def in_shell(script: str, *, shell: str = "sh") -> str:
    return subprocess.run([shell, "-s"], input=script.encode(), capture_output=True).stdout.decode()


@pytest.mark.parametrize("shell", ["sh", "bash"])
@settings(max_examples=60, deadline=None)
@given(value=VALUES)
def test_any_value_of_a_variable_arrives_as_it_is(shell: str, value: str) -> None:
    text = commands.environment_text({"A": value}, gpu_uuids=[], job_id=1, mark="m")

    assert in_shell(text + 'printf "%s." "$A"', shell=shell) == value + "."


@settings(max_examples=60, deadline=None)
@given(value=VALUES.filter(lambda text: "\n" not in text and "\r" not in text))
def test_any_value_of_a_parameter_arrives_as_one_word(value: str) -> None:
    line = commands.full_command('printf "<%s>"', [{"name": "--x=", "value": value}])

    assert in_shell(line) == f"<--x={value}>"


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ([], "run"),
        ([{"name": "--rank=", "value": "0"}], "run --rank=0"),
        ([{"name": "--rank", "value": "0"}], "run --rank 0"),
        ([{"name": "--fast", "value": ""}], "run --fast"),
        ([{"name": "--fast"}, {"value": "a b"}], "run --fast 'a b'"),
        ([{"name": "", "value": ""}], "run"),
    ],
)
def test_parameters_stand_behind_the_command(parameters: Any, expected: str) -> None:
    assert commands.full_command("run\n", parameters) == expected


def test_gpus_are_named_by_uuid_and_none_means_none() -> None:
    some = commands.environment_text({}, gpu_uuids=["GPU-a", "GPU-b"], job_id=1, mark="m")
    none = commands.environment_text({}, gpu_uuids=[], job_id=1, mark="m")

    assert in_shell(some + 'echo "$CUDA_VISIBLE_DEVICES"') == "GPU-a,GPU-b\n"
    assert in_shell(none + 'echo "<$CUDA_VISIBLE_DEVICES>$CUDA_DEVICE_ORDER"') == "<>PCI_BUS_ID\n"


@pytest.mark.parametrize(
    "env",
    [
        {"1A": "x"},
        {"A-B": "x"},
        {"A\n": "x"},
        {"": "x"},
        {"A": "x\0y"},
        {"A": 3},
        {"CUDA_VISIBLE_DEVICES": "0"},
        {"TENSORHIVE_TASK": "th-1"},
        {"A": "x" * 110_000},
        {f"A{number}": "" for number in range(201)},
        [],
    ],
    ids=str,
)
def test_environments_that_a_shell_could_misread_are_refused(env: Any) -> None:
    with pytest.raises(ValidationError):
        commands.validate_env(env)


def test_a_refused_value_does_not_stand_in_the_refusal() -> None:
    with pytest.raises(ValidationError) as refused:
        commands.validate_env({"TOKEN": "s3cret\0"})

    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize(
    "parameters",
    [{}, ["--x"], [{"name": "a\nb"}], [{"name": "a", "value": 1}], [{"nam": "a"}]],
    ids=str,
)
def test_parameters_that_are_no_texts_of_one_line_are_refused(parameters: Any) -> None:
    with pytest.raises(ValidationError):
        commands.validate_parameters(parameters)


@pytest.mark.parametrize("command", ["", "  \n ", "a\0b", "x" * 65_537], ids=lambda text: text[:4])
def test_commands_that_cannot_run_are_refused(command: str) -> None:
    with pytest.raises(ValidationError):
        commands.validate_command(command)


def test_session_names_are_no_beginnings_of_each_other() -> None:
    names = [commands.session_name(number) for number in (1, 10, 100, 11)]

    assert not any(a != b and b.startswith(a) for a in names for b in names)
