"""How pages write numbers, moments and GPUs."""

from __future__ import annotations

import datetime as dt

from django import template
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from monitoring import wording
from monitoring.picture import GpuPicture, Usage

register = template.Library()


def _unknown(value: float | str | None) -> float | None:
    """None also for what a template makes of an attribute of None: an empty string."""
    return None if value is None or isinstance(value, str) else value


@register.filter
def amount(value: float | str | None, unit: str = "") -> str:
    return wording.amount(_unknown(value), unit)


@register.filter
def gibibytes(mib: float | str | None) -> str:
    return wording.gibibytes(_unknown(mib))


@register.filter
def used_of(used: float | str | None, total: float | None) -> str:
    return wording.used_of(_unknown(used), total)


register.filter("duration", wording.duration)
register.filter("reserved_by", wording.reserved_by)
register.filter("gpu_label", wording.gpu_label)
register.filter("moment", wording.moment)


@register.filter
def share(used: float | str | None, total: float | None) -> int | None:
    """`used` of `total` in whole percent; None when either is unknown."""
    known = _unknown(used)
    return round(100 * known / total) if known is not None and total else None


@register.filter
def heat(gpu: GpuPicture) -> str:
    """The class of a cell: what it does, and its utilisation in steps of ten."""
    classes = ["cell", gpu.usage.value]
    if gpu.reservation:
        classes.append("mine" if gpu.is_mine else "theirs")
    if gpu.usage == Usage.UNKNOWN:
        return " ".join(classes)
    if gpu.sample and gpu.sample.utilization_percent is not None:
        classes.append(f"heat-{round(gpu.sample.utilization_percent / 10)}")
    if gpu.is_hot:
        classes.append("hot")
    return " ".join(classes)


@register.simple_tag
def age(at: dt.datetime | None, form: str = "ago") -> SafeString:
    """A moment that the page shows as its age and keeps ticking; the clock time without scripts.

    form "ago": `3 s ago`; "for": `3 s`.
    """
    if at is None:
        return SafeString("never" if form == "ago" else wording.UNKNOWN)
    local = timezone.localtime(at)
    return format_html(
        '<time class="age" datetime="{}" data-age="{}" title="{}">{}</time>',
        at.astimezone(dt.UTC).isoformat(),
        form,
        f"{local:%Y-%m-%d %H:%M:%S %Z}",
        wording.moment(at) if form == "for" else f"{local:%H:%M:%S}",
    )
