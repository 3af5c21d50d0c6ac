"""Kept connections for tests of the watch: answers without any host."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from monitoring import ssh
from monitoring.ssh import Result, Status

SMI = "index, uuid, driver_version\n0, GPU-e49955df-b975-1fc3-9041-fb831fb4e24b, 570.1\n"


class Shell:
    """Stands for a kept connection. `answer` may be replaced; `asked` are the lines it got."""

    made: list[Shell]
    answer: Callable[[str], Result]

    def __init__(self, target: ssh.Target, *, preamble: str) -> None:
        self.target = target
        self.asked: list[str] = []
        self.closed = self.was_cut = 0
        Shell.made.append(self)

    def ask(self, line: str, **_limits: Any) -> Result:
        self.asked.append(line)
        return Shell.answer(line)

    def cut(self) -> None:
        self.was_cut += 1

    def close(self) -> None:
        self.closed += 1


def framed(line: str, *, smi: str = SMI, status: int = 0) -> Result:
    """The answer of a healthy host to the line."""
    nonce = line.split()[1]
    text = "".join(
        f"@@{nonce} begin {name}\n{said}\n@@{nonce} end {name} {code}\n"
        for name, said, code in [("gpus", smi, status), ("processes", "", 0), ("owners", "", 0)]
    )
    return Result(Status.OK, stdout=f"{text}@@{nonce} done\n".encode(), elapsed=0.05)


def hanging(line: str) -> Result:
    """nvidia-smi was ended by `timeout`; the rest of the host answers."""
    return framed(line, smi="", status=69 if "skip-gpu" in line.split() else 124)


def stand_in(monkeypatch: pytest.MonkeyPatch) -> list[Shell]:
    """Have healthy hosts behind every kept connection. Returns those that get made."""
    Shell.made, Shell.answer = [], staticmethod(framed)
    monkeypatch.setattr(ssh, "Shell", Shell)
    return Shell.made
