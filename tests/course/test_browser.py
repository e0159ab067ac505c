"""The book of the lessons in a real browser that reaches no network."""

import contextlib
import re
import shutil

import pytest

from cnnlab.course import pages
from cnnlab.course.parts import NOTEBOOKS

pytestmark = pytest.mark.browser
NAMES = "00_start_here", "54_server", "glossary", "methods"
DESKTOP = {"viewport": {"width": 1280, "height": 800}}
PHONE = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}


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


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The pages of two lessons, the glossary and the table of methods, as they are stored."""
    folder = tmp_path_factory.mktemp("course")
    (folder / "notebooks").mkdir()
    for file in (file for file in NOTEBOOKS.iterdir() if file.stem in NAMES):
        shutil.copy(file, folder / "notebooks")
    book = pages.Book(folder / "notebooks", folder / "build")
    book.build()
    return book.folder


@pytest.fixture
def opened(chromium, site):
    """A function that opens a page; none may report an error, or ask for what is no file here."""
    with contextlib.ExitStack() as stack:
        wrong = []

        def open_(name, **options):
            context = stack.enter_context(chromium.new_context(offline=True, **options))
            page = context.new_page()
            page.on("console", lambda said: said.type == "error" and wrong.append(said.text))
            page.on("pageerror", lambda error: wrong.append(str(error)))
            page.on(
                "request",
                lambda asked: re.match("file:|data:", asked.url) or wrong.append(asked.url),
            )
            page.goto(f"{site.as_uri()}/{name}")
            return page

        yield open_
        assert not wrong


@pytest.mark.parametrize("screen", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_pages_fit_the_screen_and_their_images_and_formulas_are_drawn(opened, screen):
    for name in ("index", *NAMES):
        page = opened(f"{name}.html", **screen)
        width = page.evaluate("document.documentElement.scrollWidth")
        assert width <= screen["viewport"]["width"], f"{name} is too wide"
        assert page.evaluate("[...document.images].every((image) => image.naturalWidth > 0)")
    page = opened("00_start_here.html", **screen)
    page.locator("mjx-container").first.wait_for()


def test_search_works_from_a_file_and_leads_to_the_glossary(opened):
    page = opened("search.html?q=latency", **DESKTOP)
    page.locator("ul.search li a").first.wait_for()
    result = page.locator("ul.search li a").evaluate_all("(all) => all.map((a) => a.href)")
    there = next(link for link in result if "glossary.html#" in link)
    page.goto(there)
    assert page.locator(f"[id='{there.partition('#')[2]}']").is_visible()


def test_on_a_phone_sentences_wrap_tables_do_not_and_plots_grow_at_a_tap(opened):
    page = opened("54_server.html", **PHONE)
    wide = "(all) => all.map((e) => [e.textContent, e.scrollWidth > e.clientWidth])"
    for text, is_wide in page.locator(".cell_output pre").evaluate_all(wide):
        assert not is_wide or re.search(r"\S {2,}\S|^ ", text, re.MULTILINE), text
    plot, width = page.locator("img.plot").first, PHONE["viewport"]["width"]
    for grown in (False, True, False):
        assert (plot.bounding_box()["width"] > 2 * width) == grown
        plot.tap()


def test_without_scripts_all_is_there_to_read_and_formulas_are_tex(opened):
    page = opened("00_start_here.html", java_script_enabled=False, **DESKTOP)
    text = page.locator("article").inner_text()
    assert "The network" in text and r"\frac{1}{1+e^{-z}}" in text.replace(" ", "")
    assert page.locator("img.plot").first.is_visible()
    answers = page.locator("details", has_text="Exercise 1").first
    answers.locator("summary").click()
    assert answers.locator("pre").first.is_visible()
