"""Numbers and GPUs in words, the same in every page. Unknown is a dash."""

from __future__ import annotations

import datetime as dt

from django.utils import timezone

from monitoring.picture import Booking, GpuPicture

UNKNOWN = "–"


def amount(value: float | None, unit: str = "", digits: int = 0) -> str:
    """`12 %`; a dash for None."""
    if value is None:
        return UNKNOWN
    return f"{value:.{digits}f} {unit}".rstrip()


def gibibytes(mib: float | None) -> str:
    """MiB as GiB without the unit: one digit after the point below 100."""
    if mib is None:
        return UNKNOWN
    gib = mib / 1024
    return f"{gib:.0f}" if gib >= 100 or gib == int(gib) else f"{gib:.1f}"


def used_of(used: float | None, total: float | None) -> str:
    """`12.1 of 40 GiB`."""
    return f"{gibibytes(used)} of {gibibytes(total)} GiB"


def duration(seconds: float | None) -> str:
    """`9 d 23 h`, `2 h 5 min`, `5 min` or `3 s`."""
    if seconds is None:
        return UNKNOWN
    minutes, hours, days = int(seconds // 60), int(seconds // 3600), int(seconds // 86400)
    if days:
        return f"{days} d {hours % 24} h"
    if hours:
        return f"{hours} h {minutes % 60} min"
    return f"{minutes} min" if minutes else f"{int(seconds)} s"


def moment(at: dt.datetime) -> str:
    """`1 Dec 14:02` in the reader's zone."""
    local = timezone.localtime(at)
    return f"{local.day} {local:%b %H:%M}"


def reserved_by(booking: Booking) -> str:
    who = "you" if booking.is_mine else booking.owner
    return f"reserved by {who} until {moment(booking.ends_at)}"


def gpu_label(gpu: GpuPicture) -> str:
    """All that a cell of the heat map stands for, in one sentence for ears and tooltips."""
    parts = [f"GPU {UNKNOWN if gpu.index is None else gpu.index} of {gpu.host}, {gpu.name}"]
    if gpu.state in ("unknown", "lost"):
        parts.append(f"{gpu.state}: {gpu.reason or 'no answer'}")
    elif gpu.sample:
        parts += [
            f"{amount(gpu.sample.utilization_percent, '%')} used",
            f"memory {used_of(gpu.sample.memory_used_mib, gpu.memory_total_mib)}",
            amount(gpu.sample.temperature_celsius, "°C") + (", hot" if gpu.is_hot else ""),
        ]
    if gpu.reservation:
        parts.append(reserved_by(gpu.reservation))
    if count := len(gpu.processes):
        parts.append(f"{count} process{'es' if count > 1 else ''}")
    return "; ".join(parts)
