"""The settings of the test suite: short beats, plain static files, a throw-away data directory."""

import os
import tempfile

# What a developer's own installation is set to is none of the tests' business.
os.environ["ENV_FILE"] = os.devnull
# A test's process serves pages and talks to hosts; programs it starts inherit this.
os.environ.setdefault("TENSORHIVE_ROLE", "worker")
os.environ.setdefault("SECRET_KEY", "tests-only-" + "x" * 50)
os.environ.setdefault("JWT_SIGNING_KEY", "tests-only-" + "y" * 50)
os.environ.setdefault("DATA_DIR", tempfile.mkdtemp(prefix="tensorhive-tests-"))

from tensorhive_site.settings import *  # noqa: F403
from tensorhive_site.settings import DATA_DIR, DATABASES, REST_FRAMEWORK

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
# Static files come straight from their sources; nothing is collected.
WHITENOISE_AUTOREFRESH = WHITENOISE_USE_FINDERS = True
STATIC_ROOT = DATA_DIR / "static"
STATIC_ROOT.mkdir(exist_ok=True)
EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
REST_FRAMEWORK["DEFAULT_THROTTLE_RATES"] = {"anon": None, "login": None}
if DATABASES["default"]["ENGINE"] == "django.db.backends.sqlite3":
    # A file, so that threads and other processes see the same database.
    DATABASES["default"]["TEST"] = {"NAME": str(DATA_DIR / "test.sqlite3")}
