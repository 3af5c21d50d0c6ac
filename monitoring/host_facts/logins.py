"""Who is logged in, from who, w, loginctl and the owners of /dev/pts; sources: their manuals.

"Nobody" and "cannot be told" are different answers: who is empty with status 0 where there is no
/run/utmp, loginctl fails where systemd does not run.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from monitoring.host_facts.procfs import whole
from monitoring.naming import printable
from monitoring.snapshot import LoginSession

MAX_SESSIONS = 256
_WHO = re.compile(
    r"^(?P<user>\S{1,64})\s+(?P<line>\S(?:.{0,30}?\S)?)\s+"
    r"(?P<since>\d{4}-\d\d-\d\d \d\d:\d\d|[A-Z][a-z]{2} {1,2}\d{1,2} \d\d:\d\d)"
    r"\s*(?:\((?P<comment>.*)\))?\s*\Z",
    re.ASCII,
)
_TERMINAL = re.compile(r"^(?:pts/\d{1,6}|tty[A-Za-z]{0,4}\d{1,4})\Z", re.ASCII)
_PTS = re.compile(r"^c\S+\s+\d+\s+(\d{1,10})\s+.*\s(\d{1,6})\s*\Z", re.ASCII)
_SEAT = re.compile(r"^seat")
_CLASS = re.compile(r"^(?:user|manager|greeter|background|lock-screen|none)(?:-|\Z)")
_IDLE = re.compile(r"^(?:yes|no)\Z")
# Classes of systemd sessions that are no people.
_NOT_PEOPLE = re.compile(r"^(?:manager|greeter|background|lock-screen|none)")


@dataclass(frozen=True, slots=True)
class WhoRow:
    """One row of who; `since` as printed, since it may have no year."""

    user: str
    line: str
    since: str
    host: str | None = None
    via: str | None = None


@dataclass(frozen=True, slots=True)
class LoginctlRow:
    """One session of loginctl; columns that this version does not print are None."""

    session: str
    uid: int
    user: str
    seat: str | None = None
    klass: str | None = None
    tty: str | None = None
    idle: bool | None = None
    idle_since: str | None = None

    @property
    def is_person(self) -> bool:
        return self.klass is None or not _NOT_PEOPLE.match(self.klass)


@dataclass(frozen=True, slots=True)
class WAnswer:
    rows: tuple[WhoRow, ...]
    load: tuple[float, ...]
    users: int | None


def parse_who(text: str) -> list[WhoRow]:
    """Rows of who, anchored on the date, since everything around it may hold blanks."""
    rows = []
    for line in text.split("\n")[:4096]:
        if found := _WHO.match(line):
            host, via = _comment(found["comment"])
            since = re.sub(r" +", " ", found["since"])
            rows.append(WhoRow(found["user"], found["line"], since, host, via))
    return rows[:MAX_SESSIONS]


def parse_w(text: str) -> WAnswer:
    """The load and the sessions of w; its FROM is cut at 16 columns and still looks valid."""
    lines = text.split("\n")
    head = lines[0] if lines else ""
    load = re.findall(r"(\d{1,6}\.\d\d)", head.partition("load average:")[2], re.ASCII)
    users = re.search(r"(\d{1,5}) users?,", head, re.ASCII)
    rows = [
        WhoRow(words[0], words[1], words[3], None if words[2] == "-" else words[2])
        for line in lines[2:]
        if len(words := line.split()) >= 5
    ]
    return WAnswer(tuple(rows), tuple(map(float, load)), int(users[1]) if users else None)


def parse_loginctl(text: str) -> list[LoginctlRow]:
    """`loginctl list-sessions`, four to nine columns, with or without its header."""
    lines = [line for line in text.split("\n")[:4096] if line.strip()]
    header = next((line for line in lines if line.split()[:2] == ["SESSION", "UID"]), "")
    rows = [_loginctl_row(line, header) for line in lines if line != header]
    return [row for row in rows if row is not None][:MAX_SESSIONS]


def parse_pts(text: str, names: Mapping[int, str]) -> list[LoginSession]:
    """`ls -ln /dev/pts`: each terminal by its owner. Always works, needs no records of logins."""
    sessions = []
    for line in text.split("\n")[:4096]:
        if found := _PTS.match(line):
            uid = int(found[1])
            if (login := names.get(uid)) is not None:
                sessions.append(LoginSession(login, f"pts/{found[2]}", uid))
    return sessions[:MAX_SESSIONS]


def merge(
    *, loginctl: str | None, who: str | None, pts: str | None, names: Mapping[int, str]
) -> tuple[tuple[LoginSession, ...], str | None]:
    """Every terminal of every login once, and which source knew; None: nobody could tell.

    A text of None means that its source cannot tell. Who owns a terminal's device is the surest.
    """
    found: dict[tuple[str, str | None], LoginSession] = {}
    if pts is not None:
        _add(found, parse_pts(pts, names))
    if who is not None:
        _add(found, (_from_who(row) for row in parse_who(who)))
    if loginctl is not None:
        rows = parse_loginctl(loginctl)
        _add(found, (_from_loginctl(row) for row in rows if row.is_person))
    sources = (("loginctl", loginctl), ("who", who), ("pts", pts))
    source = next((name for name, text in sources if text is not None), None)
    return tuple(found.values())[:MAX_SESSIONS], source


def _add(
    found: dict[tuple[str, str | None], LoginSession], sessions: Iterable[LoginSession]
) -> None:
    owners = {key[1]: key[0] for key in found if key[1] is not None}
    for session in sessions:
        taken = owners.get(session.terminal) if session.terminal else None
        if taken is None or taken == session.login:
            key = (session.login, session.terminal)
            known = found.get(key)
            found[key] = known if known and not session.origin else session


def _from_who(row: WhoRow) -> LoginSession:
    return LoginSession(
        printable(row.user, 64), _terminal(row.line), None, row.host and printable(row.host, 80)
    )


def _from_loginctl(row: LoginctlRow) -> LoginSession:
    return LoginSession(printable(row.user, 64), _terminal(row.tty or ""), row.uid)


def _terminal(text: str) -> str | None:
    """The device's name; newer systems write "sshd pts/0"."""
    last = text.split()[-1] if text.split() else ""
    return last if _TERMINAL.match(last) else None


