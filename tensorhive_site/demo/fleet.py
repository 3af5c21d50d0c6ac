"""The hosts, people and goings-on of the demo: pure functions of the moment."""

from __future__ import annotations

import datetime as dt
import hashlib
import math
import uuid
from collections.abc import Iterator
from dataclasses import dataclass

SLOT = dt.timedelta(hours=6)
ADMINISTRATOR, USER, OTHER_USER = "admin", "alice", "bob"
PEOPLE = (USER, OTHER_USER, "carol", "dmitri", "emeka", "fatima")
FIRST_UID = 1100
_TITLES = (
    *("Ablation study", "Pre-training", "Fine-tuning run", "Evaluation", "Hyper-parameter sweep"),
    *("Paper deadline", "Distillation", "Data augmentation", "Protein folding", "Segmentation"),
)
_COMMANDS = (
    *("python train.py --config large.yaml", "python -m torch.distributed.run train.py"),
    *("python finetune.py --lr 3e-5", "python evaluate.py --checkpoint last.pt"),
    "python sweep.py --agent 4",
)
_NAMESPACE = uuid.UUID("0f9c7d52-6a0a-4d0e-9b3a-5f1f5a3d2b10")


@dataclass(frozen=True, slots=True)
class DemoHost:
    """One simulated machine. `mig_card` is cut into instances, `broken_gpu` is lost, and a host
    that `comes_and_goes` is away for a few minutes of every quarter of an hour.
    """

    name: str
    model: str
    memory_mib: int
    gpus: int
    power_limit: int
    mig_card: int | None = None
    broken_gpu: int | None = None
    comes_and_goes: bool = False

    def uuid(self, index: int) -> str:
        return f"GPU-{uuid.uuid5(_NAMESPACE, f'{self.name}:{index}')}"

    def instance_uuid(self, device: int) -> str:
        return f"MIG-{uuid.uuid5(_NAMESPACE, f'{self.name}:mig:{device}')}"

    def is_away(self, moment: dt.datetime) -> bool:
        return self.comes_and_goes and moment.minute % 15 >= 12


FLEET = (
    DemoHost("hive01", "NVIDIA H100 80GB HBM3", 81559, 8, 700),
    DemoHost("hive02", "NVIDIA A100-SXM4-80GB", 81920, 8, 400),
    DemoHost("hive03", "NVIDIA A100-SXM4-40GB", 40960, 4, 400, mig_card=3),
    DemoHost("hive04", "NVIDIA L40S", 46068, 4, 350, broken_gpu=2),
    DemoHost("hive05", "NVIDIA GeForce RTX 4090", 24564, 4, 450),
    DemoHost("hive06", "NVIDIA GeForce RTX 2080 Ti", 11264, 4, 250, comes_and_goes=True),
)


@dataclass(frozen=True, slots=True)
class Booking:
    """A reservation of the story: neighbouring GPUs of one host for a number of slots."""

    host: DemoHost
    gpus: tuple[int, ...]
    owner: str
    title: str
    starts_at: dt.datetime
    ends_at: dt.datetime


@dataclass(frozen=True, slots=True)
class Activity:
    """What one GPU does at one moment; `login` None: nothing runs."""

    login: str | None
    utilization: float
    memory_mib: int
    command: str = ""
    started_at: dt.datetime | None = None


def slot_of(moment: dt.datetime) -> dt.datetime:
    """When the slot of this moment began."""
    seconds = SLOT.total_seconds()
    return dt.datetime.fromtimestamp(moment.timestamp() // seconds * seconds, dt.UTC)


def bookings(host: DemoHost, slot: dt.datetime) -> Iterator[Booking]:
    """The reservations of the host that begin with this slot; each is one slot long."""
    for first in range(0, host.gpus, 2):
        chance = _chance(host.name, first, slot)
        if is_intruded(host, first):
            owner = USER
        elif chance < 0.45:
            owner = PEOPLE[int(chance * 1000) % len(PEOPLE)]
        else:
            continue
        gpus = tuple(index for index in (first, first + 1) if index != host.broken_gpu)
        title = _TITLES[int(chance * 10_000) % len(_TITLES)]
        yield Booking(host, gpus, owner, title, slot, slot + SLOT)


def is_intruded(host: DemoHost, index: int) -> bool:
    """The pair of GPUs that alice holds and bob uses all the same."""
    return host.name == "hive02" and index in (2, 3)


def activity(host: DemoHost, index: int, moment: dt.datetime) -> Activity:
    """What the GPU does: its booking's owner works there, or leaves it idle, or somebody else."""
    slot = slot_of(moment)
    first = index - index % 2
    chance = _chance(host.name, first, slot)
    mine = next((one for one in bookings(host, slot) if index in one.gpus), None)
    login: str | None
    if is_intruded(host, index):
        login = OTHER_USER if index == 3 else USER
    elif mine is not None:
        login = mine.owner if chance * 100 % 1 < 0.8 else None
    else:
        login = PEOPLE[int(chance * 500) % len(PEOPLE)] if chance > 0.85 else None
    if login is None:
        return Activity(None, 0.0, 3)
    strength = 0.35 + 0.6 * _chance("strength", host.name, index, slot)
    minutes = moment.timestamp() / 60
    wave = 0.5 + 0.5 * math.sin(minutes / (4 + index)) * math.cos(minutes / 17)
    noise = _chance("noise", host.name, index, int(moment.timestamp() // 5)) * 0.12
    utilization = min(100.0, round(100 * strength * (0.75 + 0.25 * wave) + 100 * noise, 0))
    memory = int(host.memory_mib * (0.2 + 0.7 * _chance("memory", host.name, index, slot)))
    command = _COMMANDS[int(chance * 700) % len(_COMMANDS)]
    return Activity(login, utilization, memory, command, slot + dt.timedelta(minutes=4))


def uid_of(login: str) -> int:
    return FIRST_UID + PEOPLE.index(login)


def _chance(*words: object) -> float:
    """A number in [0, 1) that is the same for the same words."""
    digest = hashlib.blake2b("|".join(map(str, words)).encode(), digest_size=6).digest()
    return int.from_bytes(digest) / (1 << 48)
