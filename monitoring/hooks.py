"""How apps on the left call those on the right: through dotted paths in the settings."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.utils.module_loading import import_string

logger = logging.getLogger(__name__)


def functions(setting_name: str) -> list[Callable[..., Any]]:
    """The functions that the setting names, in its order."""
    return [import_string(path) for path in getattr(settings, setting_name)]


def collect(setting_name: str, *args: Any) -> list[Any]:
    """What each of the functions answers. Their exceptions are the caller's."""
    return [function(*args) for function in functions(setting_name)]


def call_all(setting_name: str, *args: Any) -> None:
    """Call each of the functions; one that fails is logged and does not keep the next from it."""
    for function in functions(setting_name):
        try:
            function(*args)
        except Exception:
            logger.exception("%s failed", function.__qualname__)
