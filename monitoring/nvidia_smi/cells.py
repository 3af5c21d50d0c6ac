"""Single cells: numbers with or without a unit, and the words that stand for "not reported"."""

from __future__ import annotations

import math
import re

from monitoring.naming import printable

_NUMBER = re.compile(r"^([+-]?\d{1,15}(?:\.\d{1,9})?)(?:\s*(?:%|[A-Za-z]{1,4}))?\Z", re.ASCII)
_UUID = re.compile(r"^(?:(?:GPU|MIG)-)?[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}\Z")
_OLD_MIG = re.compile(r"^MIG-GPU-[0-9A-Fa-f-]{36}/\d{1,3}/\d{1,3}\Z", re.ASCII)
_KNOWN = {
    "n/a": "na",
    "not supported": "not-supported",
    "unknown error": "unknown-error",
    "gpu requires reset": "needs-reset",
    "insufficient permissions": "insufficient-permissions",
    "requested functionality has been deprecated": "deprecated",
    "function not found": "function-not-found",
    "not found": "not-found",
    "": "empty",
}


def absence(cell: str) -> str | None:
    """Why the cell holds no value, as a token; None when it does hold one.

    Anything in square brackets is missing with its text as the reason: tokens are open-ended.
    """
    if cell.startswith("[") and cell.endswith("]"):
        word = cell[1:-1].strip().lower()
        return _KNOWN.get(word) or printable(re.sub(r"\s+", "-", word), 40)
    return _KNOWN.get(cell.lower()) if cell.lower() in ("n/a", "") else None


def number(cell: str) -> float | None:
    """The number in a cell like `97.43 W`, `8 %` or `1235`; None for anything else."""
    match = _NUMBER.match(cell)
    value = float(match[1]) if match else math.nan
    return value if math.isfinite(value) else None


def integer(cell: str) -> int | None:
    """The number as a whole one; None when it is none, or not whole."""
    value = number(cell)
    return int(value) if value is not None and value == int(value) else None


def is_uuid(text: str) -> bool:
    """Whether it is a UUID as the driver writes them for cards and MIG instances."""
    return bool(_UUID.match(text) or _OLD_MIG.match(text))


def clean(text: str, limit: int = 120) -> str:
    """A name from the host, safe to show."""
    return printable(text, limit)


def lines_of(text: str) -> list[str]:
    """The lines that say something, without blanks at their ends.

    They end at LF alone: a process may carry U+2028 or a vertical tab in its name, and what
    `splitlines` makes of the rest of that name would be a row that nvidia-smi never wrote.
    """
    return [line for raw in text.split("\n") if (line := raw.strip(" \t\r"))]


def process_id(cell: str) -> int | None:
    """The number of a process: digits alone and above 0, since 0 and below name groups to kill."""
    return int(cell) if re.fullmatch(r"[1-9][0-9]{0,9}", cell, re.ASCII) else None


def split_row(line: str) -> list[str]:
    return [cell.strip() for cell in line.split(",")]
