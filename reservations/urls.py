"""Addresses of the pages of reservations."""

from django.urls import path

from reservations import views

urlpatterns = [
    path("calendar/", views.calendar, name="calendar"),
    path("reservations/", views.own, name="reservations"),
    path("reservations/<int:pk>/cancel/", views.cancel, name="reservation-cancel-page"),
    path("reservations/<int:pk>/release/", views.release, name="reservation-release-page"),
]
