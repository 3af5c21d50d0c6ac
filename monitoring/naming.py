"""What names of hosts, logins, terminals and the like may look like, and how text is made safe."""

from __future__ import annotations

import ipaddress
import re
import unicodedata

from django.core.exceptions import ValidationError

HOST_LABEL = re.compile(r"^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9])?\Z")
HOST_LABEL_HELP = "Use letters, digits, dots, dashes and underscores, 64 at most."
_HOSTNAME = re.compile(r"^[A-Za-z0-9](?:[A-Za-z0-9.-]{0,252})\Z")
_LOGIN = re.compile(r"^(?![0-9]+\Z)[A-Za-z_0-9][A-Za-z0-9_.-]{0,31}\$?\Z")
# Control characters, the marks that reorder or hide text, and halves of surrogate pairs, which no
# encoding can write.
_UNSAFE = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb]"
)


def validate_address(value: str) -> None:
    """Refuse anything but a plain host name or IP address: no user, port, path or option."""
    if not _is_ip(value) and (not _HOSTNAME.match(value) or ".." in value):
        raise ValidationError(
            "Enter a host name or an IP address alone, without user, port or spaces."
        )


def _is_ip(value: str) -> bool:
    try:
        ipaddress.ip_address(value)
    except ValueError:
        return False
    return "%" not in value  # what follows it, the zone, may be any text


def validate_login(value: str) -> None:
    """Refuse what cannot be a Unix login, or could be read as an option or a number."""
    if not _LOGIN.match(value):
        raise ValidationError(
            "A Unix login has letters, digits, dots, dashes and underscores, 32 at most, and is"
            " not a number."
        )


def validate_plain_text(value: str) -> None:
    """Refuse control, bidi and zero-width characters in a name; say so instead of dropping them."""
    if _UNSAFE.search(value):
        raise ValidationError("Control and invisible characters are not allowed here.")


def validate_plain_lines(value: str) -> None:
    """As validate_plain_text, but tabs and line ends are welcome."""
    validate_plain_text(re.sub(r"[\t\r\n]", "", value))


def normalized(value: str) -> str:
    """The text in NFC, without blanks at its ends: how names are stored and compared."""
    return unicodedata.normalize("NFC", value).strip()


def printable(text: str, limit: int = 200) -> str:
    """Text from a host or a person, safe to print: unsafe characters replaced, cut to the limit."""
    cleaned = _UNSAFE.sub("\N{REPLACEMENT CHARACTER}", text)
    return cleaned if len(cleaned) <= limit else cleaned[: limit - 1] + "…"


def printable_lines(text: str, limit: int = 200) -> list[str]:
    """The lines of a text from a host, each made safe to print."""
    return [printable(line, limit) for line in text.splitlines()]
