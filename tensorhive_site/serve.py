"""`make run`: check the surroundings, make the installation ready, and start everything.

Plain Python up to the end, where supervisord takes this process's place.
"""

from __future__ import annotations

import fcntl
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import NoReturn
from urllib.parse import urlsplit

from tensorhive_site import secrets_file

BASE_DIR = Path(__file__).resolve().parent.parent
CLUSTERS = ("watch", "actions", "slow")
_LOOPBACK = ("127.0.0.1", "localhost", "::1")

_HEAD = """\
; Written by `make run`; changes are lost.
[unix_http_server]
file={run}/supervisor.sock
chmod=0600

[rpcinterface:supervisor]
supervisor.rpcinterface_factory=supervisor.rpcinterface:make_main_rpcinterface

[supervisorctl]
serverurl=unix://{run}/supervisor.sock

[supervisord]
nodaemon=true
pidfile={run}/supervisord.pid
logfile={log}/supervisord.log
childlogdir={log}
loglevel=warn
"""
# Only a program's leader gets the stop signal; what is left after the time is killed as a group.
_PROGRAM = """
[program:{name}]
command={command}
directory={base}
autorestart=true
startretries=1000000
startsecs=1
stopwaitsecs={stop}
stopasgroup=false
killasgroup=true
redirect_stderr=true
stdout_logfile={log}/{name}.log
stdout_logfile_maxbytes=10MB
stdout_logfile_backups=5
environment={environment}
"""


def main() -> None:
    environment = _environment()
    data_dir = Path(environment["DATA_DIR"])
    bind, port = environment.get("BIND") or "127.0.0.1", environment["PORT"]
    _refuse_open_http(bind, environment)
    secrets_file.ensure(data_dir)
    lock = _only_one(data_dir)
    _refuse_taken_port(bind, port)
    _manage(environment, "init")
    environment.pop("ADMIN_PASSWORD", None)
    environment.pop("ADMIN_USERNAME", None)
    _manage(environment, "collectstatic", "--noinput", "--verbosity", "0")
    config = _write_config(data_dir, bind, port)
    print(f"\nTensorHive is at {environment['PUBLIC_URL']} – Ctrl-C stops it.")  # noqa: T201
    print(f"Logs: {data_dir / 'log'}\n", flush=True)  # noqa: T201
    os.set_inheritable(lock, True)
    supervisord = str(Path(sys.executable).with_name("supervisord"))
    os.execve(supervisord, [supervisord, "-n", "-c", str(config)], environment)  # noqa: S606


def _environment() -> dict[str, str]:
    environment = dict(os.environ)
    environment["DATA_DIR"] = str(secrets_file.data_dir_of(environment, BASE_DIR))
    port = environment.setdefault("PORT", "8000")
    if not port.isdigit() or not 0 < int(port) < 65536:
        _give_up(f"PORT={port} is not a port number.")
    environment.setdefault("PUBLIC_URL", f"http://127.0.0.1:{port}")
    environment.setdefault("STATIC_ROOT", str(Path(environment["DATA_DIR"]) / "static"))
    return environment


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
    run = data_dir / "run"
    run.mkdir(mode=0o700, exist_ok=True)
    (data_dir / "log").mkdir(mode=0o700, exist_ok=True)
    lock = os.open(run / "lock", os.O_RDWR | os.O_CREAT, 0o600)
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


def _write_config(data_dir: Path, bind: str, port: str) -> Path:
    run, log = data_dir / "run", data_dir / "log"
    python = _quoted(sys.executable)
    place = f"[{bind}]:{port}" if ":" in bind else f"{bind}:{port}"
    web = (
        f"{python} -m gunicorn tensorhive_site.wsgi --bind {place} --workers 2"
        " --worker-class gthread --threads 8 --timeout 60 --graceful-timeout 10"
        " --no-control-socket"
    )
    programs = [("web", web, 15, 'TENSORHIVE_ROLE="web"')]
    programs += [
        (name, f"{python} -m tensorhive_site.run_cluster {name}", 40, 'TENSORHIVE_ROLE="worker"')
        for name in CLUSTERS
    ]
    programs.append(("watchdog", f"{python} manage.py watchdog", 5, 'TENSORHIVE_ROLE="worker"'))
    text = _HEAD.format(run=_escaped(run), log=_escaped(log)) + "".join(
        _PROGRAM.format(
            name=name,
            command=command,
            base=_escaped(BASE_DIR),
            stop=stop,
            log=_escaped(log),
            environment=environment,
        )
        for name, command, stop, environment in programs
    )
    path = run / "supervisord.conf"
    path.write_text(text)
    return path


def _escaped(path: Path) -> str:
    """supervisor reads %(name)s in its values."""
    return str(path).replace("%", "%%")


def _quoted(path: str) -> str:
    return '"' + path.replace("%", "%%").replace('"', '\\"') + '"'


def _give_up(sentence: str) -> NoReturn:
    sys.exit(f"make run: {sentence}")


if __name__ == "__main__":
    main()
