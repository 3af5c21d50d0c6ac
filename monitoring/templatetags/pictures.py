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

register.filter("amount", wording.amount)
register.filter("gibibytes", wording.gibibytes)
register.filter("duration", wording.duration)
register.filter("used_of", wording.used_of)
register.filter("reserved_by", wording.reserved_by)
register.filter("gpu_label", wording.gpu_label)
register.filter("moment", wording.moment)


@register.filter
def share(used: float | None, total: float | None) -> int | None:
    """`used` of `total` in whole percent; None when either is unknown."""
    if used is None or not total:
        return None
    return round(100 * used / total)


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
