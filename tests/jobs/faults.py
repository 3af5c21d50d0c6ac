"""A worker that dies: answers one request, and kills itself where a named function is reached.

python -m tests.jobs.faults DATABASE OBSERVING_KEY ACTING_KEY REQUEST FUNCTION
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any
from unittest import mock

import django
from django.conf import settings


def _die(*args: Any, **kwargs: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def main(database: str, observing_key: str, acting_key: str, request: str, function: str) -> None:
    settings.DATABASES["default"]["NAME"] = database
    settings.OBSERVING_KEY, settings.ACTING_KEY = Path(observing_key), Path(acting_key)
    django.setup()
    from monitoring import requests

    with mock.patch(function, _die):
        requests.answer(int(request))


if __name__ == "__main__":
    main(*sys.argv[1:])
