"""A client of its own process that books overlapping spans as fast as it can.

Usage: booking_client.py URL USERNAME PASSWORD COUNT SEED BASE UUID…
BASE is the first moment (seconds since the epoch, on the hour). Prints one JSON object:
{"statuses": {status: count}, "acknowledged": [ids], "odd": [first odd answers]}.
"""

from __future__ import annotations

import collections
import datetime as dt
import http.client
import json
import random
import sys
import time
from typing import Any
from urllib.parse import urlsplit

HALF_HOURS = 24  # all spans lie within twelve hours, so that most of them collide


class Client:
    def __init__(self, url: str) -> None:
        place = urlsplit(url)
        self.connection = http.client.HTTPConnection(str(place.hostname), place.port, timeout=60)
        self.headers = {"Content-Type": "application/json"}

    def post(self, path: str, body: Any) -> tuple[int, Any]:
        self.connection.request("POST", path, json.dumps(body), self.headers)
        answer = self.connection.getresponse()
        text = answer.read()
        try:
            return answer.status, json.loads(text)
        except ValueError:
            return answer.status, text.decode(errors="replace")[:500]

    def sign_in(self, username: str, password: str) -> None:
        said = {"username": username, "password": password}
        status, tokens = self.post("/api/v1/auth/token/", said)
        if status != 200:
            raise SystemExit(f"cannot sign in: {status} {tokens}")
        self.headers["Authorization"] = f"Bearer {tokens['access']}"


def wish(dice: random.Random, base: int, gpus: list[str]) -> dict[str, Any]:
    begin = base + 1800 * dice.randrange(HALF_HOURS)
    end = begin + 1800 * dice.randint(1, 3)
    return {
        "title": "Race",
        "gpus": dice.sample(gpus, dice.randint(1, min(3, len(gpus)))),
        "starts_at": dt.datetime.fromtimestamp(begin, dt.UTC).isoformat(),
        "ends_at": dt.datetime.fromtimestamp(end, dt.UTC).isoformat(),
    }


def main() -> None:
    url, username, password, count, seed, base, *gpus = sys.argv[1:]
    client, dice = Client(url), random.Random(int(seed))
    client.sign_in(username, password)
    statuses: collections.Counter[int] = collections.Counter()
    acknowledged, odd = [], []
    signed_in = time.monotonic()
    for _ in range(int(count)):
        if time.monotonic() - signed_in > 120:  # tokens live for five minutes
            client.sign_in(username, password)
            signed_in = time.monotonic()
        status, body = client.post("/api/v1/reservations/", wish(dice, int(base), gpus))
        statuses[status] += 1
        if status == 201:
            acknowledged.append(body["id"])
        elif status != 409:
            odd.append([status, body])
    said = {"statuses": statuses, "acknowledged": acknowledged, "odd": odd[:5]}
    sys.stdout.write(json.dumps(said))


if __name__ == "__main__":
    main()
