"""Decisions of the pictures: what a GPU does, and what of a command everybody sees."""

from __future__ import annotations

import pytest

from monitoring.drawing import program_name, usage_of
from monitoring.picture import Usage
from monitoring.wording import amount, duration, gibibytes, used_of


@pytest.mark.parametrize(
    ("facts", "usage"),
    [
        pytest.param({}, Usage.FREE, id="idle"),
        pytest.param({"is_reserved": True}, Usage.RESERVED, id="idle and reserved"),
        pytest.param({"has_processes": True}, Usage.BUSY, id="has a process"),
        pytest.param(
            {"has_processes": True, "is_reserved": True}, Usage.BUSY, id="busy in its reservation"
        ),
        pytest.param({"utilization_percent": 40.0}, Usage.BUSY, id="works without a process"),
        pytest.param({"utilization_percent": None}, Usage.FREE, id="utilisation not offered"),
        pytest.param({"processes_known": False}, Usage.UNKNOWN, id="processes not known"),
        pytest.param(
            {"processes_known": False, "utilization_percent": 40.0},
            Usage.BUSY,
            id="processes not known but it works",
        ),
        pytest.param({"is_known": False, "has_processes": True}, Usage.UNKNOWN, id="old data"),
    ],
)
def test_usage_is_what_is_known(facts: dict[str, object], usage: Usage) -> None:
    idle = {
        "is_known": True,
        "has_processes": False,
        "processes_known": True,
        "utilization_percent": 0.0,
        "is_reserved": False,
    }
    assert usage_of(**{**idle, **facts}) == usage  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "command", "shown"),
    [
        ("/usr/bin/python3", "python3 --token x", "python3"),
        ("/home/alice/secret project/python", None, "secret"),
        (None, "/opt/bin/train --password hunter2", "train"),
        (None, "  ", None),
        ("", "", None),
        (None, None, None),
        ("/", None, None),
        ("a\x1bb", None, "a\ufffdb"),
        ("x" * 500, None, "x" * 59 + "…"),
    ],
)
def test_the_programs_name_never_carries_arguments_or_directories(
    name: str | None, command: str | None, shown: str | None
) -> None:
    assert program_name(name, command) == shown


def test_numbers_in_words_show_a_dash_for_what_is_not_known() -> None:
    assert amount(None, "%") == gibibytes(None) == duration(None) == "–"
    assert used_of(None, 40960) == "– of 40 GiB"
    assert amount(0.0, "%") == "0 %"
    assert used_of(12390, 40960) == "12.1 of 40 GiB"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (59.9, "59 s"), (60, "1 min"), (7500, "2 h 5 min"), (860_000, "9 d 22 h")],
)
def test_durations_use_two_units_at_most(seconds: float, text: str) -> None:
    assert duration(seconds) == text
