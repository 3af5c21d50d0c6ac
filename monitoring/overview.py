"""Draws the pictures of hosts and GPUs from rows: one place for the pages and the API.

A fixed number of queries, however many hosts and GPUs there are.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

from django.db.models import QuerySet
from django.http import HttpRequest
from rest_framework.request import Request

from monitoring import hooks
from monitoring.drawing import Known, Viewer, gpu_pictures, host_picture
from monitoring.models import Gpu, Host, HostSnapshot
from monitoring.picture import GpuPicture, HostPicture, Usage


class Person(Protocol):
    """What this app needs to know of the signed-in person."""

    @property
    def is_administrator(self) -> bool: ...
    def get_username(self) -> str: ...
    def visible_hosts(self) -> QuerySet[Host]: ...
    def visible_gpus(self) -> QuerySet[Gpu]: ...


def person_of(request: HttpRequest | Request) -> Person:
    """The signed-in person; the view or permission has seen to it that there is one."""
    return cast(Person, request.user)


@dataclass(frozen=True, slots=True)
class Summary:
    """The GPUs counted by what they do (they add up to `gpus`), and the hosts that answer."""

    gpus: int
    free: int
    reserved: int
    busy: int
    unknown: int
    hosts: int
    answering: int


def describe_hosts(
    hosts: Sequence[Host], *, user: Person, now: dt.datetime
) -> tuple[HostPicture, ...]:
    """The hosts in the given order, each with the GPUs that the person may see."""
    by_host: dict[int, list[Gpu]] = {host.pk: [] for host in hosts}
    for gpu in user.visible_gpus().filter(host__in=by_host).order_by("index", "pk"):
        by_host[gpu.host_id].append(gpu)
    known = _what_is_known(hosts, by_host, user=user, now=now)
    return tuple(host_picture(known[host.pk], by_host[host.pk]) for host in hosts)


def describe_gpus(gpus: Sequence[Gpu], *, user: Person, now: dt.datetime) -> list[GpuPicture]:
    """The GPUs in the given order; each must come with its host (`select_related("host")`)."""
    hosts = {gpu.host_id: gpu.host for gpu in gpus}
    by_host: dict[int, list[Gpu]] = {pk: [] for pk in hosts}
    for gpu in gpus:
        by_host[gpu.host_id].append(gpu)
    known = _what_is_known(list(hosts.values()), by_host, user=user, now=now)
    pictures = {
        picture.id: picture
        for pk, own in by_host.items()
        for picture in gpu_pictures(known[pk], own)
    }
    return [pictures[gpu.pk] for gpu in gpus]


def summary_of(hosts: Iterable[HostPicture]) -> Summary:
    hosts = tuple(hosts)
    usage = Counter(gpu.usage for host in hosts for gpu in host.gpus)
    return Summary(
        gpus=usage.total(),
        free=usage[Usage.FREE],
        reserved=usage[Usage.RESERVED],
        busy=usage[Usage.BUSY],
        unknown=usage[Usage.UNKNOWN],
        hosts=len(hosts),
        answering=sum(host.is_answering for host in hosts),
    )


def _what_is_known(
    hosts: Sequence[Host], gpus: Mapping[int, Sequence[Gpu]], *, user: Person, now: dt.datetime
) -> dict[int, Known]:
    """By host: its last answer, and what the apps to the right know of its GPUs and logins."""
    snapshots = {
        snapshot.host_id: snapshot
        for snapshot in HostSnapshot.objects.filter(host__in=gpus).defer("previous_data")
    }
    contexts = _contexts(user, [gpu for own in gpus.values() for gpu in own], now)
    people = _people(snapshots.values())
    viewer = Viewer(user.get_username(), user.is_administrator)

    def known(host: Host) -> Known:
        snapshot = snapshots.get(host.pk)
        taken_at, data = (snapshot.taken_at, snapshot.data) if snapshot else (None, {})
        return Known(host, now, viewer, taken_at, data, contexts, people)

    return {host.pk: known(host) for host in hosts}


def _contexts(user: Person, gpus: Sequence[Gpu], now: dt.datetime) -> dict[str, Mapping[str, Any]]:
    merged: dict[str, dict[str, Any]] = {}
    for answer in hooks.collect("GPU_CONTEXT", user, gpus, now):
        for uuid, context in answer.items():
            merged.setdefault(uuid, {}).update(context)
    return dict(merged)


def _people(snapshots: Iterable[HostSnapshot]) -> dict[str, str]:
    logins = {
        process["login"]
        for snapshot in snapshots
        for process in snapshot.data.get("processes") or ()
        if process.get("login")
    }
    found: dict[str, str] = {}
    for answer in hooks.collect("PEOPLE_BY_LOGIN", logins):
        found.update(answer)
    return found
