"""What others may ask of the watch."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

from monitoring.models import Host


def make_due(host_ids: Sequence[int], at: dt.datetime) -> None:
    """Have these hosts looked at again at the given moment, if not earlier anyway."""
    if host_ids:
        Host.objects.filter(pk__in=host_ids).update(probe_requested_at=at)
