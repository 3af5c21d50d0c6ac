"""The calendar as people use it: in a real browser, by pointer, finger and keyboard.

Moments lie relative to now, always within the three days that the calendar shows at first.
"""

from __future__ import annotations

import datetime as dt
import math
import re
import zoneinfo
from collections.abc import Callable
from typing import Any

import pytest
from django.conf import settings
from django.test import Client
from django.utils import timezone
from playwright.sync_api import FloatRect, Locator, Page, expect

from accounts.models import User
from monitoring.models import Gpu, Host
from reservations.models import Reservation
from tests import make

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

HALF_HOUR = dt.timedelta(minutes=30)
HOUR = dt.timedelta(hours=1)
QUARTER = dt.timedelta(minutes=15)
SHOWN = dt.timedelta(days=3)


def half_hour(hours_ahead: float) -> dt.datetime:
    """The next full half hour of the clock, so many hours later."""
    step = HALF_HOUR.total_seconds()
    floor = math.ceil(timezone.now().timestamp() / step) * step
    return dt.datetime.fromtimestamp(floor, dt.UTC) + hours_ahead * HOUR


class Board:
    """Where things are on the calendar of a page."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.canvas = page.locator(".cal-canvas")

    def at(self, gpu: Gpu, moment: dt.datetime) -> tuple[float, float]:
        row = self.box(self.page.locator(f'[data-gpu="{gpu.uuid}"]'))
        canvas = self.box(self.canvas)
        line = self.box(self.page.locator(".cal-now"))
        now_x = line["x"] + line["width"] / 2
        x = now_x + (moment - timezone.now()) / SHOWN * canvas["width"]
        return x, row["y"] + row["height"] / 2

    def box(self, locator: Locator) -> FloatRect:
        box = locator.bounding_box()
        assert box is not None
        return box

    def press(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        """Press the button, drag, and keep it pressed."""
        mouse = self.page.mouse
        mouse.move(*start)
        mouse.down()
        mouse.move((start[0] + end[0]) / 2, (start[1] + end[1]) / 2, steps=4)
        mouse.move(*end, steps=4)

    def drag(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        self.press(start, end)
        self.page.mouse.up()

    def block(self, reservation: Reservation) -> Locator:
        return self.page.locator(f'[data-reservation="{reservation.pk}"]')

    @property
    def notice(self) -> Locator:
        return self.page.get_by_role("region", name="Calendar").get_by_role("status")

    def book(self, title: str) -> None:
        """Fill the form that is open and send it."""
        self.page.get_by_label("Title").fill(title)
        self.page.get_by_role("button", name="Book", exact=True).click()
        expect(self.page.locator("dialog[open]")).to_have_count(0)


@pytest.fixture
def gpus(db: None) -> list[Gpu]:
    """Four GPUs of gpu01 and two of gpu02, which everyone may book."""
    make.everyone_everything()
    hosts = [make.host("gpu01"), make.host("gpu02")]
    return [make.gpu(hosts[0]) for _ in range(4)] + [make.gpu(hosts[1]) for _ in range(2)]


@pytest.fixture
def open_calendar(page: Page, live_server: Any, client: Client) -> Callable[[User], Board]:
    def open_as(user: User) -> Board:
        client.force_login(user)
        session = client.cookies[settings.SESSION_COOKIE_NAME].value
        page.context.add_cookies(
            [{"name": settings.SESSION_COOKIE_NAME, "value": session, "url": live_server.url}]
        )
        page.goto(f"{live_server.url}/calendar/")
        expect(page.locator("#calendar[data-ready]")).to_be_visible()
        return Board(page)

    return open_as


def class_of(name: str) -> re.Pattern[str]:
    """Matches a class attribute that has the class."""
    return re.compile(rf"\b{name}\b")


def uuids(reservation: Reservation) -> set[str]:
    return set(reservation.gpus.values_list("uuid", flat=True))


# -- Booking -----------------------------------------------------------------------------------


def test_a_drag_over_three_gpus_books_them(
    open_calendar: Callable[[User], Board],
    alice: User,
    gpus: list[Gpu],
    console_errors: list[str],
) -> None:
    board = open_calendar(alice)
    start, end = half_hour(20), half_hour(26)
    board.drag(board.at(gpus[0], start + QUARTER), board.at(gpus[2], end - QUARTER))
    expect(board.page.locator("[data-chip]")).to_have_count(3)
    board.book("Fine-tuning")

    made = Reservation.objects.get()
    assert uuids(made) == {gpu.uuid for gpu in gpus[:3]}
    assert (made.starts_at, made.ends_at) == (start, end)
    assert (made.title, made.owner) == ("Fine-tuning", alice)
    expect(board.block(made)).to_have_count(1)
    expect(board.notice).to_contain_text("Booked: Fine-tuning, 3 GPUs")


def test_a_drag_across_hosts_is_one_reservation_in_two_blocks(
    open_calendar: Callable[[User], Board],
    alice: User,
    gpus: list[Gpu],
    console_errors: list[str],
) -> None:
    board = open_calendar(alice)
    start = half_hour(20)
    board.drag(board.at(gpus[4], start + QUARTER), board.at(gpus[3], start + 3 * QUARTER))
    board.book("Both hosts")
    made = Reservation.objects.get()
    assert uuids(made) == {gpus[3].uuid, gpus[4].uuid}
    expect(board.block(made)).to_have_count(2)


def test_the_same_by_keyboard_alone(
    open_calendar: Callable[[User], Board],
    alice: User,
    gpus: list[Gpu],
    console_errors: list[str],
) -> None:
    board = open_calendar(alice)
    keyboard = board.page.keyboard
    scroller = board.page.get_by_role("application")
    for _ in range(40):
        if scroller.evaluate("node => node === document.activeElement"):
            break
        keyboard.press("Tab")
    expect(scroller).to_be_focused()
    live = board.page.locator("[data-live]")
    expect(live).to_contain_text("gpu01 GPU 0")

    for key in ["Home", "Control+ArrowRight", "ArrowDown", "ArrowRight"]:
        keyboard.press(key)
    expect(live).to_contain_text("gpu01 GPU 1")
    expect(live).to_contain_text("free")
    for key in ["Shift+ArrowDown", "Shift+ArrowDown", "Shift+ArrowRight", "Shift+ArrowRight"]:
        keyboard.press(key)
    expect(live).to_contain_text("3 GPUs")
    expect(live).to_contain_text("1 h 30 min, free")
    keyboard.press("Enter")
    keyboard.type("By hand")
    keyboard.press("Enter")
    expect(board.notice).to_contain_text("Booked: By hand")

    made = Reservation.objects.get()
    assert uuids(made) == {gpu.uuid for gpu in gpus[1:4]}
    assert made.ends_at - made.starts_at == 3 * HALF_HOUR
    assert abs(made.starts_at - (timezone.now() + dt.timedelta(days=1))) <= HOUR
    expect(scroller).to_be_focused()


def test_the_form_alone_does_all_that_a_drag_does(
    open_calendar: Callable[[User], Board],
    alice: User,
    gpus: list[Gpu],
    console_errors: list[str],
) -> None:
    alice.time_zone = "Asia/Kathmandu"
    alice.save()
    board = open_calendar(alice)
    page = board.page
    page.get_by_role("button", name="Book…").click()
    page.get_by_label("GPU to add").select_option(label="All 4 GPUs of gpu01")
    page.get_by_role("button", name="Add", exact=True).click()
    page.get_by_role("button", name="Remove gpu01 GPU 3").click()
    page.get_by_label("Start now").uncheck()
    start = half_hour(30)
    zone = zoneinfo.ZoneInfo("Asia/Kathmandu")
    for label, moment in [("Start", start), ("End", start + 2 * HOUR)]:
        local = moment.astimezone(zone).strftime("%Y-%m-%dT%H:%M")
        page.get_by_label(label, exact=True).fill(local)
    expect(page.locator('[data-part="length"]')).to_have_text("2 h")
    board.book("Typed")

    made = Reservation.objects.get()
    assert uuids(made) == {gpu.uuid for gpu in gpus[:3]}
    assert (made.starts_at, made.ends_at) == (start, start + 2 * HOUR)


def test_what_is_booked_from_the_running_slot_starts_now(
    open_calendar: Callable[[User], Board],
    alice: User,
    gpus: list[Gpu],
    console_errors: list[str],
) -> None:
    board = open_calendar(alice)
    board.page.get_by_role("button", name="Book…").click()
    board.page.get_by_role("button", name="Add", exact=True).click()
    before = timezone.now()
    board.book("At once")
    made = Reservation.objects.get()
    assert abs(made.starts_at - before) < dt.timedelta(minutes=1)
    expect(board.block(made)).to_have_class(class_of("is-running"))


def wait_until_still(scroller: Locator) -> None:
    """A finger that comes down on something that still glides only stops it."""
    seen = None
    while (now := scroller.evaluate("node => node.scrollLeft")) != seen:
        seen = now
        scroller.page.wait_for_timeout(200)


@pytest.mark.parametrize("viewport", [{"width": 390, "height": 780}], ids=["phone"])
def test_a_finger_rests_then_drags_and_a_swipe_scrolls(
    browser: Any,
    viewport: dict[str, int],
    live_server: Any,
    client: Client,
    alice: User,
    gpus: list[Gpu],
) -> None:
    context = browser.new_context(viewport=viewport, has_touch=True, is_mobile=True)
    page = context.new_page()
    client.force_login(alice)
    session = client.cookies[settings.SESSION_COOKIE_NAME].value
    context.add_cookies(
        [{"name": settings.SESSION_COOKIE_NAME, "value": session, "url": live_server.url}]
    )
    page.goto(f"{live_server.url}/calendar/")
    expect(page.locator("#calendar[data-ready]")).to_be_visible()
    page.get_by_role("button", name="Later").click()
    width = page.evaluate("document.documentElement.scrollWidth")
    assert width <= viewport["width"]

    board = Board(page)
    scroller = page.locator("[data-scroller]")
    first, third = (board.box(page.locator(f'[data-gpu="{gpus[i].uuid}"]')) for i in (0, 2))
    x, y = 300.0, first["y"] + first["height"] / 2
    touch = page.context.new_cdp_session(page)

    def send(kind: str, *points: tuple[float, float]) -> None:
        touch.send(
            "Input.dispatchTouchEvent",
            {"type": kind, "touchPoints": [{"x": x, "y": y} for x, y in points]},
        )

    before = scroller.evaluate("node => node.scrollLeft")
    send("touchStart", (x, y))
    for step in range(10):
        send("touchMove", (x - 12 * step, y))
    send("touchEnd")
    expect(page.locator("dialog[open]")).to_have_count(0)
    assert scroller.evaluate("node => node.scrollLeft") > before
    wait_until_still(scroller)

    send("touchStart", (x, y))
    page.wait_for_timeout(500)  # a finger that rests
    for step in range(9):
        send("touchMove", (x - 5 * step, y + (third["y"] - first["y"]) * step / 8))
    send("touchEnd")
    expect(page.locator("[data-chip]")).to_have_count(3)
    context.close()


# -- Refusals ----------------------------------------------------------------------------------


def test_a_conflict_is_shown_in_words_while_dragging_and_refused(
    open_calendar: Callable[[User], Board],
    alice: User,
    bob: User,
    gpus: list[Gpu],
    console_errors: list[str],
) -> None:
    start = half_hour(20)
    taken = make.reservation(gpus[1], owner=bob, starts_at=start, ends_at=start + 4 * HOUR)
    board = open_calendar(alice)
    board.press(board.at(gpus[0], start - HOUR), board.at(gpus[2], start + HOUR))
    tip = board.page.locator("[data-tip]")
    expect(tip).to_contain_text("gpu01 GPU 1 is taken by bob until")
    expect(board.page.locator(".cal-selection.is-refused")).to_have_count(1)
    board.page.mouse.up()

    expect(board.notice).to_contain_text("gpu01 GPU 1 is taken by bob until")
    expect(board.page.locator("dialog[open]")).to_have_count(0)
    assert list(Reservation.objects.all()) == [taken]


def test_the_past_is_refused(
    open_calendar: Callable[[User], Board],
    alice: User,
    gpus: list[Gpu],
    console_errors: list[str],
) -> None:
    board = open_calendar(alice)
    board.page.get_by_role("button", name="Earlier").click()
    canvas = board.box(board.canvas)
    board.drag((canvas["x"] + 50, canvas["y"] + 40), (canvas["x"] + 150, canvas["y"] + 60))
    expect(board.notice).to_contain_text("It starts in the past.")
    assert not Reservation.objects.exists()


def test_the_servers_refusal_stands_in_the_form_and_nothing_is_lost(
    open_calendar: Callable[[User], Board], alice: User, bob: User, gpus: list[Gpu]
) -> None:
    board = open_calendar(alice)
    start = half_hour(20)
    board.drag(board.at(gpus[0], start + QUARTER), board.at(gpus[1], start + 3 * QUARTER))
    taken = make.reservation(gpus[0], owner=bob, starts_at=start, ends_at=start + HOUR)
    title = board.page.get_by_label("Title")
    title.fill("Too late")
    board.page.get_by_role("button", name="Book", exact=True).click()

    expect(board.page.get_by_role("alert").filter(has_text="bob")).to_be_visible()
    expect(title).to_have_value("Too late")
    expect(board.page.locator("[data-chip]")).to_have_count(2)
    assert list(Reservation.objects.all()) == [taken]


def test_a_form_without_title_or_gpus_says_so_beside_the_fields(
    open_calendar: Callable[[User], Board],
    alice: User,
    gpus: list[Gpu],
    console_errors: list[str],
) -> None:
    board = open_calendar(alice)
    board.page.get_by_role("button", name="Book…").click()
    board.page.get_by_role("button", name="Book", exact=True).click()
    expect(board.page.get_by_text("Say what it is for.")).to_be_visible()
    expect(board.page.get_by_text("Choose at least one GPU.")).to_be_visible()
    expect(board.page.get_by_label("Title")).to_be_focused()
    assert not Reservation.objects.exists()


# -- Changing ----------------------------------------------------------------------------------


@pytest.fixture
def mine(alice: User, gpus: list[Gpu]) -> Reservation:
    start = half_hour(20)
    return make.reservation(
        gpus[0], gpus[1], owner=alice, starts_at=start, ends_at=start + 4 * HOUR, title="Mine"
    )


def test_a_block_is_moved_in_time_and_to_other_gpus(
    open_calendar: Callable[[User], Board],
    alice: User,
    gpus: list[Gpu],
    mine: Reservation,
    console_errors: list[str],
) -> None:
    board = open_calendar(alice)
    before = mine.starts_at
    taken_at = before + 2 * HOUR
    board.drag(board.at(gpus[0], taken_at), board.at(gpus[2], taken_at + 6 * HOUR))
    expect(board.notice).to_contain_text("Changed: Mine")
    expect(board.page.locator("dialog[open]")).to_have_count(0)

    mine.refresh_from_db()
    assert uuids(mine) == {gpus[2].uuid, gpus[3].uuid}
    assert (mine.starts_at, mine.ends_at) == (before + 6 * HOUR, before + 10 * HOUR)


@pytest.mark.parametrize("edge", ["start", "end"])
def test_a_block_is_resized_at_either_edge(
    open_calendar: Callable[[User], Board],
    alice: User,
    gpus: list[Gpu],
    mine: Reservation,
    console_errors: list[str],
    edge: str,
) -> None:
    board = open_calendar(alice)
    start, end = mine.starts_at, mine.ends_at
    at = start if edge == "start" else end
    inside = 3 if edge == "start" else -3
    x, y = board.at(gpus[0], at)
    board.drag((x + inside, y), board.at(gpus[0], at + 2 * HOUR))
    expect(board.notice).to_contain_text("Changed: Mine")

    mine.refresh_from_db()
    expected = (start + 2 * HOUR, end) if edge == "start" else (start, end + 2 * HOUR)
    assert (mine.starts_at, mine.ends_at) == expected
    assert uuids(mine) == {gpus[0].uuid, gpus[1].uuid}


def test_a_move_that_the_server_refuses_goes_back_and_says_why(
    open_calendar: Callable[[User], Board],
    alice: User,
    bob: User,
    gpus: list[Gpu],
    mine: Reservation,
) -> None:
    board = open_calendar(alice)
    start, end = mine.starts_at, mine.ends_at
    make.reservation(gpus[2], owner=bob, starts_at=start, ends_at=end)
    block = board.block(mine)
    before = block.bounding_box()
    board.drag(board.at(gpus[0], start + 2 * HOUR), board.at(gpus[2], start + 2 * HOUR))

    expect(board.notice).to_contain_text("Not changed.")
    expect(board.notice).to_contain_text("bob")
    assert block.bounding_box() == before
    mine.refresh_from_db()
    assert (mine.starts_at, uuids(mine)) == (start, {gpus[0].uuid, gpus[1].uuid})


def test_others_blocks_cannot_be_moved(
    open_calendar: Callable[[User], Board],
    bob: User,
    gpus: list[Gpu],
    mine: Reservation,
    console_errors: list[str],
) -> None:
    board = open_calendar(bob)
    start = mine.starts_at
    board.drag(board.at(gpus[0], start + HOUR), board.at(gpus[2], start + 2 * HOUR))
    expect(board.notice).to_contain_text("taken by alice")
    mine.refresh_from_db()
    assert (mine.starts_at, uuids(mine)) == (start, {gpus[0].uuid, gpus[1].uuid})


def test_escape_ends_a_drag_without_effect(
    open_calendar: Callable[[User], Board],
    alice: User,
    gpus: list[Gpu],
    mine: Reservation,
    console_errors: list[str],
) -> None:
    board = open_calendar(alice)
    start = mine.starts_at
    board.press(board.at(gpus[0], start + HOUR), board.at(gpus[2], start + 3 * HOUR))
    board.page.keyboard.press("Escape")
    board.page.mouse.up()
    expect(board.page.locator(".cal-selection-box")).to_have_count(0)
    expect(board.page.locator("dialog[open]")).to_have_count(0)
    mine.refresh_from_db()
    assert (mine.starts_at, uuids(mine)) == (start, {gpus[0].uuid, gpus[1].uuid})


def test_a_click_opens_the_details_and_cancelling_asks_first(
    open_calendar: Callable[[User], Board],
    alice: User,
    gpus: list[Gpu],
    mine: Reservation,
    console_errors: list[str],
) -> None:
    board = open_calendar(alice)
    board.block(mine).click()
    dialog = board.page.get_by_role("dialog")
    expect(dialog).to_contain_text("alice (you)")
    expect(dialog).to_contain_text("gpu01 GPU 0–1")
    expect(dialog.get_by_role("button", name="Release now")).to_be_hidden()
    dialog.get_by_role("button", name="Cancel reservation").click()
    mine.refresh_from_db()
    assert mine.cancelled_at is None
    dialog.get_by_role("button", name="Yes, cancel it").click()
    expect(board.notice).to_contain_text("Cancelled: Mine")
    expect(board.block(mine)).to_have_class(class_of("is-cancelled"))

    mine.refresh_from_db()
    assert mine.cancelled_at is not None
    board.page.get_by_label("Show cancelled").uncheck()
    expect(board.block(mine)).to_have_count(0)


def test_a_running_reservation_is_released(
    open_calendar: Callable[[User], Board],
    alice: User,
    gpus: list[Gpu],
    console_errors: list[str],
) -> None:
    now = timezone.now()
    running = make.reservation(
        gpus[0], owner=alice, starts_at=now - HALF_HOUR, ends_at=now + 20 * HOUR
    )
    board = open_calendar(alice)
    board.block(running).click()
    dialog = board.page.get_by_role("dialog")
    expect(dialog.get_by_role("button", name="Cancel reservation")).to_be_hidden()
    dialog.get_by_role("button", name="Release now").click()
    dialog.get_by_role("button", name="Yes, release it").click()
    expect(board.notice).to_contain_text("Released")
    running.refresh_from_db()
    assert running.released_at is not None
    assert running.ends_at <= timezone.now()


def test_others_see_the_details_without_the_actions(
    open_calendar: Callable[[User], Board],
    bob: User,
    mine: Reservation,
    console_errors: list[str],
) -> None:
    board = open_calendar(bob)
    board.block(mine).click()
    dialog = board.page.get_by_role("dialog")
    expect(dialog).to_contain_text("alice")
    for name in ["Cancel reservation", "Release now", "Edit"]:
        expect(dialog.get_by_role("button", name=name)).to_be_hidden()


def test_editing_sends_only_what_was_changed(
    open_calendar: Callable[[User], Board],
    alice: User,
    mine: Reservation,
    console_errors: list[str],
) -> None:
    board = open_calendar(alice)
    board.block(mine).click()
    board.page.get_by_role("button", name="Edit").click()
    board.page.get_by_label("Title").fill("Mine, renamed")
    with board.page.expect_request(lambda request: request.method == "PATCH") as sent:
        board.page.get_by_role("button", name="Save").click()
    assert sent.value.post_data_json == {"title": "Mine, renamed"}
    expect(board.notice).to_contain_text("Saved: Mine, renamed")
    mine.refresh_from_db()
    assert mine.title == "Mine, renamed"


# -- Looking around ---------------------------------------------------------------------------


def test_zooms_and_pages_keep_to_the_readers_days(
    open_calendar: Callable[[User], Board],
    alice: User,
    gpus: list[Gpu],
    console_errors: list[str],
) -> None:
    alice.time_zone = "Europe/Warsaw"
    alice.save()
    page = open_calendar(alice).page
    expect(page.get_by_text("Times: Europe/Warsaw")).to_be_visible()
    day = page.get_by_label("Go to day")
    period = page.locator("[data-period]")
    day.fill("2027-03-28")
    expect(page.get_by_text("23 h: the clocks change")).to_be_visible()
    for zoom, text in [
        ("Day", "Sun 28 Mar 2027"),
        ("3 days", "Sun 28 Mar – Tue 30 Mar 2027"),
        ("Week", "Mon 22 Mar – Sun 28 Mar 2027"),
        ("2 weeks", "Mon 22 Mar – Sun 4 Apr 2027"),
    ]:
        page.get_by_role("button", name=zoom, exact=True).click()
        day.fill("2027-03-28")
        expect(period).to_have_text(text)
    page.get_by_role("button", name="Later").click()
    expect(period).to_have_text("Mon 5 Apr – Sun 18 Apr 2027")
    page.reload()
    expect(page.locator("#calendar[data-ready]")).to_be_visible()
    chosen = page.get_by_role("button", name="2 weeks", exact=True)
    expect(chosen).to_have_attribute("aria-pressed", "true")
    expect(page.locator(".cal-now")).to_be_visible()


# -- Staying true ------------------------------------------------------------------------------


def test_a_booking_of_somebody_else_appears_by_itself_but_not_into_a_drag(
    open_calendar: Callable[[User], Board],
    page: Page,
    alice: User,
    bob: User,
    gpus: list[Gpu],
    console_errors: list[str],
) -> None:
    page.clock.install()
    board = open_calendar(alice)
    start = half_hour(20)
    board.press(board.at(gpus[2], start + QUARTER), board.at(gpus[3], start + HOUR))
    selection = page.locator(".cal-selection-box")
    expect(selection).to_have_count(1)
    theirs = make.reservation(gpus[0], owner=bob, starts_at=start, ends_at=start + HOUR)
    page.clock.run_for(16_000)
    expect(selection).to_have_count(1)
    expect(board.block(theirs)).to_have_count(0)

    page.keyboard.press("Escape")
    page.mouse.up()
    page.clock.run_for(16_000)
    expect(board.block(theirs)).to_have_count(1)


def test_a_host_that_does_not_answer_is_grey_and_says_why(
    open_calendar: Callable[[User], Board],
    alice: User,
    gpus: list[Gpu],
    console_errors: list[str],
) -> None:
    reason = "No answer: <b>connection</b> timed out."
    Host.objects.filter(name="gpu02").update(state=Host.State.UNREACHABLE, reason=reason)
    board = open_calendar(alice)
    expect(board.page.get_by_text(reason)).to_be_visible()
    expect(board.page.locator('[data-host="gpu02"]')).to_have_class(class_of("is-away"))
    expect(board.page.locator('[data-host="gpu01"]')).not_to_have_class(class_of("is-away"))


def test_a_host_that_stops_to_answer_turns_grey_on_the_open_page(
    open_calendar: Callable[[User], Board],
    page: Page,
    alice: User,
    gpus: list[Gpu],
    console_errors: list[str],
) -> None:
    page.clock.install()
    board = open_calendar(alice)
    group = board.page.locator('[data-host="gpu02"]')
    expect(group).not_to_have_class(class_of("is-away"))
    Host.objects.filter(name="gpu02").update(
        state=Host.State.UNREACHABLE, reason="No answer since noon."
    )
    page.clock.run_for(61_000)
    expect(group).to_have_class(class_of("is-away"))
    expect(page.get_by_text("No answer since noon.")).to_be_visible()


def test_text_of_people_stays_text(
    open_calendar: Callable[[User], Board],
    alice: User,
    gpus: list[Gpu],
    console_errors: list[str],
) -> None:
    start = half_hour(10)
    title = "<img src=x onerror=alert(1)>"
    made = make.reservation(
        gpus[0], owner=alice, starts_at=start, ends_at=start + 20 * HOUR, title=title
    )
    board = open_calendar(alice)
    expect(board.block(made)).to_contain_text(title)
    board.block(made).click()
    expect(board.page.get_by_role("heading", name=title)).to_be_visible()


@pytest.mark.parametrize("is_staff", [True, False], ids=["administrator", "person"])
def test_without_gpus_the_page_says_what_to_do_next(
    page: Page,
    live_server: Any,
    client: Client,
    console_errors: list[str],
    is_staff: bool,
) -> None:
    client.force_login(make.user("carol", is_staff=is_staff))
    session = client.cookies[settings.SESSION_COOKIE_NAME].value
    page.context.add_cookies(
        [{"name": settings.SESSION_COOKIE_NAME, "value": session, "url": live_server.url}]
    )
    page.goto(f"{live_server.url}/calendar/")
    expect(page.get_by_role("heading", name="No GPUs are known yet")).to_be_visible()
    expect(page.locator("#calendar")).to_be_hidden()
    link = page.get_by_role("link", name="Add a host")
    expect(link).to_have_count(1 if is_staff else 0)