def _comment(comment: str | None) -> tuple[str | None, str | None]:
    if not comment or comment.startswith(":") or comment == "login screen":
        return None, None
    if comment.startswith("tmux("):
        return None, "tmux"
    host, _, via = comment.partition(" via ")
    return host, via.split()[0] if via.split() else None


def _loginctl_row(line: str, header: str) -> LoginctlRow | None:
    words = line.split()
    if len(words) < 3 or (uid := whole(words[1])) is None:
        return None
    cell = _cells(line, header) if header else _by_kind(words[3:])
    idle = cell.get("IDLE")
    return LoginctlRow(
        session=words[0],
        uid=uid,
        user=words[2],
        seat=_known(cell.get("SEAT")),
        klass=_known(cell.get("CLASS")),
        tty=_known(cell.get("TTY")),
        idle=None if idle is None else idle == "yes",
        idle_since=_known(cell.get("SINCE")),
    )


def _by_kind(words: list[str]) -> dict[str, str]:
    """What follows SESSION UID USER without a legend, told apart by its look.

    Versions print SEAT alone, SEAT TTY, SEAT TTY STATE IDLE SINCE, or SEAT LEADER CLASS TTY IDLE
    SINCE, and older ones leave blanks where newer ones write a dash.
    """
    kinds = (("SEAT", _SEAT), ("TTY", _TERMINAL), ("CLASS", _CLASS), ("IDLE", _IDLE))
    found = ((name, next(filter(kind.match, words), None)) for name, kind in kinds)
    return {name: word for name, word in found if word}


def _cells(line: str, header: str) -> dict[str, str]:
    """Cells by the columns of the header: left-aligned words start where their title does."""
    titles = [(found[0], found.start()) for found in re.finditer(r"\S+", header)]
    cells = {}
    for (title, begin), (_, end) in zip(titles, [*titles[1:], ("", len(line) + 80)], strict=True):
        cells[title] = line[begin:end].strip()
    return cells


def _known(cell: str | None) -> str | None:
    return None if not cell or cell == "-" else cell
