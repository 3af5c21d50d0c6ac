"""What holds for every answer."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.mark.parametrize(
    "path",
    [
        *("/", "/calendar/", "/reservations/", "/jobs/", "/jobs/new/"),
        *("/account/", "/account/password/", "/fragments/dashboard/", "/nothing/"),
        *("/api/v1/", "/api/v1/users/me/", "/api/v1/reservations/", "/api/v1/nothing/"),
    ],
)
def test_nobody_between_keeps_what_a_person_sees(client: Any, alice: Any, path: str) -> None:
    client.force_login(alice)

    kept = client.get(path).headers["Cache-Control"]

    assert "private" in kept
    assert "no-cache" in kept


def test_a_view_may_say_how_long_its_answer_holds(client: Any, alice: Any) -> None:
    client.force_login(alice)

    assert client.get("/fragments/dashboard/").headers["Cache-Control"] == "private, no-cache"
