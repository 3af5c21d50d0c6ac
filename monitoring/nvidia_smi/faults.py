"""What went wrong, from what nvidia-smi said and its exit status; statuses as in its manual."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from monitoring.naming import printable
from monitoring.snapshot import LostGpu

_LOST = re.compile(
    r"device handle for GPU\s?(?P<index>\d{1,3}(?=:\s))?:?\s*(?P<bus>[0-9A-Fa-f:.]{5,24}):"
    r"\s*(?P<reason>[^.\r\n]{1,80})",
    re.ASCII,
)
_FIELD = re.compile(r'Field "([^"\n]{1,60})" is not a valid field')
_NVML_VERSION = re.compile(r"NVML library version:\s*([0-9.]{1,20})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Fault:
    """`kind` is a token; `detail` is a field or version where one is named."""

    kind: str
    sentence: str
    detail: str | None = None


_SENTENCES = {
    "timeout": "nvidia-smi did not answer in time: the driver hangs.",
    "still-running": "An earlier nvidia-smi still hangs on this host; no other one was started.",
    "left-out": "nvidia-smi was left out this time, because it hung before.",
    "no-place": "The observing account has no private directory for the probe's files.",
    "cut": "There was too much; the answer was cut off.",
    "field-invalid": "The driver does not know a field that was asked for.",
    "gpu-lost": "A GPU cannot be reached by the driver.",
    "library-missing": "The NVIDIA library is missing: the driver is not completely installed.",
    "mismatch": "Driver and library have different versions: the host needs a reboot.",
    "needs-reset": "A GPU needs a reset; its numbers mean nothing.",
    "no-devices": "The driver sees no GPU.",
    "no-driver": "The NVIDIA driver is not running.",
    "blocked-by-os": "The operating system blocks access to the GPUs.",
    "nvml-init": "The NVIDIA library cannot start.",
    "not-installed": "nvidia-smi is not installed.",
    "pmon-unsupported": "The card cannot list its processes this way.",
    "access-denied": "The host lets nobody in who has no running job there.",
    "infirm": "The card's infoROM is corrupted.",
    "insufficient-permissions": "The driver does not let this account see it.",
    "mig-unnamed": "A MIG instance has no name yet; what runs there is shown on its card.",
    "no-data": "nvidia-smi gave no answer that can be read.",
}
# The first that is found decides; more special ones stand first.
_WORDS = (
    ("mismatch", re.compile(r"version mismatch|Mismatch in versions", re.IGNORECASE)),
    ("blocked-by-os", re.compile(r"blocked by the operating system", re.IGNORECASE)),
    (
        "library-missing",
        re.compile(r"couldn't find libnvidia-ml|libnvidia-ml\S{0,40} .{0,80}not found"),
    ),
    ("no-driver", re.compile(r"couldn't communicate with the NVIDIA driver", re.IGNORECASE)),
    ("no-devices", re.compile(r"No devices were found|No supported GPUs", re.IGNORECASE)),
    ("nvml-init", re.compile(r"Failed to initialize NVML", re.IGNORECASE)),
    ("field-invalid", _FIELD),
    ("gpu-lost", re.compile(r"device handle for GPU|GPU is lost", re.IGNORECASE)),
    ("pmon-unsupported", re.compile(r"Not supported on the device", re.IGNORECASE)),
    ("access-denied", re.compile(r"Access denied by|no active jobs", re.IGNORECASE)),
    (
        "not-installed",
        re.compile(
            r"nvidia-smi\S*: (?:command )?not found|command not found: nvidia-smi"
            r"|failed to run command .nvidia-smi|.nvidia-smi. is not recognized",
            re.IGNORECASE,
        ),
    ),
)
_STATUSES = {
    69: "left-out",
    73: "no-place",
    75: "still-running",
    76: "cut",
    9: "no-driver",
    12: "library-missing",
    15: "gpu-lost",
    18: "mismatch",
    124: "timeout",
    127: "not-installed",
    137: "timeout",
}


def classify(text: str, status: int | None) -> Fault | None:
    """The fault that the text or the status tells of; None when neither tells of any."""
    for kind, words in _WORDS:
        if found := words.search(text):
            return Fault(kind, _SENTENCES[kind], _detail(kind, found, text))
    kind = _STATUSES.get(status or 0, "")
    return Fault(kind, _SENTENCES[kind]) if kind else None


def fault(kind: str) -> Fault:
    """A fault that was found otherwise than by words."""
    return Fault(kind, _SENTENCES[kind])


def lost_gpus(lines: Iterable[str]) -> tuple[LostGpu, ...]:
    """Cards that the driver names but cannot reach, from its sentences about them."""
    return tuple(
        LostGpu(
            index=int(found["index"]) if found["index"] else None,
            bus_id=found["bus"],
            reason=printable(found["reason"].strip(), 80),
        )
        for line in lines
        if (found := _LOST.search(line))
    )


def _detail(kind: str, found: re.Match[str], text: str) -> str | None:
    if kind == "field-invalid":
        return printable(found[1], 60)
    if kind == "mismatch" and (version := _NVML_VERSION.search(text)):
        return version[1]
    return None
