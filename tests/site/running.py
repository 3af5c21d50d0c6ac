"""An installation of a test's own, in a temporary directory, driven from outside as people do."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

BASE_DIR = Path(__file__).resolve().parent.parent.parent
PASSWORD = "correct horse battery"
_OF_THE_TESTS = ("SECRET_KEY", "JWT_SIGNING_KEY", "METRICS_TOKEN", "DATABASE_URL")


def environment(data_dir: Path, **more: str) -> dict[str, str]:
    """What a person's shell would hand over: nothing of the test run's own settings."""
    kept = {name: value for name, value in os.environ.items() if name not in _OF_THE_TESTS}
    chosen = {
        "DJANGO_SETTINGS_MODULE": "tensorhive_site.settings",
        "DATA_DIR": str(data_dir),
        "ADMIN_PASSWORD": PASSWORD,
    }
    return {**kept, **chosen, **more}


def manage(
    environment: dict[str, str], *arguments: str, seconds: float = 120
) -> subprocess.CompletedProcess[str]:
    """Run a management command in a process of its own."""
    return subprocess.run(
        [sys.executable, str(BASE_DIR / "manage.py"), *arguments],
        env=environment,
        cwd="/",
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
