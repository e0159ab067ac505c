"""A real browser: Debian's Chromium, led by Playwright. What needs it is skipped without."""

import shutil

import pytest


@pytest.fixture(scope="module")
def chromium():
    """The browser, for one module: while Playwright runs, its thread has no other event loop."""
    reason = "no Playwright: make browser installs it"
    playwright = pytest.importorskip("playwright.sync_api", reason=reason)
    if not (program := shutil.which("chromium") or shutil.which("google-chrome")):
        pytest.skip("no Chromium (Debian: apt install chromium)")
    with playwright.sync_playwright() as leader:
        browser = leader.chromium.launch(executable_path=program)
        yield browser
        browser.close()
