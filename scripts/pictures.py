"""Take the pictures of the README from a running `make demo`: scripts/pictures.py [ADDRESS]."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "pictures"
PASSWORD = "tensorhive-demo"  # noqa: S105  the demo's, printed by it
# File, page, theme, width and height.
PICTURES = (
    ("dashboard.png", "/", "light", 1280, 860),
    ("calendar.png", "/calendar/", "light", 1280, 760),
    ("host-dark.png", "/hosts/hive02/", "dark", 1280, 900),
    ("calendar-phone-dark.png", "/calendar/", "dark", 390, 780),
)


def main() -> None:
    address = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8000"
    FOLDER.mkdir(exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        for name, path, theme, width, height in PICTURES:
            page = _signed_in(browser, address, theme, width, height)
            page.goto(address + path)
            # The pages fetch what they show; then the picture stands still.
            page.wait_for_load_state("networkidle")
            page.screenshot(path=FOLDER / name)
        browser.close()


def _signed_in(browser: Browser, address: str, theme: str, width: int, height: int) -> Page:
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme="dark" if theme == "dark" else "light",
        locale="en-GB",
    )
    page = context.new_page()
    page.goto(f"{address}/login/")
    page.fill("input[name=username]", "alice")
    page.fill("input[name=password]", PASSWORD)
    page.click("main button[type=submit]")
    return page


if __name__ == "__main__":
    main()
