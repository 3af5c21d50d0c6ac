"""WSGI entry point, for gunicorn."""

import os

import django
from django.core.handlers.wsgi import WSGIHandler, WSGIRequest

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tensorhive_site.settings")
# Before settings load: this process serves pages, it never opens SSH and knows no keys.
os.environ.setdefault("TENSORHIVE_ROLE", "web")


class Utf8Request(WSGIRequest):
    """Text is UTF-8, whatever charset a client claims: some of those decode nothing and raise."""

    @property
    def encoding(self) -> None:
        return None

    @encoding.setter
    def encoding(self, claimed: object) -> None:
        pass


class Utf8Handler(WSGIHandler):
    request_class = Utf8Request


django.setup(set_prefix=False)
application = Utf8Handler()
