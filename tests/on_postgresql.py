"""Run pytest on a PostgreSQL server of its own: `python -m tests.on_postgresql ARGUMENTS`."""

from __future__ import annotations

import os
import subprocess
import sys

from tests.postgres import server


def main() -> int:
    with server() as url:
        # Tests that want further databases make them on the same server.
        environment = {**os.environ, "DATABASE_URL": url, "TEST_POSTGRES_URL": url}
        command = [sys.executable, "-m", "pytest", *sys.argv[1:]]
        return subprocess.run(command, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
