"""What every page's frame needs: links, the zone's name, and the map of our ES modules."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from django import template
from django.contrib.staticfiles import finders
from django.contrib.staticfiles.storage import ManifestFilesMixin, staticfiles_storage
from django.urls import NoReverseMatch, reverse
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

register = template.Library()

# Third-party modules by the name they are imported under; set-up installs them from the lock file.
PACKAGES = {"uplot": "vendor/uplot/uPlot.esm.js"}
STYLES = ["vendor/uplot/uPlot.min.css"]
PAGES = {
    "Dashboard": "dashboard",
    "Calendar": "calendar",
    "Reservations": "reservations",
    "Jobs": "jobs",
}
CONSOLE = {"Console": "admin:index"}
_JSON_ESCAPES = {ord("<"): "\\u003C", ord(">"): "\\u003E", ord("&"): "\\u0026"}


@dataclass(frozen=True, slots=True)
class Link:
    label: str
    url: str
    is_current: bool


@register.inclusion_tag("_site_links.html", takes_context=True)
def site_links(context: template.Context) -> dict[str, list[Link]]:
    """The pages this person may open, the present one marked."""
    request = context["request"]
    pages = PAGES | (CONSOLE if request.user.is_staff else {})
    links = []
    for label, name in pages.items():
        try:
            url = reverse(name)
        except NoReverseMatch:  # an installation may leave out an app with its pages
            continue
        links.append(Link(label, url, _is_at(request.path, url)))
    return {"links": links}


def _is_at(path: str, url: str) -> bool:
    return path == url if url == "/" else path.startswith(url)


@register.simple_tag
def current_zone() -> str:
    """The name of the zone that moments on this page are in."""
    return timezone.get_current_timezone_name()


@register.simple_tag(takes_context=True)
def importmap(context: template.Context) -> SafeString:
    """The import map of our modules: each plain address leads to the hashed file.

    So `import "./geometry.js"` inside a hashed module finds the hashed neighbour. Must come before
    the first module; empty where nothing needs mapping.
    """
    imports = module_addresses()
    if not imports:
        return SafeString("")
    text = json.dumps({"imports": imports}).translate(_JSON_ESCAPES)
    nonce = context.get("CSP_NONCE", "")
    # Escaped above; the addresses are ours.
    return format_html('<script type="importmap" nonce="{}">{}</script>', nonce, mark_safe(text))  # noqa: S308


@register.simple_tag
def package_css() -> SafeString:
    """The style sheets that come with the third-party modules, as far as they are installed."""
    found = [staticfiles_storage.url(path) for path in STYLES if _is_there(path)]
    return format_html_join("\n", '<link rel="stylesheet" href="{}">', ((url,) for url in found))


def module_addresses() -> dict[str, str]:
    """Import name or plain address -> address to load, only where they differ."""
    storage: Any = staticfiles_storage
    has_manifest = isinstance(staticfiles_storage, ManifestFilesMixin)
    names: list[str] = sorted(storage.hashed_files) if has_manifest else []
    plain = {
        storage.base_url + name: storage.url(name)
        for name in names
        if name.startswith("js/") and name.endswith(".js")
    }
    packages = {name: storage.url(path) for name, path in PACKAGES.items() if _is_there(path)}
    return packages | {plain: hashed for plain, hashed in plain.items() if plain != hashed}


def _is_there(path: str) -> bool:
    if isinstance(staticfiles_storage, ManifestFilesMixin):
        return path in staticfiles_storage.hashed_files
    return finders.find(path) is not None
