"""Background tasks that leave a mark a test can see; clusters of the tests import this module."""

from __future__ import annotations

import os
import time
from pathlib import Path


def mark(path: str) -> None:
    """Write who ran this, one line for each time."""
    with Path(path).open("a") as file:
        file.write(f"{os.getpid()}\n")


def hold_and_mark(path: str, seconds: float) -> None:
    """Keep a worker busy, and say when that begins and ends."""
    for word, pause in (("begin", seconds), ("end", 0.0)):
        with Path(path).open("a") as file:
            file.write(f"{word}\n")
        time.sleep(pause)
