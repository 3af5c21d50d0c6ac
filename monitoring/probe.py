"""The probe: what is sent to a host's shell, and what its answer means.

`probe.sh` is sent once as functions; a round is one line. The answer is framed by markers with a
random word; text outside of them is noise, and without the last marker nothing of it is used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from monitoring.frame import Part, read_frame
from monitoring.host_facts import cgroups, logins, procfs
from monitoring.naming import printable
from monitoring.nvidia_smi.faults import classify
from monitoring.nvidia_smi.processes import ProcessAnswer
from monitoring.probe_gpus import read_gpus
from monitoring.snapshot import ProcessReading, Section, SectionState, Snapshot

MAX_BYTES = 1 << 20
# A fault of nvidia-smi that is the state of the whole host.
_HOST_FAULTS = {
    "not-installed": "no_driver",
    "no-driver": "no_driver",
    "library-missing": "no_driver",
    "nvml-init": "no_driver",
    "blocked-by-os": "no_driver",
    "mismatch": "driver_mismatch",
    "no-devices": "no_gpus",
}


_REPEATED = Section(
    SectionState.PARTIAL,
    "second-frame",
    "The host sent more than one answer to one question; only the first is used.",
)


@dataclass(frozen=True, slots=True)
class BrokenAnswer:
    """An answer of which nothing can be used; `reason` is one sentence."""

    reason: str


def function_text() -> str:
    """The shell functions of the probe, to be sent once to a kept /bin/sh."""
    return (Path(__file__).with_name("probe.sh")).read_text()


def request_line(
    nonce: str, *, first: bool = False, pmon: bool = False, skip_gpu: bool = False
) -> str:
    """The line that asks for one round. `nonce` is a fresh word of letters and digits."""
    options = {"first": first, "pmon": pmon, "skip-gpu": skip_gpu}
    return " ".join(["th_probe", nonce, *(word for word, is_on in options.items() if is_on)])


def end_marker(nonce: str) -> bytes:
    """The last line of the answer."""
    return b"@@" + nonce.encode() + b" done"


def read_snapshot(answer: bytes, nonce: str) -> Snapshot | BrokenAnswer:
    """Read the first complete frame of an answer. Never raises, whatever the bytes are."""
    if len(answer) > MAX_BYTES:
        return BrokenAnswer("The host's answer is too large; nothing of it is used.")
    frame = read_frame(answer.decode(errors="replace"), nonce)
    if frame is None:
        return BrokenAnswer("The host's answer was cut off; the last good values stay.")
    if not frame.parts:
        return BrokenAnswer("The host answered without any content.")
    parts = frame.parts
    gpus, apps = read_gpus(parts)
    processes, owners = _owned(apps, parts, nonce)
    people, source = _logins(parts)
    host_fault = _HOST_FAULTS.get(gpus.fault.kind) if gpus.fault and not gpus.gpus else None
    snapshot = _host_facts(parts)
    return replace(
        snapshot,
        gpus=gpus.gpus,
        lost_gpus=gpus.lost,
        processes=processes,
        logins=people,
        logins_source=source,
        sections={
            "gpus": gpus.section,
            "processes": apps.section,
            "owners": owners,
            **_plain_sections(snapshot),
            "logins": Section() if source else _unavailable("The host cannot tell who is in."),
            **({"frame": _REPEATED} if frame.is_repeated else {}),
        },
        host_fault=host_fault,
        reason=gpus.fault.sentence if gpus.fault and host_fault else None,
    )


def _owned(
    apps: ProcessAnswer, parts: Mapping[str, Part], nonce: str
) -> tuple[tuple[ProcessReading, ...], Section]:
    """The processes joined with what /proc says of them; who is not seen there stays unknown."""
    names = procfs.parse_names(_text(parts, "names"))
    names |= {
        row.uid: row.user
        for row in procfs.parse_ps(_text(parts, "ps"))
        if row.uid is not None and row.uid not in names and not row.is_user_cut
    }
    facts = _facts(parts)
    uptime, ticks = _decimal(facts, "uptime"), _whole(facts, "clock_ticks")
    commands = _commands(parts, nonce)
    known = {
        owner.pid: owner
        for line in _text(parts, "owners").split("\n")
        if (owner := _owner(line, names, uptime, ticks))
    }
    processes = tuple(
        _joined(process, known.get(process.pid), commands.get(process.pid))
        for process in apps.processes
    )
    return processes, _owners_section(parts, apps, processes)


def _owner(
    line: str, names: Mapping[int, str], uptime: float | None, ticks: int | None
) -> ProcessReading | None:
    """A line "pid uid loginuid cgroup stat…" of the probe."""
    words = line.split(" ", 4)
    if len(words) < 5 or (pid := procfs.whole(words[0])) is None:
        return None
    stat = procfs.parse_process_stat(words[4])
    if stat is None or stat.pid != pid:
        return None
    uid, login_uid = procfs.whole(words[1]), procfs.whole(words[2])
    belonging = cgroups.parse_cgroup(words[3])
    age = uptime - stat.start_ticks / ticks if uptime is not None and ticks else None
    return ProcessReading(
        gpu_uuid=None,
        pid=pid,
        uid=uid,
        login=None if uid is None else names.get(uid),
        start_ticks=stat.start_ticks,
        age_seconds=None if age is None else max(int(age), 0),
        cgroup=None if words[3] == "-" else printable(words[3], 1024),
        container_id=belonging.container_id,
        container_runtime=belonging.runtime,
        # 2³² - 1 is the kernel's "not set".
        login_uid=None if login_uid == 4_294_967_295 else login_uid,
        name=printable(stat.name, 64),
    )


def _joined(
    process: ProcessReading, owner: ProcessReading | None, command: str | None
) -> ProcessReading:
    if owner is None:
        return process
    return replace(
        owner,
        gpu_uuid=process.gpu_uuid,
        memory_used_mib=process.memory_used_mib,
        kind=process.kind,
        name=process.name or owner.name,
        command=command,
    )


def _owners_section(
    parts: Mapping[str, Part], apps: ProcessAnswer, processes: tuple[ProcessReading, ...]
) -> Section:
    part = parts.get("owners")
    if part is None or part.status not in (0, None):
        found = classify("", part.status if part else None)
        return Section(
            SectionState.ERROR,
            found.kind if found else "no-data",
            found.sentence if found else "The host said nothing about the owners of processes.",
        )
    if not apps.section.is_complete:
        return Section(SectionState.ERROR, apps.section.fault, apps.section.reason)
    if processes and all(process.uid is None for process in processes):
        return Section(
            SectionState.PARTIAL,
            "hidden",
            "None of the processes can be seen by the observing account (hidepid, or they ended).",
        )
    return Section()


def _commands(parts: Mapping[str, Part], nonce: str) -> dict[int, str]:
    """pid -> command line. The first line names the pids, each text follows this round's marker."""
    text = _text(parts, "commands")
    shown, _, rest = text.partition("\n")
    pieces = f"\n{rest}\n".split(f"\n@@{nonce} command\n")[1:]
    pids = [procfs.whole(word) for word in shown.split()]
    if len(pieces) != len(pids):
        return {}
    return {
        pid: cleaned
        for pid, piece in zip(pids, pieces, strict=True)
        if pid is not None and (cleaned := printable(" ".join(piece.split()), 512))
    }


