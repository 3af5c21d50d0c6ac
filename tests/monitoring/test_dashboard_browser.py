"""The pages in a real browser: live parts, themes, phones, and nothing for the console to say."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from django.contrib import admin
from django.test import Client
from django.utils import timezone
from playwright.sync_api import Page, Response, expect

from accounts.models import User
from monitoring.models import Gpu, Host, HostSample
from reservations.models import Policy
from tests import make
from tests.monitoring import data

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

SOON = 15_000  # ms: three polls


@pytest.fixture
def gpu(transactional_db: None) -> Gpu:
    """GPU 0 of gpu01, half busy with alice's process; gpu02 is silent."""
    # A migration writes it, and the flush after another transactional test takes it away.
    Policy.objects.get_or_create(pk=1)
    gpu = make.gpu(make.host("gpu01"))
    make.gpu(gpu.host)
    answer(gpu, 50.0)
    silent = make.host(
        "gpu02",
        state=Host.State.UNREACHABLE,
        reason="No answer within 15 s.",
        last_good_at=timezone.now() - dt.timedelta(minutes=10),
        state_since=timezone.now() - dt.timedelta(minutes=10),
    )
    make.gpu(silent)
    return gpu


def answer(gpu: Gpu, utilization_percent: float) -> None:
    Host.objects.filter(pk=gpu.host_id).update(last_good_at=timezone.now())
    readings = [
        data.reading(one, utilization_percent=utilization_percent if one == gpu else 0.0)
        for one in gpu.host.gpus.all()
    ]
    data.answer(gpu.host, readings, [data.process(gpu)])


def sign_in(page: Page, live_server: Any, person: User) -> None:
    client = Client()
    client.force_login(person)
    session = client.cookies["sessionid"].value
    page.context.add_cookies([{"name": "sessionid", "value": session, "url": live_server.url}])


def dashboard(page: Page, live_server: Any, person: User) -> None:
    sign_in(page, live_server, person)
    page.goto(live_server.url)
    expect(page.get_by_text("Live, every 5 s")).to_be_visible()


def test_a_person_signs_in_by_keyboard_and_sees_the_gpus(
    page: Page, live_server: Any, alice: User, gpu: Gpu, console_errors: list[str]
) -> None:
    page.goto(live_server.url)
    page.keyboard.type("alice")
    page.keyboard.press("Tab")
    page.keyboard.type(make.PASSWORD)
    page.keyboard.press("Enter")

    cell = page.locator(f"#gpu-{gpu.pk}")
    expect(cell).to_have_text("50")
    expect(cell).to_have_attribute(
        "aria-label",
        f"GPU 0 of gpu01, {gpu.name}; 50 % used; memory 10 of 40 GiB; 60 °C; 1 process",
    )
    row = page.get_by_role("row").filter(has_text="4242")
    expect(row).to_contain_text("alice")
    expect(row).to_contain_text("train.py")


def test_the_page_follows_the_hosts_without_losing_focus(
    page: Page, live_server: Any, alice: User, gpu: Gpu, console_errors: list[str]
) -> None:
    dashboard(page, live_server, alice)
    cell = page.locator(f"#gpu-{gpu.pk}")
    cell.focus()

    answer(gpu, 90.0)

    expect(cell).to_have_text("90", timeout=SOON)
    expect(cell).to_be_focused()


def test_an_unchanged_part_costs_a_304(
    page: Page, live_server: Any, alice: User, gpu: Gpu, console_errors: list[str]
) -> None:
    # Far from turning stale while the test looks.
    Host.objects.update(interval_seconds=600)
    dashboard(page, live_server, alice)

    def is_poll(response: Response) -> bool:
        return "/fragments/dashboard/" in response.url

    with page.expect_response(is_poll, timeout=SOON) as polled:
        pass
    assert polled.value.status == 304


def test_ages_tick_between_two_fetches(
    page: Page, live_server: Any, alice: User, gpu: Gpu, console_errors: list[str]
) -> None:
    Host.objects.filter(pk=gpu.host_id).update(interval_seconds=600)
    page.route("**/fragments/**", lambda route: route.fulfill(status=304))
    dashboard(page, live_server, alice)
    age = page.locator(f"#host-{gpu.host_id} time")
    before = age.text_content() or ""
    assert before.endswith(" s ago")

    expect(age).not_to_have_text(before, timeout=SOON)


def test_a_silent_host_is_grey_and_says_why_and_since_when(
    page: Page, live_server: Any, alice: User, gpu: Gpu, console_errors: list[str]
) -> None:
    dashboard(page, live_server, alice)

    card = page.locator("article").filter(has_text="gpu02")
    expect(card).to_have_class("card host-card stale")
    expect(card).to_contain_text("unreachable")
    expect(card).to_contain_text("10 min ago")
    expect(card).to_contain_text("No answer within 15 s. Since ")
    expect(card.locator(".cell")).to_have_text("–")


def test_a_server_that_does_not_answer_is_told(
    page: Page, live_server: Any, alice: User, gpu: Gpu
) -> None:
    dashboard(page, live_server, alice)

    page.route("**/fragments/**", lambda route: route.abort())
    expect(page.get_by_text("Not updating: TensorHive does not answer")).to_be_visible(timeout=SOON)

    page.unroute("**/fragments/**")
    expect(page.get_by_text("Live, every 5 s")).to_be_visible(timeout=SOON)


