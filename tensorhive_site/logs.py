"""Log lines: one record, one line, no control characters, no secrets."""

from __future__ import annotations

import logging
import re

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_SECRETS = re.compile(
    r"(?i)(authorization|password|passwd|refresh|access|token|cookie|secret)"
    r"(['\"]?\s*[:=]\s*['\"]?)(bearer\s+)?[^\s'\",;}]+"
)
_PRIVATE_KEY = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(-----END|$)", re.DOTALL)


def clean(text: str) -> str:
    """The text with secrets masked and everything that could forge a line escaped."""
    text = _PRIVATE_KEY.sub("[private key]", text)
    text = _SECRETS.sub(r"\1\2[masked]", text)
    return _CONTROL.sub(lambda match: f"\\x{ord(match[0]):02x}", text)


class OneLineFormatter(logging.Formatter):
    """Time in UTC, level, logger and message; a traceback follows indented, its lines kept."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        head, *rest = clean(super().format(record)).split("\n")
        separator = "\n    " if record.exc_info else "\\n"
        return separator.join([head, *rest])
