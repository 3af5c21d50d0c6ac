"""What the scripts in remote/ say: pure parsers of text that may hold anything.

Each returns None where the answer is incomplete or makes no sense. An account's own start-up files
may print in front of it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from monitoring.naming import printable

_NUMBERS = re.compile(r"^([0-9]{1,10}) ([0-9]{1,18}) ([0-9a-f-]{1,64})\Z")
_UID = re.compile(r"^[0-9]{1,10}\Z")
_WAY = re.compile(r"^(screen|detached)(?::(/[^\x00-\x1f]{0,299}))?\Z")
_PATH = re.compile(r"^/[^\x00-\x1f]{1,299}\Z")
_BOOT = re.compile(r"^boot ([0-9a-f-]{8,64})\Z")
_ALIVE = re.compile(r"^([0-9]{1,10}) (alive|gone)\Z")
_HAS = re.compile(r"^([0-9]{1,10}) has ([0-9]{1,10}) ([0-9]{1,18})\Z")
_SAID = re.compile(r"^([0-9]{1,10}) (?:(alive)|said ?(.{0,32}))\Z")
MAX_PROCESSES = 512


@dataclass(frozen=True, slots=True)
class Launched:
    """An attempt that was started, now or by an earlier start."""

    uid: int
    pid: int
    start_ticks: int
    boot_id: str
    directory: str
    log: str
    has_screen: bool
    screen_directory: str  # "" is the system's own


@dataclass(frozen=True, slots=True)
class NotLaunched:
    """An attempt that does not run; `is_certain`: and never will."""

    sentence: str
    is_certain: bool


@dataclass(frozen=True, slots=True)
class Look:
    """Which of the processes asked for live, and what else runs in their sessions."""

    boot_id: str
    alive: frozenset[int]
    is_blind: bool  # the account sees only its own processes
    sessions: dict[int, list[list[int]]] = field(default_factory=dict)


def parse_launch(output: bytes) -> Launched | NotLaunched | None:
    """The last answer of launch.sh in the output."""
    lines = _lines(output)
    for place in range(len(lines) - 1, -1, -1):
        word, _, rest = lines[place].partition(" ")
        if word in ("failed", "unclear") and rest:
            return NotLaunched(printable(rest, 300), is_certain=word == "failed")
        if word in ("started", "running") and not rest:
            return _launched(lines[place + 1 : place + 6])
    return None


def _launched(lines: list[str]) -> Launched | None:
    if len(lines) != 5:
        return None
    uid, numbers, directory, log, way = lines
    found, how = _NUMBERS.match(numbers), _WAY.match(way)
    if not (found and how and _UID.match(uid) and _PATH.match(directory) and _PATH.match(log)):
        return None
    return Launched(
        uid=int(uid),
        pid=int(found[1]),
        start_ticks=int(found[2]),
        boot_id=found[3],
        directory=directory,
        log=log,
        has_screen=how[1] == "screen",
        screen_directory=how[2] or "",
    )


def parse_look(output: bytes) -> Look | None:
    """The answer of alive.sh; None unless it is complete and names the boot."""
    lines = _lines(output)
    boot = next(filter(None, map(_BOOT.match, lines)), None)
    if boot is None or not lines or lines[-1] != "done":
        return None
    sessions: dict[int, list[list[int]]] = {}
    for has in filter(None, map(_HAS.match, lines)):
        members = sessions.setdefault(int(has[1]), [])
        if len(members) < MAX_PROCESSES:
            members.append([int(has[2]), int(has[3])])
    alive = {int(said[1]) for said in filter(None, map(_ALIVE.match, lines)) if said[2] == "alive"}
    return Look(boot[1], frozenset(alive), "hidden" in lines, sessions)


def parse_results(output: bytes) -> dict[int, str | None] | None:
    """Pid -> what the attempt's file says; None for one that is alive after all."""
    lines = _lines(output)
    if not lines or lines[-1] != "done":
        return None
    found = filter(None, map(_SAID.match, lines))
    return {int(said[1]): None if said[2] else said[3].strip() for said in found}


def parse_stop(output: bytes) -> tuple[str, str]:
    """ "sent", "gone" or "failed", and the rest of that line; ("", "") for anything else."""
    lines = _lines(output)
    word, _, rest = (lines[-1] if lines else "").partition(" ")
    return (word, printable(rest)) if word in ("sent", "gone", "failed") else ("", "")


def parse_log(output: bytes, *, mark: str) -> tuple[int, int, bytes] | None:
    """Size, offset and bytes of a piece of log; None where the log is missing.

    Raises ValueError for anything else.
    """
    _, found, rest = output.partition(mark.encode() + b" ")
    head, _, piece = rest.partition(b"\n")
    if found and head.strip() == b"missing":
        return None
    numbers = re.match(rb"^([0-9]{1,18}) ([0-9]{1,18})\Z", head)
    if numbers is None:
        raise ValueError("no answer of log.sh")
    return int(numbers[1]), int(numbers[2]), piece


def whole_characters(piece: bytes) -> bytes:
    """Without a UTF-8 character cut off at the end; it comes with the next piece."""
    for length in range(1, min(4, len(piece)) + 1):
        byte = piece[-length]
        if byte >= 0xC0:
            needs = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return piece[:-length] if needs > length else piece
        if byte < 0x80:
            break
    return piece


def _lines(output: bytes) -> list[str]:
    return [line for line in output.decode(errors="replace").split("\n") if line.strip()]
