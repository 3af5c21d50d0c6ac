"""gunicorn's configuration: `gunicorn -c python:tensorhive_site.web_server`."""

import os
from typing import Any

from tensorhive_site import processes

wsgi_app = "tensorhive_site.wsgi"
_address = os.environ.get("BIND") or "127.0.0.1"
_port = os.environ.get("PORT") or "8000"
bind = f"[{_address}]:{_port}" if ":" in _address else f"{_address}:{_port}"
# Pages wait for rows, not for the processor; answers of hosts are waited for up to five seconds.
workers = int(os.environ.get("WEB_WORKERS") or 2)
worker_class = "gthread"
threads = 8
timeout = 60
graceful_timeout = 10
control_socket_disable = True


def on_starting(server: Any) -> None:
    processes.end_with_parent()
