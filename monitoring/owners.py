"""Whose a process is, and how sure that is: pure."""

from __future__ import annotations

from monitoring.snapshot import ProcessReading

CERTAIN, LIKELY, UNKNOWN = "certain", "likely", "unknown"


def confidence(process: ProcessReading) -> str:
    """How sure the login of the process is its person.

    In a container the uid is the image's, not the person's, so it tells nothing by itself.
    """
    if process.uid is None or process.login is None or process.start_ticks is None:
        return UNKNOWN
    return UNKNOWN if process.container_id is not None else CERTAIN
