"""The dashboard and the pages of hosts."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render


@login_required
def dashboard(request: HttpRequest) -> HttpResponse:
    return render(request, "monitoring/dashboard.html", {"hosts": request.user.visible_hosts()})
