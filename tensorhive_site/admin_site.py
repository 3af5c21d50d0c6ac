"""The administrator's console: Django's admin under our name."""

from django.contrib.admin import AdminSite

from accounts.signing_in import ConsoleSignInForm


class TensorHiveAdminSite(AdminSite):
    site_title = "TensorHive console"
    site_header = "TensorHive console"
    index_title = "Console"
    site_url = "/"
    # The lists need the width; the first page of the console is one click away.
    enable_nav_sidebar = False
    login_form = ConsoleSignInForm
