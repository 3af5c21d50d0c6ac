"""Reads hosts out of an OpenSSH client configuration, as text: nothing in it is ever obeyed.

Only plain `Host` blocks count, and in them HostName, User, Port and ProxyJump (ssh_config(5)).
`Match` blocks, which can run programs, are passed over; so are patterns, which name no host.
"""

from __future__ import annotations

import fnmatch
import re
import shlex
from dataclasses import dataclass

_WANTED = ("hostname", "user", "port", "proxyjump")
_OPTION = re.compile(r"^\s*([A-Za-z]+)(?:\s*=\s*|\s+)(.*?)\s*$")


@dataclass(frozen=True, slots=True)
class Entry:
    """One alias; None where the file does not say."""

    alias: str
    address: str
    user: str | None = None
    port: int | None = None
    jump: str | None = None  # as ProxyJump names it: an alias or [user@]host[:port]


def entries(text: str, pattern: str = "*") -> list[Entry]:
    """The hosts whose alias fits the pattern (with * and ?), in the order of the file.

    As in OpenSSH the first value of an option counts, also when it comes from a block whose
    pattern fits the alias. A port that is no number is left out.
    """
    blocks = _blocks(text)
    aliases = dict.fromkeys(
        alias
        for patterns, _ in blocks
        for alias in patterns
        if not set("*?!") & set(alias) and fnmatch.fnmatchcase(alias, pattern)
    )
    return [_entry(alias, blocks) for alias in aliases]


_Block = tuple[list[str], dict[str, str]]


def _blocks(text: str) -> list[_Block]:
    """Each Host block with its patterns and its options; a Match block fits nobody."""
    blocks: list[_Block] = [(["*"], {})]
    for line in text.splitlines():
        found = None if line.lstrip().startswith("#") else _OPTION.match(line)
        if found is None:
            continue
        name, value = found[1].lower(), found[2]
        if name == "host":
            blocks.append((_words(value), {}))
        elif name == "match":
            blocks.append(([], {}))
        elif name in _WANTED:
            blocks[-1][1].setdefault(name, value.strip('"'))
    return blocks


def _entry(alias: str, blocks: list[_Block]) -> Entry:
    options: dict[str, str] = {}
    for patterns, found in blocks:
        if _fits(alias, patterns):
            options = {**found, **options}
    port = options.get("port", "")
    jump = options.get("proxyjump")
    return Entry(
        alias=alias,
        address=options.get("hostname", alias).replace("%h", alias),
        user=options.get("user"),
        port=int(port) if port.isascii() and port.isdigit() and len(port) < 6 else None,
        jump=None if jump is None or jump.lower() == "none" else jump,
    )


def _fits(alias: str, patterns: list[str]) -> bool:
    refused = any(
        fnmatch.fnmatchcase(alias, pattern[1:]) for pattern in patterns if pattern[:1] == "!"
    )
    return not refused and any(
        fnmatch.fnmatchcase(alias, pattern) for pattern in patterns if pattern[:1] != "!"
    )


def _words(value: str) -> list[str]:
    try:
        return shlex.split(value)
    except ValueError:  # a quote that is never closed
        return value.split()
