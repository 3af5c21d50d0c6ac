"""Files of /proc and the output of ps and df, as plain values; sources: proc(5), ps(1), df(1)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from monitoring.naming import printable
from monitoring.snapshot import CpuCounters, Disk

_CPU_FIELDS = (
    *("user", "nice", "system", "idle", "iowait"),
    *("irq", "softirq", "steal", "guest", "guest_nice"),
)
_MEMINFO = re.compile(r"^(\w+):\s+(\d{1,18}) kB", re.ASCII | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ProcessStat:
    """/proc/PID/stat: the name may hold anything, so it ends at the last bracket."""

    pid: int
    name: str
    state: str
    parent: int
    start_ticks: int


@dataclass(frozen=True, slots=True)
class PsRow:
    """One row of ps; a user name that ps cut ends with "+"."""

    pid: int
    user: str
    uid: int | None = None

    @property
    def is_user_cut(self) -> bool:
        return self.user.endswith("+")


def whole(text: str) -> int | None:
    """A non-negative whole number of up to 18 digits; None for anything else."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else None


def decimal(text: str) -> float | None:
    """A plain decimal number; None for anything else."""
    return float(text) if re.fullmatch(r"\d{1,15}(\.\d{1,9})?", text, re.ASCII) else None


def parse_cpu(text: str) -> tuple[dict[str, int], int | None, int | None]:
    """/proc/stat: counters of the line `cpu`, the number of cores, and the boot time.

    Cores come from the lines cpu0 …, or from a line `cores N`.
    """
    counters: dict[str, int] = {}
    cores, boot_time = 0, None
    for line in text.split("\n"):
        words = line.split()
        if not words:
            continue
        numbers = [whole(word) for word in words[1:11]]
        if words[0] == "cpu":
            counters = {
                name: value
                for name, value in zip(_CPU_FIELDS, numbers, strict=False)
                if value is not None
            }
        elif re.fullmatch(r"cpu\d{1,5}", words[0], re.ASCII):
            cores += 1
        elif words[0] == "cores" and numbers:
            cores = numbers[0] or 0
        elif words[0] == "btime" and numbers:
            boot_time = numbers[0]
    return counters, cores or None, boot_time


def cpu_counters(text: str) -> CpuCounters | None:
    """Busy and idle ticks; waiting for a disk counts as idle, guests are in user already."""
    counters, cores, _ = parse_cpu(text)
    if "idle" not in counters:
        return None
    idle = counters["idle"] + counters.get("iowait", 0)
    guests = counters.get("guest", 0) + counters.get("guest_nice", 0)
    return CpuCounters(max(sum(counters.values()) - idle - guests, 0), idle, cores)


def parse_meminfo(text: str) -> dict[str, int]:
    """/proc/meminfo: name -> KiB."""
    return {name: int(value) for name, value in _MEMINFO.findall(text)}


def memory_mib(text: str) -> tuple[int | None, int | None]:
    """Total and used memory in MiB; used is what is not available, as free(1) has it now."""
    values = parse_meminfo(text)
    total = values.get("MemTotal")
    if total is None:
        return None, None
    available = values.get("MemAvailable")
    if available is None and "MemFree" in values:  # kernels before 3.14
        available = values["MemFree"] + values.get("Buffers", 0) + values.get("Cached", 0)
    used = None if available is None else max(total - available, 0) // 1024
    return total // 1024, used


def parse_disks(text: str) -> tuple[Disk, ...]:
    """`df -Pk`: the same file system once, under its mount point."""
    found: dict[str, Disk] = {}
    for line in text.split("\n"):
        # The device may hold blanks, the mount point too: the numbers stand in between.
        match = re.search(
            r"\s(\d{1,18})\s+(\d{1,18})\s+\d{1,18}\s+\d{1,4}%\s+(/.*)$", line, re.ASCII
        )
        if match:
            path = printable(match[3].strip(), 120)
            found[path] = Disk(path, int(match[1]) // 1024, int(match[2]) // 1024)
    return tuple(found.values())[:32]


def parse_process_stat(text: str) -> ProcessStat | None:
    """One /proc/PID/stat, with whatever the program's name holds."""
    begin, end = text.find("("), text.rfind(")")
    if begin < 0 or end < begin:
        return None
    pid, rest = whole(text[:begin].strip()), text[end + 1 :].split()
    if pid is None or len(rest) < 20:
        return None
    parent, ticks = whole(rest[1]), whole(rest[19])
    if parent is None or ticks is None:
        return None
    return ProcessStat(pid, text[begin + 1 : end], rest[0][:1], parent, ticks)


def parse_ps(text: str) -> list[PsRow]:
    """`ps aux` by its header, or rows "pid uid user" without one."""
    rows: list[PsRow] = []
    names: list[str] = []
    for line in text.split("\n"):
        words = line.split()
        if "PID" in words and ("USER" in words or "UID" in words):
            names = words
        elif names:
            named = dict(zip(names, words, strict=False))
            pid = whole(named.get("PID", ""))
            if pid is not None:
                rows.append(PsRow(pid, printable(named.get("USER", ""), 64)))
        elif len(words) == 3 and (pid := whole(words[0])) is not None:
            rows.append(PsRow(pid, printable(words[2], 64), whole(words[1])))
    return rows


def parse_names(text: str) -> dict[int, str]:
    """Lines "uid login" -> {uid: login}; the first name of a uid counts.

    A login is compared with others, so one that would have to be mended to be shown is none.
    """
    names: dict[int, str] = {}
    for line in text.split("\n"):
        words = line.split()
        uid = whole(words[0]) if len(words) == 2 else None
        if uid is not None and printable(words[1], 64) == words[1]:
            names.setdefault(uid, words[1])
    return names


def parse_facts(lines: Iterable[str]) -> Mapping[str, list[str]]:
    """Lines "name value …" -> {name: values}; the first of a name counts."""
    facts: dict[str, list[str]] = {}
    for line in lines:
        words = line.split()
        if len(words) > 1:
            facts.setdefault(words[0], words[1:])
    return facts
