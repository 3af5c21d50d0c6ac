"""The pages of jobs: a list, a form for a new one, and one job as it runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied, ValidationError
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.safestring import SafeString
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from accounts.models import User
from jobs.forms import JobForm, TaskFormSet, task_forms
from jobs.models import Job
from jobs.services import editing, launching, stopping
from monitoring.fragments import etag_of, unless_known

PER_PAGE = 50


@never_cache
@login_required
def jobs(request: HttpRequest) -> HttpResponse:
    """One's own jobs; with ?all=1 everybody's, for administrators."""
    user = _user(request)
    shows_all = user.is_administrator and request.GET.get("all") == "1"
    rows = Job.objects.all() if shows_all else Job.objects.filter(owner=user)
    page = Paginator(rows.with_tasks(), PER_PAGE).get_page(request.GET.get("page"))
    return render(request, "jobs/jobs.html", {"page": page, "shows_all": shows_all})


@login_required
def new(request: HttpRequest) -> HttpResponse:
    """Create a job; with the button "Create and start" it starts at once."""
    user = _user(request)
    if request.method != "POST":
        return _form(request, JobForm(), task_forms(user))
    form, tasks = JobForm(request.POST), task_forms(user, request.POST)
    # Both are looked at, so that all errors show at once.
    if not all([form.is_valid(), tasks.is_valid()]):
        return _form(request, form, tasks)
    try:
        job = editing.create(owner=user, tasks=tasks.service_tasks(), **form.cleaned_data)
    except ValidationError as error:
        form.add_error(None, ValidationError(error.messages))
        return _form(request, form, tasks)
    if "start" in request.POST:
        _do(request, lambda: launching.execute(job, actor=user), "Starting.")
    return redirect("job", job.pk)


@never_cache
@login_required
def job(request: HttpRequest, pk: int) -> HttpResponse:
    found = _visible(request, pk)
    part = _part(request, found)
    context = {"job": found, "part": part, "etag": etag_of(part), "now": timezone.now()}
    return render(request, "jobs/job.html", context)


@login_required
def job_fragment(request: HttpRequest, pk: int) -> HttpResponseBase:
    """What of a job's page changes while it runs."""
    return unless_known(request, HttpResponse(_part(request, _visible(request, pk))))


@require_POST
@login_required
def execute(request: HttpRequest, pk: int) -> HttpResponse:
    found, user = _visible(request, pk), _user(request)
    if found.owner_id != user.pk:
        raise PermissionDenied("Only its owner starts a job: it runs in their account.")
    _do(request, lambda: launching.execute(found, actor=user), "Starting.")
    return redirect("job", pk)


@require_POST
@login_required
def stop(request: HttpRequest, pk: int) -> HttpResponse:
    found, user = _visible(request, pk), _user(request)
    _do(request, lambda: stopping.stop(found, actor=user), "Asked to stop.")
    return redirect("job", pk)


@require_POST
@login_required
def delete(request: HttpRequest, pk: int) -> HttpResponse:
    found, user = _visible(request, pk), _user(request)
    if _do(request, lambda: editing.delete(found, actor=user), f"“{found.name}” is deleted."):
        return redirect("jobs")
    return redirect("job", pk)


def _do(request: HttpRequest, act: Callable[[], None], done: str) -> bool:
    """Do it, and tell the person what came of it."""
    try:
        act()
    except (editing.WrongState, launching.Refused) as refused:
        messages.error(request, str(refused))
        return False
    messages.success(request, done)
    return True


def _form(request: HttpRequest, form: JobForm, tasks: TaskFormSet) -> HttpResponse:
    return render(request, "jobs/new.html", {"form": form, "tasks": tasks})


def _part(request: HttpRequest, found: Job) -> SafeString:
    context = {"job": found, "is_mine": found.owner_id == _user(request).pk}
    return render_to_string("jobs/_job.html", context, request)


def _visible(request: HttpRequest, pk: int) -> Job:
    return get_object_or_404(Job.objects.visible_to(request.user).with_tasks(), pk=pk)


def _user(request: HttpRequest) -> User:
    return cast(User, request.user)
