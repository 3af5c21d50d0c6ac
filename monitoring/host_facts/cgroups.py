"""Which container, job or login a process belongs to, from its path in /proc/PID/cgroup."""

from __future__ import annotations

import re
from dataclasses import dataclass

_CONTAINER = (
    ("docker", re.compile(r"(?:docker-|/docker/)([0-9a-f]{64})")),
    ("containerd", re.compile(r"cri-containerd[-:]([0-9a-f]{64})")),
    ("crio", re.compile(r"crio-([0-9a-f]{64})")),
    ("podman", re.compile(r"libpod-([0-9a-f]{64})")),
)
# Kubernetes with the cgroupfs driver writes no runtime beside the id.
_BARE_ID = re.compile(r"/([0-9a-f]{64})(?![0-9a-f])")
_POD = re.compile(r"pod([0-9a-f]{8}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{12})")
_USER = re.compile(r"user-(\d{1,10})\.slice", re.ASCII)
_SLURM = re.compile(r"/job_(\d{1,12})(?:/|$)", re.ASCII | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Belonging:
    """What the path tells; all None for a plain system service."""

    container_id: str | None = None
    runtime: str | None = None
    pod: str | None = None
    uid: int | None = None  # of the login session
    slurm_job: int | None = None


def parse_cgroup(text: str) -> Belonging:
    """Read one or several lines of /proc/PID/cgroup (version 1 or 2)."""
    runtime, container = None, None
    for name, pattern in _CONTAINER:
        if found := pattern.search(text):
            runtime, container = name, found[1]
            break
    if container is None and "kubepods" in text and (found := _BARE_ID.search(text)):
        runtime, container = "containerd", found[1]
    pod, user, job = _POD.search(text), _USER.search(text), _SLURM.search(text)
    return Belonging(
        container_id=container,
        runtime=runtime,
        pod=pod[1].replace("_", "-") if pod else None,
        uid=int(user[1]) if user else None,
        slurm_job=int(job[1]) if job else None,
    )
