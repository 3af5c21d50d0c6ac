"""The dashboard and the pages of hosts, and the parts of them that are fetched again."""

from django.urls import path

from monitoring import views

urlpatterns = [
    path("", views.dashboard, name="dashboard"),
    path("hosts/<str:name>/", views.host, name="host"),
    path("fragments/dashboard/", views.dashboard_fragment, name="dashboard-fragment"),
    path("fragments/hosts/<str:name>/", views.host_fragment, name="host-fragment"),
    path("fragments/hosts/<str:name>/chart/", views.host_chart, name="host-chart"),
]
