"""What runs, as a configuration of supervisord, the process manager of `make run`."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

BASE_DIR = Path(__file__).resolve().parent.parent


@dataclass(frozen=True, slots=True)
class Program:
    """One program: arguments for Python, its role, and seconds to end in before it is killed."""

    name: str
    arguments: str
    stop_seconds: int
    role: str = "worker"


# The same programs as deploy/systemd has.
PROGRAMS = (
    Program("web", "-m gunicorn -c python:tensorhive_site.web_server", 15, role="web"),
    Program("watch", "-m tensorhive_site.run_cluster watch", 40),
    Program("actions", "-m tensorhive_site.run_cluster actions", 40),
    Program("slow", "-m tensorhive_site.run_cluster slow", 40),
    Program("watchdog", "manage.py watchdog", 5),
)

# No control socket: whoever started this stops it, and the watchdog speaks to the clusters.
# Paths are relative to the data directory, whose name may have signs that supervisord expands.
_HEAD = """\
; Written by `make run`; changes are lost.
[supervisord]
nodaemon=true
pidfile=run/supervisord.pid
logfile=log/supervisord.log
childlogdir=log
loglevel=warn
umask=077
"""
# supervisord stops one group after the other, and the programs of a group together.
_GROUP = """
[group:tensorhive]
programs={names}
"""
# Only a program's leader gets the stop signal; what is left after the time is killed as a group.
_PROGRAM = """
[program:{name}]
command={python} {arguments}
directory={base}
autorestart=true
startretries=1000000
startsecs=1
stopwaitsecs={stop_seconds}
stopasgroup=false
killasgroup=true
redirect_stderr=true
stdout_logfile=log/{name}.log
stdout_logfile_maxbytes=10MB
stdout_logfile_backups=5
environment=TENSORHIVE_ROLE="{role}"
"""


def configuration() -> str:
    """The text of supervisord.conf; supervisord must be started in the data directory."""
    head = _HEAD
    if os.geteuid() == 0:
        head += "user=root\n"  # said on purpose, or supervisord warns
    head += _GROUP.format(names=",".join(program.name for program in PROGRAMS))
    return head + "".join(
        _PROGRAM.format(
            name=program.name,
            python=_quoted(sys.executable),
            arguments=program.arguments,
            stop_seconds=program.stop_seconds,
            role=program.role,
            base=_escaped(str(BASE_DIR)),
        )
        for program in PROGRAMS
    )


def _escaped(text: str) -> str:
    """supervisord reads %(name)s in its values."""
    return text.replace("%", "%%")


def _quoted(text: str) -> str:
    return '"' + _escaped(text).replace("\\", "\\\\").replace('"', '\\"') + '"'
