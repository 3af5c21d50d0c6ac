"""From one look at a host to its state and the next look: pure decisions.

One failed look changes nothing yet; the second in a row makes a host unreachable. What concerns
keys and login is said at once, since waiting does not mend it.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from monitoring.models import Gpu, Host
from monitoring.probe import BrokenAnswer
from monitoring.snapshot import GpuReading, LostGpu, SectionState, Snapshot
from monitoring.ssh import Result, Status

State = Host.State
FAILURES_TO_UNREACHABLE = 2
_AT_ONCE = {
    Status.HOSTKEY_UNKNOWN: State.KEY_UNKNOWN,
    Status.HOSTKEY_CHANGED: State.KEY_CHANGED,
    Status.AUTH: State.AUTH_FAILED,
}
# Whoever floods us with an answer is there; only nothing of it can be used.
_THERE = frozenset({Status.TOO_BIG})
_ESSENTIAL = ("gpus", "processes", "owners")
SLOW_SECONDS = 2.0
LONGEST_STUCK_DELAY = dt.timedelta(minutes=20)  # 15 and the spread
_MAX_INTERVAL = 60.0


@dataclass(frozen=True, slots=True)
class Verdict:
    """The state a host gets, its sentence, and how many looks in a row have failed.

    `state` None: it keeps what it has. `is_good`: the answer's values may be stored.
    """

    state: State | None
    reason: str
    failures: int
    is_good: bool = False


@dataclass(frozen=True, slots=True)
class GpuVerdict:
    state: Gpu.State
    reason: str = ""


@dataclass(frozen=True, slots=True)
class LeftAlone:
    """nvidia-smi hung on a host so many times in a row, and is not started there until then."""

    times: int
    until: dt.datetime


def judge(
    result: Result, answer: Snapshot | BrokenAnswer | None, *, earlier_failures: int
) -> Verdict:
    """What one look means for the host."""
    if result.status in _AT_ONCE:
        return Verdict(_AT_ONCE[result.status], result.reason, earlier_failures + 1)
    if not result.ok or answer is None:
        state = State.PARTIAL if result.status in _THERE else State.UNREACHABLE
        return _failed(state, result.reason, earlier_failures)
    if isinstance(answer, BrokenAnswer):
        return _failed(State.PARTIAL, answer.reason, earlier_failures)
    if answer.host_fault:
        return Verdict(State(answer.host_fault), answer.reason or "", 0, is_good=True)
    return _judged_by_sections(answer)


def judge_gpu(reading: GpuReading) -> GpuVerdict:
    """The state of a GPU that the driver described."""
    if reading.needs_reset:
        return GpuVerdict(Gpu.State.PARTIAL, "It needs a reset; its numbers mean nothing.")
    broken = sorted(
        name for name, why in reading.absent.items() if why in ("unknown-error", "unreadable")
    )
    if broken:
        return GpuVerdict(Gpu.State.PARTIAL, f"The driver cannot read: {', '.join(broken)}.")
    return GpuVerdict(Gpu.State.OK)


def judge_missing_gpu(*, bus_id: str, answer: Snapshot, lost: Iterable[LostGpu]) -> GpuVerdict:
    """The state of a known GPU that the answer does not describe."""
    for one in lost:
        if one.bus_id and bus_id and _same_slot(one.bus_id, bus_id):
            return GpuVerdict(Gpu.State.LOST, f"The driver cannot reach it: {one.reason}.")
    section = answer.sections.get("gpus")
    if section is not None and section.state in (SectionState.OK, SectionState.PARTIAL):
        return GpuVerdict(Gpu.State.LOST, "The driver does not list it any more.")
    reason = (section.reason if section else None) or "The host said nothing about its GPUs."
    return GpuVerdict(Gpu.State.UNKNOWN, reason)


def connection_delay(failures: int, *, interval: float, chance: float) -> float:
    """Seconds to the next try after so many failures: 5 to 60, spread by a chance in [0, 1)."""
    delay = interval if failures == 0 else min(5.0 * 2 ** min(failures - 1, 10), 60.0)
    return delay * (0.85 + 0.3 * chance) if failures else delay


def stuck_delay(times: int, *, chance: float) -> float:
    """Seconds that a hanging nvidia-smi is left alone: 1, 2, 4 … 15 minutes, spread."""
    return min(60.0 * 2 ** max(min(times, 10) - 1, 0), 900.0) * (0.9 + 0.2 * chance)


def disputed(owner: str, claimant: str) -> GpuVerdict:
    """Two hosts show one GPU: it stays where it is, and nothing is concluded from it."""
    return GpuVerdict(
        Gpu.State.PARTIAL,
        f"{owner} and {claimant} both claim this GPU; an administrator must look.",
    )


def interval_for(elapsed: Iterable[float], *, normal: float) -> float | None:
    """A longer interval for a host whose answers are all slow; None for the normal one.

    Each call of nvidia-smi brings a card up and down where persistence mode is off.
    """
    quickest = min(elapsed, default=0.0)
    return min(max(10 * quickest, normal), _MAX_INTERVAL) if quickest > SLOW_SECONDS else None


def is_stuck(sections: Mapping[str, object]) -> bool:
    """Whether nvidia-smi hung in this round."""
    gpus = sections.get("gpus")
    return getattr(gpus, "fault", None) in ("timeout", "still-running")


def _failed(state: State, reason: str, earlier: int) -> Verdict:
    failures = earlier + 1
    return Verdict(state if failures >= FAILURES_TO_UNREACHABLE else None, reason, failures)


def _judged_by_sections(answer: Snapshot) -> Verdict:
    for one in answer.lost_gpus:
        where = one.bus_id if one.index is None else f"GPU {one.index}"
        return Verdict(State.PARTIAL, f"{where} cannot be reached: {one.reason}.", 0, is_good=True)
    broken = (SectionState.ERROR, SectionState.PARTIAL)
    for name, section in answer.sections.items():
        missing = section.state is SectionState.UNAVAILABLE and name in _ESSENTIAL
        if section.state in broken or missing:
            return Verdict(State.PARTIAL, section.reason or f"No {name}.", 0, is_good=True)
    for reading in answer.gpus:
        verdict = judge_gpu(reading)
        if verdict.state is not Gpu.State.OK:
            reason = f"GPU {reading.index}: {verdict.reason}"
            return Verdict(State.PARTIAL, reason, 0, is_good=True)
    return Verdict(State.OK, "", 0, is_good=True)


def _same_slot(one: str, other: str) -> bool:
    """The same PCI address, whether its domain is written with four digits or eight."""
    return one.lower().lstrip("0:") == other.lower().lstrip("0:")
