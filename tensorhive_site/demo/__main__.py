"""`make demo`: an installation of its own with simulated hosts, made once and then started."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tensorhive_site import serve

BASE_DIR = Path(__file__).resolve().parents[2]
PASSWORD = "tensorhive-demo"  # noqa: S105  everybody may know it: the demo holds nothing


def main() -> None:
    os.environ.setdefault("DATA_DIR", str(BASE_DIR / "var" / "demo"))
    os.environ["ADMIN_USERNAME"], os.environ["ADMIN_PASSWORD"] = "admin", PASSWORD
    os.environ["DEMO_PASSWORD"], os.environ["TENSORHIVE_DEMO"] = PASSWORD, "1"
    # What it tells an administrator to do next is done in the demo.
    _manage("init", stdout=subprocess.DEVNULL)
    _manage("demo")
    # It ends with this process, whose place supervisord takes.
    subprocess.Popen([sys.executable, str(BASE_DIR / "manage.py"), "demo", "--hosts"])  # noqa: S603
    print(  # noqa: T201
        f"\nThis is a demo: its hosts are simulated.\n"
        f"Log in as admin (administrator), alice or bob, password {PASSWORD}",
        flush=True,
    )
    serve.main()


def _manage(command: str, *, stdout: int | None = None) -> None:
    done = subprocess.run(  # noqa: S603  our own commands
        [sys.executable, str(BASE_DIR / "manage.py"), command], check=False, stdout=stdout
    )
    if done.returncode:
        sys.exit(f"make demo: `manage.py {command}` failed; see above.")


if __name__ == "__main__":
    main()
