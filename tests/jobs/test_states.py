"""States of jobs and tasks, decided without a database."""

from __future__ import annotations

import datetime as dt

import pytest

from jobs.states import TaskState, ended, job_state, next_signal


@pytest.mark.parametrize(
    ("tasks", "expected"),
    [
        ([], "idle"),
        (["idle", "idle"], "idle"),
        (["finished", "finished"], "finished"),
        (["finished", "idle"], "finished"),
        (["finished", "stopped"], "stopped"),
        (["stopped", "queued"], "queued"),
        (["queued", "starting"], "starting"),
        (["starting", "running", "finished"], "running"),
        (["running", "failed"], "failed"),
        (["failed", "unknown"], "unknown"),
        (["unknown", "lost", "running"], "lost"),
    ],
)
def test_a_job_is_in_the_first_state_that_one_of_its_tasks_has(
    tasks: list[str], expected: str
) -> None:
    assert job_state(tasks) == expected


@pytest.mark.parametrize(
    ("rc", "stopping", "state", "code"),
    [
        ("rc=0             ", False, TaskState.FINISHED, 0),
        ("rc=7", False, TaskState.FINISHED, 7),
        ("rc=137", True, TaskState.STOPPED, 137),
        ("running", True, TaskState.STOPPED, None),
        ("running         ", False, TaskState.FAILED, None),
        (None, False, TaskState.FINISHED, None),
        ("", False, TaskState.FINISHED, None),
        ("rc=", False, TaskState.FINISHED, None),
        ("rc=9999", False, TaskState.FINISHED, None),
        ("rc=-1", False, TaskState.FINISHED, None),
        ("rc=٣", False, TaskState.FINISHED, None),
    ],
)
def test_an_end_is_told_from_what_the_file_says(
    rc: str | None, stopping: bool, state: TaskState, code: int | None
) -> None:
    assert ended(rc, stopping=stopping)[:2] == (state, code)


def test_every_end_without_a_clean_exit_code_says_why() -> None:
    for rc in ("rc=7", "running", "", None):
        assert ended(rc, stopping=False)[2].endswith(".")
    assert ended("rc=0", stopping=False)[2] == ""


@pytest.mark.parametrize(
    ("sent", "seconds", "expected"),
    [
        ("", 0, "INT"),
        ("INT", 5, None),
        ("INT", 10, "TERM"),
        ("TERM", 24, None),
        ("TERM", 25, "KILL"),
        ("KILL", 60, "KILL"),
        ("", 11, "TERM"),
        ("", 90, "KILL"),
    ],
)
def test_each_signal_goes_out_once_and_kill_until_nothing_is_left(
    sent: str, seconds: int, expected: str | None
) -> None:
    assert next_signal(sent, dt.timedelta(seconds=seconds)) == expected
