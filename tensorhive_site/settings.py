"""The one settings file. Every value comes from the environment, `.env`, or a safe default.

Precedence: process environment, then `.env` beside manage.py, then the secrets that
`manage.py init` generated in `$DATA_DIR/secrets.env`.
There is no default secret: without one the start fails.
"""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import environ
from csp.constants import NONCE

from tensorhive_site import clusters, secrets_file

BASE_DIR = Path(__file__).resolve().parent.parent

env = environ.FileAwareEnv()
environ.Env.read_env(secrets_file.env_file())
DATA_DIR = Path(env.str("DATA_DIR", default=str(BASE_DIR / "var"))).resolve()
environ.Env.read_env(DATA_DIR / "secrets.env")

# -- Secrets and addresses ---------------------------------------------------------------------

SECRET_KEY = env.str("SECRET_KEY")
DEBUG = env.bool("DEBUG", default=False)
PUBLIC_URL = env.str("PUBLIC_URL", default="http://127.0.0.1:8000").rstrip("/")
_public = urlsplit(PUBLIC_URL)
IS_HTTPS = _public.scheme == "https"
ALLOWED_HOSTS = [
    _public.hostname or "localhost",
    "localhost",
    "127.0.0.1",
    "[::1]",
    *env.list("EXTRA_ALLOWED_HOSTS", default=[]),
]
CSRF_TRUSTED_ORIGINS = [f"{_public.scheme}://{_public.netloc}"]

# The role of this process: "web" knows no keys and never opens SSH, "worker" does.
ROLE = env.str("TENSORHIVE_ROLE", default="worker")

# Set by `make demo`: pages say that the hosts are simulated.
IS_DEMO = env.bool("TENSORHIVE_DEMO", default=False)

# -- Applications ------------------------------------------------------------------------------

INSTALLED_APPS = [
    "tensorhive_site.apps.TensorHiveAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "django_htmx",
    "django_filters",
    "rest_framework",
    "rest_framework_simplejwt.token_blacklist",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "django_q",
    "csp",
    "monitoring",
    "accounts",
    "reservations",
    "jobs",
    "tensorhive_site.apps.SiteConfig",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "tensorhive_site.middleware.KeepNothingMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "accounts.middleware.TimeZoneMiddleware",
]

ROOT_URLCONF = "tensorhive_site.urls"
WSGI_APPLICATION = "tensorhive_site.wsgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "csp.context_processors.nonce",
                "tensorhive_site.context.site",
            ],
        },
    }
]

# -- Data --------------------------------------------------------------------------------------

# Not as an address by default: a directory may have any name, an address may not.
DATABASES: dict[str, dict[str, Any]] = {
    "default": env.db("DATABASE_URL")
    if env.str("DATABASE_URL", default="")
    else {"ENGINE": "django.db.backends.sqlite3", "NAME": str(DATA_DIR / "tensorhive.sqlite3")}
}
if DATABASES["default"]["ENGINE"] == "django.db.backends.sqlite3":
    # IMMEDIATE: a deferred transaction that turns into a writer fails at once with "database is
    # locked". FULL: a booking that was acknowledged survives a power cut.
    DATABASES["default"]["OPTIONS"] = {
        "transaction_mode": "IMMEDIATE",
        "timeout": 20,
        "init_command": (
            "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON;"
        ),
    }
else:
    DATABASES["default"]["CONN_HEALTH_CHECKS"] = True
    DATABASES["default"].setdefault("OPTIONS", {})["connect_timeout"] = 5
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

REDIS_URL = env.str("REDIS_URL", default="")
# Throttles count here, so it is shared by all processes.
CACHES = {
    "default": {
        "BACKEND": "django.core.cache.backends.redis.RedisCache",
        "LOCATION": REDIS_URL,
    }
    if REDIS_URL
    else {
        "BACKEND": "django.core.cache.backends.filebased.FileBasedCache",
        "LOCATION": str(DATA_DIR / "cache"),
    }
}

# -- People ------------------------------------------------------------------------------------

AUTH_USER_MODEL = "accounts.User"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {
        "NAME": "django.contrib.auth.password_validation.MinimumLengthValidator",
        "OPTIONS": {"min_length": 10},
    },
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
]
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "dashboard"
LOGOUT_REDIRECT_URL = "login"

# -- Web security ------------------------------------------------------------------------------

SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = IS_HTTPS
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_AGE = env.int("SESSION_DAYS", default=14) * 24 * 3600
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
SECURE_HSTS_SECONDS = 31_536_000 if IS_HTTPS else 0
# Whether other names below this one are to be https, too, is not for this site to say.
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]
SECURE_SSL_REDIRECT = env.bool("SSL_REDIRECT", default=IS_HTTPS)
if env.bool("BEHIND_PROXY", default=False):
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
X_FRAME_OPTIONS = "DENY"
DATA_UPLOAD_MAX_MEMORY_SIZE = 1024 * 1024

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'self'"],
        "script-src": ["'self'", NONCE],
        "style-src": ["'self'"],
        "img-src": ["'self'", "data:"],
        "object-src": ["'none'"],
        "base-uri": ["'none'"],
        "form-action": ["'self'"],
        "frame-ancestors": ["'none'"],
    }
}

# -- Language, time, static files --------------------------------------------------------------

LANGUAGE_CODE = "en-us"
TIME_ZONE = env.str("TIME_ZONE", default="UTC")
USE_I18N = True
FORMAT_MODULE_PATH = "tensorhive_site.formats"
USE_TZ = True

STATIC_URL = "static/"
STATIC_ROOT = Path(env.str("STATIC_ROOT", default=str(BASE_DIR / "staticfiles")))
STATICFILES_DIRS: list[Path | tuple[str, Path]] = [BASE_DIR / "static"]
if (UPLOT := BASE_DIR / "node_modules" / "uplot" / "dist").is_dir():
    STATICFILES_DIRS.append(("vendor/uplot", UPLOT))
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
}
# Maps are large, compressing them takes most of the time, and browsers rarely ask for them.
WHITENOISE_SKIP_COMPRESS_EXTENSIONS = ["map", "png", "gz", "br", "woff", "woff2"]

# -- API ---------------------------------------------------------------------------------------

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "rest_framework_simplejwt.authentication.JWTAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["tensorhive_site.parsers.CarefulJSONParser"],
    "DEFAULT_FILTER_BACKENDS": ["django_filters.rest_framework.DjangoFilterBackend"],
    "DEFAULT_PAGINATION_CLASS": "monitoring.pagination.Pages",
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "DEFAULT_THROTTLE_CLASSES": ["rest_framework.throttling.AnonRateThrottle"],
    "DEFAULT_THROTTLE_RATES": {
        "anon": env.str("THROTTLE_ANONYMOUS", default="120/min"),
        "login": env.str("THROTTLE_LOGIN", default="20/min"),
    },
    "NUM_PROXIES": env.int("NUM_PROXIES", default=0),
    "EXCEPTION_HANDLER": "tensorhive_site.api.handle_exception",
    "DATETIME_FORMAT": "%Y-%m-%dT%H:%M:%S.%fZ",
    "UNICODE_JSON": True,
}
SIMPLE_JWT = {
    "ACCESS_TOKEN_LIFETIME": dt.timedelta(minutes=5),
    "REFRESH_TOKEN_LIFETIME": dt.timedelta(days=env.int("REFRESH_TOKEN_DAYS", default=14)),
    "ROTATE_REFRESH_TOKENS": True,
    "BLACKLIST_AFTER_ROTATION": True,
    "CHECK_REVOKE_TOKEN": True,
    "ALGORITHM": "HS256",
    "SIGNING_KEY": env.str("JWT_SIGNING_KEY"),
    "UPDATE_LAST_LOGIN": True,
}
SPECTACULAR_SETTINGS = {
    "TITLE": "TensorHive",
    "DESCRIPTION": "Reserve, watch and use GPUs on shared servers.",
    "VERSION": "1",
    "SERVE_INCLUDE_SCHEMA": False,
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "REDOC_DIST": "SIDECAR",
    "SCHEMA_PATH_PREFIX": "/api/v1/",
    "ENUM_NAME_OVERRIDES": {
        "HostStateEnum": "monitoring.models.Host.State",
        "GpuStateEnum": "monitoring.models.Gpu.State",
        "TaskStateEnum": "jobs.models.TaskState",
    },
}
METRICS_TOKEN = env.str("METRICS_TOKEN", default="")

# -- Mail --------------------------------------------------------------------------------------