def _logins(parts: Mapping[str, Part]) -> tuple[tuple[logins.LoginSession, ...], str | None]:
    def said(name: str) -> str | None:
        part = parts.get(name)
        return part.text if part is not None and part.status == 0 else None

    names = procfs.parse_names(_text(parts, "names"))
    return logins.merge(loginctl=said("loginctl"), who=said("who"), pts=said("pts"), names=names)


def _host_facts(parts: Mapping[str, Part]) -> Snapshot:
    facts = _facts(parts)
    total, used = procfs.memory_mib(_text(parts, "meminfo"))
    load = [procfs.decimal(word) for word in facts.get("loadavg", [])[:3]]
    load += [None] * (3 - len(load))
    return Snapshot(
        cpu=procfs.cpu_counters(_text(parts, "stat")),
        memory_total_mib=total,
        memory_used_mib=used,
        load_1m=load[0],
        load_5m=load[1],
        load_15m=load[2],
        disks=procfs.parse_disks(_text(parts, "disks")),
        boot_id=_word(facts, "boot_id"),
        machine_id=_word(facts, "machine_id"),
        uptime_seconds=_decimal(facts, "uptime"),
        clock_seconds=procfs.decimal(_text(parts, "clock").strip()),
        uid_min=_whole(facts, "uid_min"),
        clock_ticks_per_second=_whole(facts, "clock_ticks"),
    )


def _plain_sections(snapshot: Snapshot) -> dict[str, Section]:
    known = {
        "cpu": snapshot.cpu is not None,
        "memory": snapshot.memory_total_mib is not None,
        "load": snapshot.load_1m is not None,
        "disks": bool(snapshot.disks),
    }
    return {
        name: Section() if is_known else _unavailable("The host did not say.")
        for name, is_known in known.items()
    }


def _unavailable(reason: str) -> Section:
    return Section(SectionState.UNAVAILABLE, "no-data", reason)


def _text(parts: Mapping[str, Part], name: str) -> str:
    part = parts.get(name)
    return part.text if part is not None else ""


def _facts(parts: Mapping[str, Part]) -> Mapping[str, list[str]]:
    return procfs.parse_facts(_text(parts, "facts").split("\n"))


def _word(facts: Mapping[str, list[str]], name: str) -> str | None:
    words = facts.get(name)
    return printable(words[0], 64) if words else None


def _whole(facts: Mapping[str, list[str]], name: str) -> int | None:
    words = facts.get(name)
    return procfs.whole(words[0]) if words else None


def _decimal(facts: Mapping[str, list[str]], name: str) -> float | None:
    words = facts.get(name)
    return procfs.decimal(words[0]) if words else None
