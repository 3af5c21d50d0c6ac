"""All addresses of the product."""

from django.contrib import admin
from django.urls import include, path

from monitoring import metrics
from tensorhive_site import api, health

handler400 = "tensorhive_site.failures.bad_request"
handler404 = "tensorhive_site.failures.page_not_found"
handler500 = "tensorhive_site.failures.server_error"

urlpatterns = [
    path("admin/", admin.site.urls),
    path("metrics", metrics.metrics, name="metrics"),
    path("healthz", health.healthz, name="healthz"),
    path("api/v1/", include(api.urlpatterns)),
    path("", include("accounts.urls")),
    path("", include("monitoring.urls")),
    path("", include("reservations.urls")),
    path("", include("jobs.urls")),
]