_mail = env.email("EMAIL_URL", default="consolemail://")
EMAIL_BACKEND = _mail["EMAIL_BACKEND"]
EMAIL_HOST = _mail["EMAIL_HOST"] or "localhost"
EMAIL_PORT = _mail["EMAIL_PORT"] or 25
EMAIL_HOST_USER = _mail["EMAIL_HOST_USER"] or ""
EMAIL_HOST_PASSWORD = _mail["EMAIL_HOST_PASSWORD"] or ""
EMAIL_USE_TLS = _mail.get("EMAIL_USE_TLS", False)
EMAIL_USE_SSL = _mail.get("EMAIL_USE_SSL", False)
EMAIL_TIMEOUT = 10  # without it a silent mail server holds a worker for ever
DEFAULT_FROM_EMAIL = SERVER_EMAIL = env.str("MAIL_FROM", default="tensorhive@localhost")

# -- Hosts: SSH, watching ----------------------------------------------------------------------

KEYS_DIR = Path(env.str("KEYS_DIR", default=str(DATA_DIR / "keys")))
OBSERVING_KEY = KEYS_DIR / "observing"
ACTING_KEY = KEYS_DIR / "acting"
SSH_DEADLINE = dt.timedelta(seconds=env.int("SSH_DEADLINE_SECONDS", default=15))
PROBE_INTERVAL = dt.timedelta(seconds=env.float("PROBE_INTERVAL_SECONDS", default=5))
RAW_SAMPLES_KEPT = dt.timedelta(hours=env.int("RAW_SAMPLES_HOURS", default=6))
MINUTES_KEPT = dt.timedelta(days=env.int("MINUTE_SAMPLES_DAYS", default=7))
HOURS_KEPT = dt.timedelta(days=env.int("HOUR_SAMPLES_DAYS", default=366))
WATCH_SHARDS = env.int("WATCH_SHARDS", default=1)
WATCH_SEGMENT = dt.timedelta(seconds=env.int("WATCH_SEGMENT_SECONDS", default=300))
WATCH_LEASE = dt.timedelta(seconds=env.int("WATCH_LEASE_SECONDS", default=15))
HEARTBEAT_INTERVAL = dt.timedelta(seconds=env.float("HEARTBEAT_SECONDS", default=20))
WARNING_REPEAT = dt.timedelta(minutes=env.int("WARNING_REPEAT_MINUTES", default=10))

# Apps on the left call those on the right through these dotted paths (see docs/architecture.md).
AFTER_PROBE = ["reservations.services.enforcing.after_probe", "jobs.services.following.after_probe"]
AFTER_ACCESS_CHANGE: list[str] = []
GPU_CONTEXT = ["reservations.services.context.gpu_context"]
PEOPLE_BY_LOGIN = ["accounts.people.people_by_login"]
OWN_PROCESSES = ["jobs.services.following.own_processes"]
# What `monitoring.requests` runs in the actions cluster: kind -> dotted path of the handler.
REQUEST_HANDLERS = {
    "check_host": "monitoring.services.checking.handle_check",
    "warn_terminals": "reservations.services.warning.handle_warn",
    "launch_task": "jobs.services.launching.handle_launch",
    "follow_tasks": "jobs.services.following.handle_follow",
    "read_log": "jobs.services.logs.handle_read_log",
}

# Marks what this installation starts on hosts, where several may share homes.
INSTALLATION = env.str("INSTALLATION", default="th")

# Which code runs, shown beside leases and heartbeats.
CODE_VERSION = "2.0.0.dev0"

# -- Background tasks --------------------------------------------------------------------------

CLUSTER_SIZES = {
    "watch": clusters.Size(
        workers=WATCH_SHARDS + 1,
        timeout=int(WATCH_SEGMENT.total_seconds()) + 60,
        recycle=100_000,
        has_spare_worker=True,
    ),
    "actions": clusters.Size(workers=env.int("ACTION_WORKERS", default=2), timeout=60),
    "slow": clusters.Size(workers=1, timeout=120),
}
Q_CLUSTER = clusters.configuration(
    CLUSTER_SIZES,
    redis_url=REDIS_URL,
    poll=env.float("QUEUE_POLL_SECONDS", default=0.2),
    time_zone=TIME_ZONE,
)

# -- Logging -----------------------------------------------------------------------------------

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"()": "tensorhive_site.logs.OneLineFormatter"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["console"], "level": env.str("LOG_LEVEL", default="INFO")},
    "loggers": {
        "django": {"handlers": [], "propagate": True},
        # It tells of every task; what goes wrong is a warning.
        "django-q": {"level": "WARNING"},
    },
}
