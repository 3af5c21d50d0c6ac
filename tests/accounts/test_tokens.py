"""Tokens of the API: log in, refresh once, revoke."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from django.db import connection
from django.test import Client

from tests import make

TOKEN = "/api/v1/auth/token/"


def _post(address: str, **body: str) -> Any:
    return Client().post(address, body, content_type="application/json")


def _log_in(username: str = "alice") -> dict[str, str]:
    answer = _post(TOKEN, username=username, password=make.PASSWORD)
    assert answer.status_code == 200, answer.json()
    return answer.json()


def test_login_gives_tokens_that_open_the_api(alice: Any) -> None:
    tokens = _log_in()
    answer = Client().get("/api/v1/", headers={"Authorization": f"Bearer {tokens['access']}"})
    assert answer.status_code == 200


def test_a_wrong_password_and_an_unknown_name_get_the_same_answer(alice: Any) -> None:
    wrong = _post(TOKEN, username="alice", password="no")
    unknown = _post(TOKEN, username="nobody", password="no")
    assert wrong.status_code == unknown.status_code == 401
    assert wrong.json() == unknown.json()
    assert wrong.json()["code"]


def test_refresh_rotates_both_tokens(alice: Any) -> None:
    first = _log_in()
    second = _post(f"{TOKEN}refresh/", refresh=first["refresh"]).json()
    assert second["refresh"] != first["refresh"]
    assert second["access"] != first["access"]


def test_using_a_refresh_token_again_ends_the_whole_family(alice: Any) -> None:
    first = _log_in()
    second = _post(f"{TOKEN}refresh/", refresh=first["refresh"]).json()
    again = _post(f"{TOKEN}refresh/", refresh=first["refresh"])
    assert again.status_code == 401
    assert "used before" in again.json()["detail"]
    assert _post(f"{TOKEN}refresh/", refresh=second["refresh"]).status_code == 401


@pytest.mark.django_db(transaction=True)
def test_one_of_eight_simultaneous_refreshes_wins() -> None:
    make.user("alice")
    refresh = _log_in()["refresh"]
    codes: list[int] = []
    start = threading.Barrier(8)

    def use() -> None:
        start.wait()
        codes.append(_post(f"{TOKEN}refresh/", refresh=refresh).status_code)
        connection.close()

    threads = [threading.Thread(target=use) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(codes) == [200] + [401] * 7


def test_tokens_of_a_deleted_or_inactive_person_are_refused_with_401(alice: Any, bob: Any) -> None:
    tokens, others = _log_in("alice"), _log_in("bob")
    alice.delete()
    bob.is_active = False
    bob.save()
    for pair in (tokens, others):
        assert _post(f"{TOKEN}refresh/", refresh=pair["refresh"]).status_code == 401
        answer = Client().get("/api/v1/", headers={"Authorization": f"Bearer {pair['access']}"})
        assert answer.status_code == 401


def test_a_password_change_ends_access_and_refresh(alice: Any) -> None:
    tokens = _log_in()
    alice.set_password("another good password")
    alice.save()
    assert _post(f"{TOKEN}refresh/", refresh=tokens["refresh"]).status_code == 401
    answer = Client().get("/api/v1/", headers={"Authorization": f"Bearer {tokens['access']}"})
    assert answer.status_code == 401


def test_revoke_ends_the_refresh_token(alice: Any) -> None:
    tokens = _log_in()
    assert _post(f"{TOKEN}revoke/", refresh=tokens["refresh"]).status_code == 204
    assert _post(f"{TOKEN}refresh/", refresh=tokens["refresh"]).status_code == 401


@pytest.mark.parametrize("text", ["", "x", "a.b.c", "\x00", "é" * 3000])
def test_rubbish_is_refused_not_a_fault(db: None, text: str) -> None:
    assert _post(f"{TOKEN}refresh/", refresh=text).status_code in (400, 401)
    assert _post(f"{TOKEN}revoke/", refresh=text).status_code in (400, 401)


def test_a_forged_token_is_refused(alice: Any) -> None:
    header, body, _ = _log_in()["refresh"].split(".")
    assert _post(f"{TOKEN}refresh/", refresh=f"{header}.{body}.AAAA").status_code == 401


def test_an_access_token_does_not_refresh(alice: Any) -> None:
    assert _post(f"{TOKEN}refresh/", refresh=_log_in()["access"]).status_code == 401