def test_who_was_signed_out_comes_to_the_sign_in_page(
    page: Page, live_server: Any, alice: User, gpu: Gpu, console_errors: list[str]
) -> None:
    dashboard(page, live_server, alice)

    page.context.clear_cookies(name="sessionid")

    expect(page.get_by_role("heading", name="Sign in")).to_be_visible(timeout=SOON)


def test_the_hosts_page_draws_the_last_hour(
    page: Page, live_server: Any, alice: User, gpu: Gpu, console_errors: list[str]
) -> None:
    now = timezone.now()
    uuids = [one.uuid for one in gpu.host.gpus.all()]
    HostSample.objects.bulk_create(
        HostSample(
            host=gpu.host,
            taken_at=now - dt.timedelta(seconds=5 * number),
            gpus={uuid: [float(number % 100), 1, 1, 1, 1, None] for uuid in uuids},
        )
        for number in range(1, 200)
    )
    sign_in(page, live_server, alice)
    page.goto(f"{live_server.url}/hosts/gpu01/")

    expect(page.locator("#chart canvas")).to_be_visible()
    expect(page.locator("#chart .u-legend")).to_contain_text("GPU 1")
    drawn = page.locator("#chart canvas").bounding_box()
    assert drawn is not None
    assert drawn["width"] > 600
    # The chart belongs to its script and stays through a refresh of what is around it.
    answer(gpu, 88.0)
    expect(page.locator(f"#gpu-row-{gpu.pk}")).to_contain_text("88 %", timeout=SOON)
    expect(page.locator("#chart canvas")).to_be_visible()


def background(page: Page) -> str:
    return str(page.evaluate("getComputedStyle(document.body).backgroundColor"))


def test_one_theme_switch_serves_pages_and_console(
    page: Page, live_server: Any, root: User, gpu: Gpu, console_errors: list[str]
) -> None:
    page.emulate_media(color_scheme="light")
    dashboard(page, live_server, root)
    light = background(page)

    page.get_by_role("button", name="Toggle theme (current theme: auto)").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    dark = background(page)
    assert dark != light

    page.goto(f"{live_server.url}/admin/")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    assert background(page) == dark
    page.get_by_role("button", name="Toggle theme (current theme: dark)").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "light")
    assert background(page) == light

    page.goto(live_server.url)
    expect(page.locator("html")).to_have_attribute("data-theme", "light")


def test_without_a_choice_the_system_decides_about_the_theme(
    page: Page, live_server: Any, alice: User, gpu: Gpu, console_errors: list[str]
) -> None:
    sign_in(page, live_server, alice)
    seen = set()
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.goto(live_server.url)
        seen.add(background(page))

    assert len(seen) == 2


PAGES = [
    "/",
    "/hosts/gpu01/",
    "/hosts/gpu02/",
    "/calendar/",
    "/reservations/",
    "/jobs/",
    "/account/",
    "/account/password/",
    "/login/",
    "/api/v1/docs/",
]


def visit(page: Page, address: str) -> None:
    response = page.goto(address, wait_until="networkidle")
    assert response is not None
    assert response.status == 200, address


@pytest.mark.parametrize("path", PAGES)
def test_no_page_gives_the_browser_anything_to_complain_about(
    page: Page, live_server: Any, root: User, gpu: Gpu, console_errors: list[str], path: str
) -> None:
    """Violations of the content security policy are errors of the console."""
    sign_in(page, live_server, root)

    visit(page, f"{live_server.url}{path}")


def test_no_page_of_the_console_gives_the_browser_anything_to_complain_about(
    page: Page, live_server: Any, root: User, gpu: Gpu, console_errors: list[str], rf: Any
) -> None:
    sign_in(page, live_server, root)
    request = rf.get("/")
    request.user = root
    visit(page, f"{live_server.url}/admin/")
    visit(page, f"{live_server.url}/admin/password_change/")
    for model, console in admin.site._registry.items():
        lists = f"{live_server.url}/admin/{model._meta.app_label}/{model._meta.model_name}/"
        visit(page, lists)
        if console.has_add_permission(request):
            visit(page, f"{lists}add/")
        assert console_errors == [], lists
    visit(page, f"{live_server.url}/admin/monitoring/host/{gpu.host_id}/change/")


@pytest.mark.parametrize("path", PAGES)
def test_no_page_scrolls_sideways_on_a_phone(
    page: Page, live_server: Any, root: User, gpu: Gpu, path: str
) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    sign_in(page, live_server, root)

    visit(page, f"{live_server.url}{path}")

    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_a_phone_has_the_pages_in_a_menu(
    page: Page, live_server: Any, root: User, gpu: Gpu, console_errors: list[str]
) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    dashboard(page, live_server, root)

    page.get_by_text("Menu", exact=True).click()
    page.get_by_role("link", name="Console").click()

    expect(page).to_have_url(f"{live_server.url}/admin/")


def test_menus_work_without_scripts(browser: Any, live_server: Any, alice: User, gpu: Gpu) -> None:
    context = browser.new_context(java_script_enabled=False, viewport={"width": 390, "height": 844})
    page = context.new_page()
    sign_in(page, live_server, alice)
    page.goto(live_server.url)

    page.locator(".menu.account summary").click()
    page.get_by_role("button", name="Sign out").click()

    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    context.close()


def test_the_skip_link_leads_past_the_navigation(
    page: Page, live_server: Any, alice: User, gpu: Gpu, console_errors: list[str]
) -> None:
    dashboard(page, live_server, alice)

    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")

    expect(page.locator("main")).to_be_focused()
