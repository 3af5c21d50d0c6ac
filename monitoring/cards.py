"""Parts of pages that repeat per host, rendered once for everybody who sees the same.

Pictures compare equal while nothing changed, so fifty viewers cost about as much as one. The zone
is part of the key because the parts show clock times; whoever calls has it activated.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from itertools import islice

from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.safestring import SafeString

from monitoring.picture import HostPicture, ProcessPicture

MAX_PROCESSES = 200  # on the dashboard; the hosts' own pages show all


def host_cards(hosts: Iterable[HostPicture]) -> list[SafeString]:
    zone = timezone.get_current_timezone_name()
    return [_host_card(host, zone) for host in hosts]


def process_rows(hosts: Iterable[HostPicture], limit: int | None = None) -> list[SafeString]:
    """Table rows host by host, at most `limit` of them."""
    zone = timezone.get_current_timezone_name()
    rows = []
    for host in hosts:
        processes = tuple(islice(host.processes, limit))
        if processes:
            rows.append(_process_rows(processes, host.is_stale, zone))
        if limit is not None and (limit := limit - len(processes)) <= 0:
            break
    return rows


@lru_cache(maxsize=1024)
def _host_card(host: HostPicture, zone: str) -> SafeString:
    return render_to_string("monitoring/_host_card.html", {"host": host})


@lru_cache(maxsize=1024)
def _process_rows(processes: tuple[ProcessPicture, ...], is_stale: bool, zone: str) -> SafeString:
    return render_to_string(
        "monitoring/_process_rows.html", {"processes": processes, "is_stale": is_stale}
    )
