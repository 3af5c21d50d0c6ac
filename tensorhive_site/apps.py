from django.apps import AppConfig
from django.contrib.admin.apps import AdminConfig


class TensorHiveAdminConfig(AdminConfig):
    """Django's admin with our own site: see tensorhive_site.admin_site."""

    default_site = "tensorhive_site.admin_site.TensorHiveAdminSite"


class SiteConfig(AppConfig):
    """Everything that knows all apps: addresses, API router, health, set-up commands."""

    name = "tensorhive_site"
    verbose_name = "TensorHive"

    def ready(self) -> None:
        from tensorhive_site import checks  # noqa: F401  registers them
