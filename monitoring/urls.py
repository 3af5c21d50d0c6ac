"""The dashboard and the pages of hosts."""

from django.urls import path

from monitoring import views

urlpatterns = [
    path("", views.dashboard, name="dashboard"),
]
