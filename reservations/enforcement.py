"""Which processes intrude, and what follows: pure decisions on plain values.

No database, no SSH, no clock. What is not known for certain is never an intrusion: a process
whose owner was not seen, a GPU that the last answer did not describe completely, an old answer.
"""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from monitoring import naming


@dataclass(frozen=True, slots=True)
class Process:
    """A process on a GPU as one probe saw it. Identity: (boot_id, pid, start_ticks, uid)."""

    gpu_uuid: str
    boot_id: str
    pid: int
    start_ticks: int
    uid: int
    login: str
    command: str = ""
    memory_used_mib: int | None = None
    confidence: str = "certain"

    @property
    def identity(self) -> tuple[str, int, int, int]:
        return self.boot_id, self.pid, self.start_ticks, self.uid


@dataclass(frozen=True, slots=True)
class Right:
    """The reservation that holds a GPU now, and its owner's login on the hosts."""

    reservation_id: int
    owner_login: str
    owner: str
    ends_at: dt.datetime


@dataclass(frozen=True, slots=True)
class Rules:
    """What of the policy the decision needs."""

    level: int  # 0 off, 1 on reserved GPUs, 2 also on GPUs that nobody reserved
    uid_min: int = 1000
    exempt_logins: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Intrusion:
    """The processes of one login on one GPU, against one reservation or none."""

    gpu_uuid: str
    intruder: str
    uid: int
    right: Right | None
    processes: tuple[Process, ...] = field(default=())

    @property
    def key(self) -> tuple[str, str, int | None]:
        return self.gpu_uuid, self.intruder, self.right.reservation_id if self.right else None

    @property
    def rule(self) -> str:
        """Why this is an intrusion, in one sentence."""
        if self.right is None:
            return "Nobody reserved this GPU, and the policy asks for a reservation."
        return f"The GPU is reserved by {self.right.owner}."


def is_system_account(uid: int, uid_min: int) -> bool:
    """Root and the logins that belong to services: recorded at level 2, never warned or ended."""
    return uid < uid_min


def find_intrusions(
    processes: Iterable[Process],
    rights: Mapping[str, Right],
    *,
    rules: Rules,
    own: Collection[tuple[str, int, int, int]] = frozenset(),
) -> list[Intrusion]:
    """Group the processes that may not be where they are by GPU and login, in the given order.

    `rights` maps the UUID of each GPU reserved now to its reservation; `own` holds identities of
    processes that the product itself started in their right.
    """
    found: defaultdict[tuple[str, str, int], list[Process]] = defaultdict(list)
    for process in processes:
        if process.identity not in own and _may_not(process, rights.get(process.gpu_uuid), rules):
            found[process.gpu_uuid, process.login, process.uid].append(process)
    return [
        Intrusion(uuid, login, uid, rights.get(uuid), tuple(group))
        for (uuid, login, uid), group in found.items()
    ]


def confirmed(now_seen: Intrusion, before: Collection[tuple[str, int, int, int]]) -> bool:
    """Whether one of its processes was there in the probe before, too."""
    return any(process.identity in before for process in now_seen.processes)


def processes_of(data: Mapping[str, Any], *, gpu_uuids: Collection[str]) -> list[Process]:
    """The processes of a stored answer that can be acted upon.

    Those on the given GPUs whose owner, start and boot are known. Of an answer whose process or
    owner section is incomplete nothing is taken at all.
    """
    if not can_judge(data):
        return []
    return [
        Process(
            gpu_uuid=row["gpu_uuid"],
            boot_id=data["boot_id"],
            pid=row["pid"],
            start_ticks=row["start_ticks"],
            uid=row["uid"],
            login=row["login"],
            command=row.get("command") or row.get("name") or "",
            memory_used_mib=row.get("memory_used_mib"),
            confidence=row["owner_confidence"],
        )
        for row in data.get("processes", ())
        if row.get("gpu_uuid") in gpu_uuids and _is_attributed(row)
    ]


def can_judge(data: Mapping[str, Any]) -> bool:
    """Whether the answer tells which processes run and whose; else nothing is concluded."""
    sections = data.get("sections", {})
    return bool(data.get("boot_id")) and all(
        _is_complete(sections, name) for name in ("processes", "owners")
    )


def complete_gpus(data: Mapping[str, Any]) -> set[str]:
    """UUIDs of the GPUs that the answer describes without a fault."""
    return {row["uuid"] for row in data.get("gpus", ()) if row.get("state") == "ok"}


def warning_text(
    *,
    gpus: str,
    intruder_processes: Iterable[tuple[int, str]],
    owner: str | None,
    until: str | None,
    calendar_url: str,
    consequence: str,
) -> str:
    """The text for a terminal: fixed sentences around cleaned names, lines of 78 columns at most.

    `until` comes formatted in the reader's zone with the zone named.
    """
    if owner is None:
        who = f"{gpus} may be used with a reservation only."
    else:
        who = f"{gpus} is reserved by {naming.printable(owner, 40)} until {until}."
    processes = [f"  {pid}  {naming.printable(command, 60)}" for pid, command in intruder_processes]
    shown, more = processes[:5], len(processes) - 5
    if more > 0:
        shown.append(f"  and {more} more")
    lines = [
        "",
        "*** TensorHive ***",
        who,
        "You are running there:",
        *shown,
        "Please end this, or reserve GPUs for it:",
        calendar_url,
        consequence,
        "",
    ]
    return "\r\n".join(lines) + "\r\n"


def _may_not(process: Process, right: Right | None, rules: Rules) -> bool:
    if process.login in rules.exempt_logins:
        return False
    if right is not None and right.owner_login == process.login:
        return False
    if is_system_account(process.uid, rules.uid_min):
        return rules.level >= 2
    return rules.level >= 2 or (rules.level == 1 and right is not None)


def _is_complete(sections: Mapping[str, Any], name: str) -> bool:
    return bool(sections.get(name, {}).get("state") == "ok")


def _is_attributed(row: Mapping[str, Any]) -> bool:
    known = all(row.get(field) is not None for field in ("pid", "start_ticks", "uid", "login"))
    return known and row.get("owner_confidence") in ("certain", "likely")
