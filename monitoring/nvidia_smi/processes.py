"""Processes on GPUs: `--query-compute-apps` and `pmon -c 1`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from monitoring.nvidia_smi import cells
from monitoring.nvidia_smi.faults import Fault, classify
from monitoring.nvidia_smi.query import section_of
from monitoring.snapshot import ProcessReading, Section, SectionState

MAX_PROCESSES = 4096
_APP_NAMES = {
    "gpu_uuid": "gpu_uuid",
    "pid": "pid",
    "process_name": "name",
    "name": "name",
    "used_memory": "memory",
    "used_gpu_memory": "memory",
}
APPS_FIELDS = ("gpu_uuid", "pid", "used_memory", "process_name")


@dataclass(frozen=True, slots=True)
class PmonRow:
    """One row of pmon; a dash is None, not 0. Names are cut to 15 characters there."""

    gpu_index: int
    pid: int
    kind: str | None
    name: str | None
    sm_percent: float | None
    memory_utilization_percent: float | None
    memory_used_mib: int | None


@dataclass(frozen=True, slots=True)
class ProcessAnswer:
    """Processes of one answer. `absent` maps a row's number to its missing fields' reasons.

    `is_listing_supported` is False when a card says that it cannot list processes.
    """

    processes: tuple[ProcessReading, ...] = ()
    rows: tuple[PmonRow, ...] = ()
    absent: tuple[dict[str, str], ...] = ()
    section: Section = field(default_factory=Section)
    is_listing_supported: bool = True
    fault: Fault | None = None


def parse_compute_apps(
    text: str, status: int | None = 0, *, fields: Sequence[str] | None = APPS_FIELDS
) -> ProcessAnswer:
    """Read the rows. `fields` are those asked for; None: the header names them.

    The name may hold commas and quotes that nobody escaped, so cells are taken from both ends.
    """
    lines = cells.lines_of(text)
    if fields is None:
        fields = [cell.split(" [")[0] for cell in cells.split_row(lines[0])] if lines else []
        lines = lines[1:]
    rows = [row for line in lines[: 2 * MAX_PROCESSES] if (row := _named(line, fields))]
    answers = [_process(row) for row in rows if cells.process_id(row.get("pid", ""))]
    refused = [why for row in rows if (why := _refusal(row))]
    found = None if rows else classify(text, status)
    if status and not rows and found is None:
        found = Fault("no-data", f"nvidia-smi ended with status {status}.")
    return ProcessAnswer(
        processes=tuple(process for process, _ in answers[:MAX_PROCESSES]),
        absent=tuple(absent for _, absent in answers[:MAX_PROCESSES]),
        section=_refused_section(refused, has_others=bool(answers))
        or _late_section(found, status, has_rows=bool(rows)),
        is_listing_supported=not refused,
        fault=found,
    )


def parse_pmon(text: str, status: int | None = 0) -> ProcessAnswer:
    """Read pmon's table by the words of its header; the name is last and may hold blanks."""
    names: list[str] = []
    rows: list[PmonRow] = []
    for line in text.split("\n"):
        if line.lstrip().startswith("#"):
            words = line.replace("#", " ", 1).split()
            names = words if "pid" in words else names
        elif names and (row := _pmon_row(dict(zip(names, line.split(None, len(names) - 1))))):  # noqa: B905
            rows.append(row)
    found = None if names else classify(text, status)
    return ProcessAnswer(
        rows=tuple(rows[:MAX_PROCESSES]), section=section_of(found, has_rows=False), fault=found
    )


def _refused_section(refused: list[str], *, has_others: bool) -> Section | None:
    """Some card does not list processes; what others list is as good as ever.

    A small card for the display must not end the watch over its neighbours; a missing right may
    hide processes on all of them.
    """
    if not refused:
        return None
    if not has_others:
        state, why = SectionState.UNAVAILABLE, refused[0]
    elif harmful := [why for why in refused if why not in ("na", "not-supported")]:
        state, why = SectionState.PARTIAL, harmful[0]
    else:
        state, why = SectionState.OK, refused[0]
    return Section(state, why, "A card of this host does not list its processes.")


def _late_section(found: Fault | None, status: int | None, *, has_rows: bool) -> Section:
    """Rows that came before the time ran out are not all of them."""
    if has_rows and status not in (0, None):
        late = classify("", status)
        reason = late.sentence if late else f"nvidia-smi ended with status {status}."
        return Section(SectionState.PARTIAL, late.kind if late else "no-data", reason)
    return section_of(found, has_rows=has_rows)


def _named(line: str, fields: Sequence[str]) -> dict[str, str] | None:
    """The cells by our names; None for a line that is no row."""
    row = cells.split_row(line)
    name_at = next((i for i, name in enumerate(fields) if _APP_NAMES.get(name) == "name"), None)
    surplus = len(row) - len(fields)
    if name_at is not None and surplus > 0:
        pieces = line.split(",")
        middle = ",".join(pieces[name_at : name_at + surplus + 1]).strip()
        row = [*row[:name_at], middle, *row[name_at + surplus + 1 :]]
    if len(row) != len(fields):
        return None
    named = {_APP_NAMES.get(name, name): cell for name, cell in zip(fields, row, strict=True)}
    uuid = named.get("gpu_uuid")
    if uuid is not None and not cells.is_uuid(uuid):
        return None
    pid = named.get("pid", "")
    return named if cells.process_id(pid) or cells.absence(pid) else None


def _refusal(row: dict[str, str]) -> str | None:
    return cells.absence(row.get("pid", "0"))


def _process(row: dict[str, str]) -> tuple[ProcessReading, dict[str, str]]:
    absent = {}
    if reason := cells.absence(row.get("name", "-")):
        absent["name"] = reason
    if reason := cells.absence(row.get("memory", "-")):
        absent["memory_used_mib"] = reason
    name = row.get("name")
    reading = ProcessReading(
        gpu_uuid=row.get("gpu_uuid"),
        pid=cells.process_id(row["pid"]) or 0,
        memory_used_mib=cells.integer(row.get("memory", "")),
        name=None if name is None or "name" in absent else cells.clean(name, 200),
    )
    return reading, absent


def _pmon_row(row: dict[str, str]) -> PmonRow | None:
    index, pid = cells.integer(row.get("gpu", "")), cells.process_id(row.get("pid", ""))
    if index is None or pid is None:
        return None  # a row of dashes: no process on this GPU
    name = row.get("command", "-").strip()
    kind = row.get("type", "-")
    return PmonRow(
        gpu_index=index,
        pid=pid,
        kind=kind if kind in ("C", "G", "C+G") else None,
        name=None if name == "-" else cells.clean(name, 64),
        sm_percent=cells.number(row.get("sm", "-")),
        memory_utilization_percent=cells.number(row.get("mem", "-")),
        memory_used_mib=cells.integer(row.get("fb", "-")),
    )
