"""Adding many hosts at once, from what an OpenSSH configuration says of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.core.exceptions import ValidationError

from monitoring import ssh_config
from monitoring.models import Host
from monitoring.services import hosts

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser


@dataclass(frozen=True, slots=True)
class Imported:
    """What came of one alias: a new host, or the sentence why there is none."""

    alias: str
    host: Host | None = None
    reason: str = ""
    was_there: bool = False


def import_ssh_config(
    text: str, *, pattern: str, user: str | None, actor: AbstractBaseUser | None
) -> list[Imported]:
    """Add the hosts whose alias fits the pattern; `user` goes before what the file says.

    Each by itself: one that cannot be added keeps none of the others away.
    """
    known = {entry.alias: entry for entry in ssh_config.entries(text)}
    wanted = ssh_config.entries(text, pattern)
    return [_imported(entry, known, user=user, actor=actor) for entry in wanted]


def _imported(
    entry: ssh_config.Entry,
    known: Mapping[str, ssh_config.Entry],
    *,
    user: str | None,
    actor: AbstractBaseUser | None,
) -> Imported:
    if Host.objects.filter(name=entry.alias).exists():
        return Imported(entry.alias, reason=f"{entry.alias} is there already.", was_there=True)
    try:
        host = hosts.add(
            actor=actor,
            name=entry.alias,
            address=entry.address,
            port=entry.port or 22,
            user=user or entry.user or "",
            **_jump(entry.jump, known),
        )
    except ValidationError as error:
        return Imported(entry.alias, reason=f"{entry.alias}: {' '.join(error.messages)}")
    return Imported(entry.alias, host)


def _jump(text: str | None, known: Mapping[str, ssh_config.Entry]) -> dict[str, Any]:
    """The jump fields for a ProxyJump, which is an alias of the file or a place of its own."""
    if text is None:
        return {}
    if "," in text:
        raise ValidationError("Only one jump host is supported.")
    if (gate := known.get(text)) is not None:
        return {
            "jump_address": gate.address,
            "jump_port": gate.port or 22,
            "jump_user": gate.user or "",
        }
    return hosts.parse_jump(text)
