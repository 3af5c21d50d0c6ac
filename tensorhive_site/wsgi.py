"""WSGI entry point, for gunicorn."""

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tensorhive_site.settings")
# Set before settings load: this process serves pages, it never opens SSH and knows no keys.
os.environ["TENSORHIVE_ROLE"] = "web"

application = get_wsgi_application()
