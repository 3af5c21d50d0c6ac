#!/usr/bin/env python
"""Django's command line for this project."""

import os
import sys

from tensorhive_site import secrets_file


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tensorhive_site.settings")
    if sys.argv[1:2] == ["init"]:
        os.umask(0o077)  # what is in the data directory is nobody else's business
        # The settings cannot be read before there are secrets.
        secrets_file.ensure(secrets_file.data_dir())
    elif _needs_secrets() and not secrets_file.are_there():
        sys.exit("This installation has no secrets yet. Run manage.py init first.")
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)


def _needs_secrets() -> bool:
    """The settings of the tests bring their own."""
    return os.environ["DJANGO_SETTINGS_MODULE"] == "tensorhive_site.settings"


if __name__ == "__main__":
    main()
