"""`make run`: check the surroundings, make the installation ready, and start everything.

Plain Python up to the end, where supervisord takes this process's place.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import NoReturn
from urllib.parse import urlsplit

from tensorhive_site import secrets_file, supervision

BASE_DIR = Path(__file__).resolve().parent.parent
# Static files that no page of ours uses: another viewer of the API's schema, a browsable API.
_UNUSED = ("--ignore", "redoc", "--ignore", "rest_framework")
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
# For `manage.py init` alone.
_FIRST_START_ONLY = ("ADMIN_PASSWORD", "ADMIN_USERNAME")


def main() -> None:
    os.umask(0o077)  # what is in the data directory is nobody else's business
    data_dir = secrets_file.data_dir()
    environment = _environment(data_dir)
    bind, port = environment["BIND"], environment["PORT"]
    _refuse_open_http(bind, environment)
    lock = _only_one(data_dir)
    _refuse_taken_port(bind, port)
    _manage(environment, "init")
    for name in _FIRST_START_ONLY:
        environment.pop(name, None)
    _collect_static(environment)
    config = data_dir / "run" / "supervisord.conf"
    config.write_text(supervision.configuration())
    print(f"\nTensorHive is at {environment['PUBLIC_URL']} – Ctrl-C stops it.")  # noqa: T201
    print(f"Logs: {data_dir / 'log'}\n", flush=True)  # noqa: T201
    os.set_inheritable(lock, True)
    os.chdir(data_dir)
    supervisord = str(Path(sys.executable).with_name("supervisord"))
    command = [sys.executable, supervisord, "-n", "-c", str(config)]
    os.execve(sys.executable, command, environment)  # noqa: S606


def _environment(data_dir: Path) -> dict[str, str]:
    """What all programs get: the environment with .env (read by now) and the defaults."""
    environment = dict(os.environ)
    port = environment.get("PORT") or "8000"
    if not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        _give_up(f"PORT={port} is not a port number.")
    bind = environment.get("BIND") or "127.0.0.1"
    chosen = {
        "DJANGO_SETTINGS_MODULE": "tensorhive_site.settings",
        "DATA_DIR": str(data_dir),
        "BIND": bind,
        "PORT": port,
    }
    defaults = {
        "PUBLIC_URL": f"http://127.0.0.1:{port}",
        "STATIC_ROOT": str(data_dir / "static"),
    }
    return {**defaults, **environment, **chosen}


def _refuse_open_http(bind: str, environment: dict[str, str]) -> None:
    """Passwords do not travel in the clear unless somebody says so."""
    is_https = urlsplit(environment["PUBLIC_URL"]).scheme == "https"
    if bind in _LOOPBACK or is_https or environment.get("ALLOW_HTTP") == "1":
        return
    _give_up(
        f"BIND={bind} would serve passwords over plain HTTP. Set PUBLIC_URL=https://… and put a"
        " TLS proxy in front, or set ALLOW_HTTP=1 if the network is yours alone."
    )


def _only_one(data_dir: Path) -> int:
    """Hold a lock for as long as this installation runs."""
    try:
        for folder in (data_dir, data_dir / "run", data_dir / "log"):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(data_dir / "run" / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        _give_up(f"Cannot write to DATA_DIR: {error}.")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        _give_up(f"TensorHive is running already with the data in {data_dir}.")
    return lock


def _refuse_taken_port(bind: str, port: str) -> None:
    family = socket.AF_INET6 if ":" in bind else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((bind, int(port)))
        except OSError as error:
            _give_up(f"Cannot listen on {bind}:{port}: {error.strerror}. Choose another PORT=.")


def _manage(environment: dict[str, str], *arguments: str) -> None:
    done = subprocess.run(  # noqa: S603  our own commands
        [sys.executable, str(BASE_DIR / "manage.py"), *arguments], env=environment, check=False
    )
    if done.returncode:
        _give_up(f"`manage.py {' '.join(arguments)}` failed; see above.")


def _collect_static(environment: dict[str, str]) -> None:
    """Collecting compresses everything, which takes longer than all the rest of a start."""
    stamp = Path(environment["STATIC_ROOT"]) / "collected"
    digest = _digest_of_sources()
    if stamp.exists() and stamp.read_text() == digest:
        return
    _manage(environment, "collectstatic", "--noinput", "--verbosity", "0", *_UNUSED)
    stamp.write_text(digest)


def _digest_of_sources() -> str:
    """Changes when a file of ours, or the version of a package that brings files, does."""
    digest = hashlib.sha256()
    for name in ("requirements.txt", "package-lock.json"):
        digest.update((BASE_DIR / name).read_bytes())
    for path in sorted((BASE_DIR / "static").rglob("*")):
        found = path.stat()
        digest.update(f"{path}\n{found.st_size} {found.st_mtime_ns}\n".encode())
    return digest.hexdigest()


def _give_up(sentence: str) -> NoReturn:
    sys.exit(f"make run: {sentence}")


if __name__ == "__main__":
    main()
