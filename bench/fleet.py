"""Hosts for benchmarks: the lab's, with 8 GPUs and 16 processes each."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from monitoring import ssh
from tests.lab import Lab, LabHost

GPUS, PROCESSES = 8, 16


@contextmanager
def fleet(hosts: int) -> Iterator[Lab]:
    """A lab of so many hosts, each GPU with two running processes."""
    with Lab(hosts=hosts, gpus=GPUS, log_level="INFO") as lab:
        for host in lab:
            for number in range(PROCESSES):
                host.start_process(
                    user=lab.users[number % len(lab.users)], gpu=number % GPUS, memory_mib=1000
                )
            # A real pmon measures for a second; everything else answers at once.
            host.smi.delay(1, only="pmon")
        yield lab


def observing(lab: Lab, host: LabHost) -> ssh.Target:
    """The way in for the observing account."""
    return ssh.Target(
        ssh.Address(host.address, host.port, lab.observer),
        tuple(" ".join(line.split()[:2]) for line in host.public_keys),
        Path(lab.observing_key),
    )
