"""The dashboard and the pages of hosts.

What changes on them is one fragment each: part of the page at first, then fetched every few
seconds with its ETag. Fragments hold moments instead of ages, so nothing new means 304.
"""

from __future__ import annotations

import datetime as dt

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.safestring import SafeString
from django.views.decorators.cache import never_cache

from monitoring.cards import MAX_PROCESSES, host_cards, process_rows
from monitoring.fragments import etag_of, unless_known
from monitoring.history import host_series
from monitoring.overview import describe_hosts, person_of, summary_of
from monitoring.picture import HostPicture
from monitoring.templatetags.th import module_addresses

CHART_SPAN = dt.timedelta(hours=1)


@never_cache
@login_required
def dashboard(request: HttpRequest) -> HttpResponse:
    now = timezone.now()
    part = _dashboard_part(request, now)
    context = {"part": part, "etag": etag_of(part), "now": now}
    return render(request, "monitoring/dashboard.html", context)


@login_required
def dashboard_fragment(request: HttpRequest) -> HttpResponseBase:
    return unless_known(request, HttpResponse(_dashboard_part(request, timezone.now())))


@never_cache
@login_required
def host(request: HttpRequest, name: str) -> HttpResponse:
    now = timezone.now()
    picture = _host_picture(request, name, now)
    part = _host_part(request, picture)
    context = {"host": picture, "part": part, "etag": etag_of(part), "now": now}
    return render(request, "monitoring/host.html", context)


@login_required
def host_fragment(request: HttpRequest, name: str) -> HttpResponseBase:
    picture = _host_picture(request, name, timezone.now())
    return unless_known(request, HttpResponse(_host_part(request, picture)))


@login_required
def host_chart(request: HttpRequest, name: str) -> HttpResponseBase:
    """The last hour of the host's GPUs as columns: `times` in seconds, one list per GPU."""
    person = person_of(request)
    found = person.visible_hosts().filter(name=name).first()
    if found is None:
        raise Http404
    gpus = list(person.visible_gpus().filter(host=found).order_by("index", "pk"))
    now = timezone.now()
    series = host_series(
        found,
        [gpu.uuid for gpu in gpus],
        metric="utilization_percent",
        start=now - CHART_SPAN,
        end=now,
    )
    columns = {
        "times": [point.at.timestamp() for point in series[0].points] if series else [],
        "series": [
            {"label": f"GPU {gpu.index}", "values": [point.mean for point in one.points]}
            for gpu, one in zip(gpus, series, strict=True)
        ],
    }
    return unless_known(request, JsonResponse(columns))


def _dashboard_part(request: HttpRequest, now: dt.datetime) -> SafeString:
    person = person_of(request)
    hosts = describe_hosts(list(person.visible_hosts().order_by("name")), user=person, now=now)
    processes = sum(len(host.processes) for host in hosts)
    context = {
        "summary": summary_of(hosts),
        "cards": host_cards(hosts),
        "process_rows": process_rows(hosts, MAX_PROCESSES),
        "processes": processes,
        "processes_left_out": max(processes - MAX_PROCESSES, 0),
    }
    return render_to_string("monitoring/_dashboard.html", context, request)


def _host_picture(request: HttpRequest, name: str, now: dt.datetime) -> HostPicture:
    person = person_of(request)
    found = person.visible_hosts().filter(name=name).first()
    if found is None:
        raise Http404
    return describe_hosts([found], user=person, now=now)[0]


def _host_part(request: HttpRequest, picture: HostPicture) -> SafeString:
    context = {
        "host": picture,
        "process_rows": process_rows([picture]),
        "has_charts": "uplot" in module_addresses(),
    }
    return render_to_string("monitoring/_host.html", context, request)
