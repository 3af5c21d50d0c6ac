"""Fixtures that every test may use."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

# Playwright's own event loop is not ours: the ORM calls of a browser test are ordinary calls.
os.environ.setdefault("DJANGO_ALLOW_ASYNC_UNSAFE", "true")

pytest_plugins = ["tests.lab.fixtures", "tests.postgres"]


@pytest.fixture
def data_dir(tmp_path: Path, settings: Any) -> Path:
    """A data directory of the test's own, with the keys' directory inside."""
    settings.DATA_DIR = tmp_path
    settings.KEYS_DIR = tmp_path / "keys"
    settings.OBSERVING_KEY = settings.KEYS_DIR / "observing"
    settings.ACTING_KEY = settings.KEYS_DIR / "acting"
    return tmp_path


@pytest.fixture
def alice(db: None) -> Any:
    from tests import make

    return make.user("alice")


@pytest.fixture
def bob(db: None) -> Any:
    from tests import make

    return make.user("bob")


@pytest.fixture
def root(db: None) -> Any:
    """The administrator."""
    from tests import make

    return make.user("root", is_staff=True, is_superuser=True)


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args: dict[str, Any]) -> dict[str, Any]:
    """Debian's Chromium, told to keep to itself."""
    return {
        **browser_type_launch_args,
        "executable_path": shutil.which("chromium") or shutil.which("chromium-browser"),
        "args": [
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
        ],
    }


@pytest.fixture(scope="session")
def browser_context_args(browser_context_args: dict[str, Any]) -> dict[str, Any]:
    return {
        **browser_context_args,
        "timezone_id": "Europe/Warsaw",
        "locale": "en-GB",
        "viewport": {"width": 1280, "height": 800},
    }


@pytest.fixture
def console_errors(page: Any) -> Iterator[list[str]]:
    """What the browser complained about on the page, CSP violations included; must stay empty."""
    problems: list[str] = []
    page.on("console", lambda line: problems.append(line.text) if line.type == "error" else None)
    page.on("pageerror", lambda error: problems.append(str(error)))
    yield problems
    assert problems == []
