"""The frame around a probe's answer: sections between markers that carry a random word."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

_MAX_LINE, _MAX_LINES = 65_536, 40_960


@dataclass(frozen=True, slots=True)
class Part:
    """One section: what it said, and the exit status it ended with."""

    text: str
    status: int | None


@dataclass(frozen=True, slots=True)
class Frame:
    """The first complete frame; `is_repeated` when markers of the same round follow it."""

    parts: Mapping[str, Part]
    is_repeated: bool = False


def read_frame(text: str, nonce: str) -> Frame | None:
    """The sections of the first frame by name; None when its last marker is missing."""
    tag = f"@@{nonce} "
    parts: dict[str, Part] = {}
    name: str | None = None
    lines: list[str] = []
    # Lines end at LF alone: names of processes may hold whatever else Unicode calls a line end.
    all_lines = text.split("\n")[:_MAX_LINES]
    for position, line in enumerate(all_lines):
        if not line.startswith(tag):
            if name is not None:
                lines.append(line[:_MAX_LINE].rstrip("\r"))
            continue
        words = line[len(tag) :].split()
        if words == ["done"]:
            return Frame(parts, any(late.startswith(tag) for late in all_lines[position + 1 :]))
        if words[:1] == ["begin"] and len(words) == 2:
            name, lines = words[1], []
        elif words[:1] == ["end"] and len(words) == 3 and words[1] == name:
            if lines and not lines[-1]:
                lines.pop()  # it only ends a last line that had no end of its own
            parts.setdefault(name, Part("\n".join(lines), _status(words[2])))
            name = None
        elif name is not None:
            lines.append(line)  # a marker within a section: between command lines
    return None


def _status(word: str) -> int | None:
    return int(word) if word.isascii() and word.isdigit() and len(word) <= 5 else None
