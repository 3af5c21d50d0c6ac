"""The pages of jobs."""

from django.urls import path

from jobs import views

urlpatterns = [
    path("jobs/", views.jobs, name="jobs"),
    path("jobs/new/", views.new, name="job-new"),
    path("jobs/<int:pk>/", views.job, name="job"),
    path("jobs/<int:pk>/execute/", views.execute, name="job-execute"),
    path("jobs/<int:pk>/stop/", views.stop, name="job-stop"),
    path("jobs/<int:pk>/delete/", views.delete, name="job-delete"),
    path("fragments/jobs/<int:pk>/", views.job_fragment, name="job-fragment"),
]
