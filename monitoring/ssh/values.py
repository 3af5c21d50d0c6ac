"""What goes in and out of the door: addresses, targets, results."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

_HOSTNAME = re.compile(r"^(?!.*\.\.)[A-Za-z0-9][A-Za-z0-9.-]{0,252}\Z")
_LOGIN = re.compile(r"^(?![0-9]+\Z)[A-Za-z_0-9][A-Za-z0-9_.-]{0,31}\$?\Z")


class Status(StrEnum):
    """How an attempt to use a host ended."""

    OK = "ok"
    REFUSED = "refused"
    UNREACHABLE = "unreachable"
    DNS = "dns"
    BANNER = "banner"  # something listens there that does not speak SSH
    HOSTKEY_UNKNOWN = "hostkey_unknown"
    HOSTKEY_CHANGED = "hostkey_changed"
    AUTH = "auth"
    CHANNEL = "channel"
    TIMEOUT = "timeout"
    CLOSED = "closed"
    TOO_BIG = "too_big"


@dataclass(frozen=True, slots=True)
class Address:
    """A place to log in. Raises ValueError for what could be read as anything else."""

    host: str
    port: int = 22
    user: str = ""

    def __post_init__(self) -> None:
        if not _is_ip(self.host) and not _HOSTNAME.match(self.host):
            raise ValueError("An address is a host name or an IP address alone.")
        if not 1 <= self.port <= 65535:
            raise ValueError("A port is a number from 1 to 65535.")
        if self.user and not _LOGIN.match(self.user):
            raise ValueError("That is not a Unix login.")

    def __str__(self) -> str:
        return self.host if self.port == 22 else f"{self.host} port {self.port}"

    @property
    def pin_name(self) -> str:
        """As known_hosts names it."""
        return self.host if self.port == 22 else f"[{self.host}]:{self.port}"


@dataclass(frozen=True, slots=True)
class Target:
    """Where to log in, as whom, trusting which host keys, with which key, through which host.

    `pins` are OpenSSH public key lines without the host's name; without any, nothing is
    authenticated.
    """

    address: Address
    pins: tuple[str, ...]
    key_path: Path
    jump: Target | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """What came of it. `reason` is one sentence for people; it is empty when all went well.

    `exit_code` is None when the command was not seen to end; `seen_keys` are the host keys offered,
    as public key lines, when they were not trusted, and `seen_at` says where: at the host itself or
    at a jump host on the way.
    """

    status: Status
    exit_code: int | None = None
    stdout: bytes = b""
    stderr: bytes = b""
    truncated: bool = False
    phase: str = ""
    elapsed: float = 0.0
    reason: str = ""
    seen_keys: tuple[str, ...] = ()
    seen_at: Address | None = None

    @property
    def ok(self) -> bool:
        return self.status is Status.OK


def _is_ip(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return "%" not in text  # what follows it, the zone, may be any text
