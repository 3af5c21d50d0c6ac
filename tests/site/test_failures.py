"""What is answered where no view answers, and to bodies that nobody should send."""

from __future__ import annotations

import io
from typing import Any

import pytest
from django.test import Client, RequestFactory

from tensorhive_site.wsgi import application

TOKEN = "/api/v1/auth/token/"


@pytest.mark.parametrize("path", ["/api/v1/nothing/", "/api/v1/grants/-1/", "/api/v2/"])
@pytest.mark.parametrize("method", ["get", "post", "delete"])
def test_an_address_of_the_api_that_is_not_there_is_told_in_its_form(
    method: str, path: str
) -> None:
    answer = getattr(Client(), method)(path)

    assert answer.status_code == 404
    assert answer.json()["code"] == "not_found"


def test_an_address_without_its_slash_still_leads_to_the_one_with_it() -> None:
    assert Client().get("/api/v1/hosts").headers["Location"] == "/api/v1/hosts/"


def test_a_page_that_is_not_there_is_a_page(db: None) -> None:
    answer = Client().get("/nothing/")

    assert answer.status_code == 404
    assert answer.headers["Content-Type"].startswith("text/html")


def test_a_body_that_is_too_large_is_told_in_the_form_of_the_api(settings: Any) -> None:
    body = " " * (settings.DATA_UPLOAD_MAX_MEMORY_SIZE + 1)

    answer = Client().post(TOKEN, body, content_type="application/json")

    assert answer.status_code == 400
    assert answer.json()["code"] == "too_large"


def test_a_mistake_of_ours_is_told_in_the_form_of_the_api(monkeypatch: Any) -> None:
    def broken(*_: Any) -> None:
        raise ZeroDivisionError("secret")

    monkeypatch.setattr("accounts.tokens.renew", broken)
    answer = Client(raise_request_exception=False).post(
        f"{TOKEN}refresh/", {"refresh": "x"}, content_type="application/json"
    )

    assert answer.status_code == 500
    assert answer.json()["code"] == "error"
    assert b"secret" not in answer.content


@pytest.mark.parametrize("opening", ["[", '{"a":'], ids=["lists", "objects"])
def test_json_nested_too_deeply_is_malformed(opening: str) -> None:
    answer = Client().post(TOKEN, opening * 50_000, content_type="application/json")

    assert answer.status_code == 400
    assert answer.json()["code"] == "parse_error"


@pytest.mark.parametrize("body", [r'{"\ud800": 1}', r'{"username": ["\udfff\ud800"]}'])
def test_json_with_half_a_character_is_malformed(body: str) -> None:
    answer = Client().post(TOKEN, body, content_type="application/json")

    assert answer.status_code == 400
    assert answer.json()["code"] == "parse_error"


@pytest.mark.parametrize("charset", ["zlib", "undefined", "rot13", "utf-16", "nonsense"])
def test_the_charset_that_a_client_claims_is_not_looked_at(db: None, charset: str) -> None:
    environ = RequestFactory().get("/login/", {"next": "/é/"}).environ
    environ |= {"CONTENT_TYPE": f"text/plain; charset={charset}", "wsgi.errors": io.StringIO()}
    answered: list[str] = []

    def start_response(status: str, *_: Any) -> Any:
        answered.append(status)

    page = b"".join(application(environ, start_response))

    assert answered == ["200 OK"]
    assert "/é/" in page.decode()
