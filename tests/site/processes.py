"""Which processes belong to an installation: by what they were started with, never by name."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Process:
    pid: int
    parent: int
    group: int
    arguments: tuple[str, ...]
    environment: dict[str, str]


def processes_of(data_dir: Path) -> dict[int, Process]:
    """All living processes that were started for this data directory, whoever is their parent.

    The environment goes from parent to child and an orphan keeps it, so nothing can hide.
    """
    found = (_read(int(entry.name)) for entry in Path("/proc").iterdir() if entry.name.isdigit())
    return {
        process.pid: process
        for process in found
        if process and process.environment.get("DATA_DIR") == str(data_dir)
    }


def _read(pid: int) -> Process | None:
    """None when it is gone, or only waits for its parent to notice its end."""
    folder = Path("/proc") / str(pid)
    try:
        after_name = (folder / "stat").read_text().rpartition(")")[2].split()
        if after_name[0] in "ZX" or pid == os.getpid():
            return None
        return Process(
            pid=pid,
            parent=int(after_name[1]),
            group=int(after_name[2]),
            arguments=tuple(_strings(folder / "cmdline")),
            environment=dict(
                line.split("=", 1) for line in _strings(folder / "environ") if "=" in line
            ),
        )
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return None


def _strings(path: Path) -> list[str]:
    return path.read_bytes().decode(errors="replace").rstrip("\0").split("\0")
