"""What is concluded from a look at a host, with the host's answers played."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from accounts.models import User
from jobs.models import Attempt, Task, TaskState
from jobs.services import following
from monitoring import requests, ssh
from tests.jobs import making

pytestmark = pytest.mark.django_db

BOOT = "8b0a1c52-1111-4222-8333-444455556666"


@pytest.fixture
def hear(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Have the host of the running task answer so, one answer for each question."""

    def hear(*answers: str | ssh.Result) -> None:
        left = list(answers)

        def run(target: Any, script: str, **options: Any) -> ssh.Result:
            said = left.pop(0)
            if isinstance(said, ssh.Result):
                return said
            pid = Attempt.objects.get().pid
            text = said.format(pid=pid, boot=BOOT)
            return ssh.Result(ssh.Status.OK, 0, stdout=text.encode(), phase="command")

        monkeypatch.setattr(ssh, "run", run)
        monkeypatch.setattr(following, "target_of", lambda *args, **options: None)
        host = Task.objects.get().host
        request = requests.ask("follow_tasks", host=host)
        requests.answer(request.pk)
        request.refresh_from_db()
        assert request.state == "done", request.reason
        assert left == []

    return hear


@pytest.fixture
def task(alice: User) -> Task:
    return making.started(alice).tasks.get()


AUTH = ssh.Result(ssh.Status.AUTH, phase="auth", reason="The account refuses the key.")
AWAY = ssh.Result(ssh.Status.TIMEOUT, phase="connect", reason="It does not answer.")


@pytest.mark.parametrize(
    ("answers", "state", "code", "reason"),
    [
        (["boot {boot}\n{pid} alive\ndone\n"], TaskState.RUNNING, None, ""),
        (["boot {boot}\n{pid} gone\ndone\n", "{pid} said rc=7\ndone\n"], "finished", 7, "7."),
        (["boot {boot}\n{pid} gone\ndone\n", "{pid} said running\ndone\n"], "failed", None, "kill"),
        (["boot {boot}\n{pid} gone\ndone\n", "{pid} said \ndone\n"], "finished", None, "gone"),
        (["boot {boot}\n{pid} gone\ndone\n", AUTH], "finished", None, "acting key"),
        (["boot {boot}\n{pid} gone\ndone\n", AWAY], "unknown", None, "It does not answer."),
        (["boot {boot}\n{pid} gone\ndone\n", "{pid} sa"], "unknown", None, "no sense"),
        (["boot 12345678\n{pid} alive\ndone\n"], "lost", None, "rebooted"),
        ([AWAY], "unknown", None, "It does not answer."),
        (["boot {boot}\n{pid} alive\n"], "unknown", None, "cut off"),
        (["{pid} gone\ndone\n"], "unknown", None, "cut off"),
        # The observing account sees only its own processes: the owner's word decides.
        (["boot {boot}\nhidden\n{pid} gone\ndone\n", "{pid} alive\ndone\n"], "running", None, ""),
        (["boot {boot}\nhidden\n{pid} gone\ndone\n", AUTH], "unknown", None, "refuses the key"),
    ],
)
def test_a_look_is_believed_as_far_as_it_goes(
    task: Task,
    hear: Callable[..., None],
    answers: list[Any],
    state: str,
    code: int | None,
    reason: str,
) -> None:
    hear(*answers)

    task.refresh_from_db()
    assert (task.state, task.exit_code) == (state, code)
    assert reason in task.reason
    is_over = state in Task.ENDED
    assert (Attempt.objects.get().ended_at is not None) is is_over


def test_unknown_keeps_since_when(task: Task, hear: Callable[..., None]) -> None:
    hear(AWAY)
    first = Task.objects.get().state_since
    hear(AWAY)

    assert Task.objects.get().state_since == first


def test_an_end_is_written_once(task: Task, hear: Callable[..., None]) -> None:
    hear("boot {boot}\n{pid} gone\ndone\n", "{pid} said rc=0\ndone\n")
    first = Task.objects.get().state_since

    following._take_ended(Attempt.objects.select_related("task").get(), "rc=9")

    assert Task.objects.get().exit_code == 0
    assert Task.objects.get().state_since == first
