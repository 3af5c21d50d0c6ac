"""Signing in and out, and one's own account."""

from django.contrib.auth.views import LoginView, LogoutView
from django.urls import path

from accounts import views
from accounts.signing_in import SignInForm

urlpatterns = [
    path(
        "login/",
        LoginView.as_view(authentication_form=SignInForm, redirect_authenticated_user=False),
        name="login",
    ),
    path("logout/", LogoutView.as_view(), name="logout"),
    path("account/", views.account, name="account"),
    path("account/password/", views.ChangePassword.as_view(), name="password_change"),
]
