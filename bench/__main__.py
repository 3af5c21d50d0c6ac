"""`make bench`: print the table, write bench/results.json."""

from __future__ import annotations

import argparse
import json
import os
import platform
from pathlib import Path

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tensorhive_site.test_settings")

import django

django.setup()

from bench import rounds  # noqa: E402  the settings must stand first


def main() -> None:
    arguments = argparse.ArgumentParser(prog="bench")
    arguments.add_argument("--sizes", type=int, nargs="+", default=[8, 32, 100])
    arguments.add_argument(
        "--old", type=int, nargs="*", default=[8, 32], help="sizes at which the old round runs, too"
    )
    given = arguments.parse_args()
    rows = rounds.measure(given.sizes, with_old=given.old)
    print(
        f"{'hosts':>6} {'round s':>9} {'first s':>9} {'CPU ms/host':>12} {'1.1 s':>8} {'ratio':>7}"
    )
    for row in rows:
        print(
            f"{row['hosts']:>6} {row['round_s']:>9} {row['first_round_s']:>9}"
            f" {row['cpu_ms_per_host']:>12} {row.get('old_round_s', '–'):>8}"
            f" {row.get('ratio', '–'):>7}"
        )
    results = {"probe_rounds": rows, "python": platform.python_version(), "cpus": os.cpu_count()}
    Path(__file__).with_name("results.json").write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
