"""The pages about one's own account."""

from __future__ import annotations

from typing import cast

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.contrib.auth.forms import PasswordChangeForm
from django.contrib.auth.views import PasswordChangeView
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse_lazy

from accounts.forms import AccountForm
from accounts.models import User
from accounts.services import profile
from monitoring import audit


@login_required
def account(request: HttpRequest) -> HttpResponse:
    """Show the person's own account; a POST changes e-mail and time zone."""
    user = cast(User, request.user)
    form = AccountForm(
        request.POST or None, initial={"email": user.email, "time_zone": user.time_zone}
    )
    if request.method == "POST" and form.is_valid():
        profile.change_own_details(user=user, **form.cleaned_data)
        messages.success(request, "Saved.")
        return redirect("account")
    return render(request, "accounts/account.html", {"form": form})


class ChangePassword(PasswordChangeView):
    success_url = reverse_lazy("account")

    def form_valid(self, form: PasswordChangeForm) -> HttpResponse:
        with transaction.atomic():
            response = super().form_valid(form)
            audit.record(actor=form.user, action="user.change_password", target=form.user)
        messages.success(self.request, "Your password is changed.")
        return response
