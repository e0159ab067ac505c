"""The pages of the course in a real browser."""

import contextlib
import functools
import re
import shutil
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

import nbformat
import pytest

from cnnlab.course import pages
from tests.source import NOTEBOOKS

pytestmark = pytest.mark.browser
LESSONS = sorted(file.stem for file in NOTEBOOKS.glob("*.ipynb"))
PAGES = [*LESSONS, *sorted(file.stem for file in NOTEBOOKS.glob("*.md")), "index"]
DESKTOP = {"viewport": {"width": 1440, "height": 800}}
PHONE = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}
CLIPBOARD = ["clipboard-read", "clipboard-write"]
GONE = "net::ERR_ABORTED"  # a link that became a download
UNTOLD = {None, "", "A figure", "No description has been provided for this image"}
FACTS = """() => ({
  ids: [...document.querySelectorAll("[id]")].map((e) => e.id),
  links: [...document.links].map((e) => e.href),
  images: [...document.images].map((e) => ({alt: e.getAttribute("alt"), drawn: e.naturalWidth})),
  width: document.documentElement.scrollWidth,
})"""
IN_SIGHT = """(element) => {
  const {top, bottom} = element.getBoundingClientRect();
  return top >= document.querySelector("header").offsetHeight && bottom <= innerHeight;
}"""


@pytest.fixture
def opened(chromium):
    """A function that opens an address in a window of its own; no page may report an error."""
    with contextlib.ExitStack() as stack:
        wrong = []

        def open_(address="about:blank", **options):
            context = stack.enter_context(chromium.new_context(**options))
            page = context.new_page()
            page.on("console", lambda said: said.type == "error" and wrong.append(said.text))
            page.on("pageerror", lambda error: wrong.append(str(error)))
            page.on(
                "requestfailed", lambda asked: asked.failure != GONE and wrong.append(asked.url)
            )
            page.goto(address)
            return page

        yield open_
        assert not wrong


@pytest.fixture(scope="module")
def site(chromium, tmp_path_factory):
    """The pages as `make course` writes them, from the lessons as they are stored."""
    folder = tmp_path_factory.mktemp("site")
    lessons = {name: nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4) for name in LESSONS}
    for name in lessons:
        shutil.copy(NOTEBOOKS / f"{name}.ipynb", folder)
    pages.write(lessons, set(), [], NOTEBOOKS, folder)
    return folder


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *words):
        """Nothing is said of a request."""


def arrived(page, name):
    """Wait until a page is open: "30_cuda_grid.html#exercises"."""
    page.wait_for_url(f"**/{name}")


@pytest.mark.parametrize("screen", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_every_page_is_drawn_and_every_link_leads_somewhere(site, opened, screen):
    assert {file.stem for file in site.glob("*.html")} == set(PAGES)
    page, facts = opened(**screen), {}
    for name in PAGES:
        page.goto((site / f"{name}.html").as_uri())
        facts[name] = found = page.evaluate(FACTS)
        assert found["width"] <= screen["viewport"]["width"], f"{name} is too wide"
        assert not [image for image in found["images"] if image["alt"] in UNTOLD], name
        assert all(image["drawn"] for image in found["images"]), name
    sections = page.evaluate("load().then(() => SECTIONS)")
    targets = [f"{site.as_uri()}/{s['page']}.html#{s['anchor']}" for s in sections]
    for link in {link for found in facts.values() for link in found["links"]} | set(targets):
        address = urlsplit(link)
        if address.scheme == "file":
            file = site / unquote(address.path).rpartition("/")[2]
            assert file.is_file() and file.as_uri() == address._replace(fragment="").geturl(), link
            assert not address.fragment or unquote(address.fragment) in facts[file.stem]["ids"], (
                link
            )


def test_next_leads_through_every_lesson(site, opened):
    page = opened((site / f"{LESSONS[0]}.html").as_uri(), **DESKTOP)
    for name in LESSONS[1:]:
        page.get_by_role("link", name="next →").click()
        arrived(page, f"{name}.html")
    assert not page.get_by_role("link", name="next →").count()
    page.get_by_role("link", name="← back").click()
    arrived(page, f"{LESSONS[-2]}.html")


@pytest.mark.parametrize("screen", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_the_sidebars_lead_to_a_lesson_and_to_a_section(site, opened, screen):
    page = opened((site / "index.html").as_uri(), **screen)
    lessons, contents = (page.locator(f"nav#{name}") for name in ("lessons", "contents"))
    if screen is PHONE:
        assert not lessons.is_visible()
        page.get_by_role("button", name="☰").tap()
    title = "30 · The grid"
    lessons.get_by_role("link", name=title).click()
    arrived(page, "30_cuda_grid.html")
    assert page.locator("h1").inner_text().startswith(title)
    assert lessons.locator("[aria-current]").text_content() == title
    if screen is PHONE:
        assert not lessons.is_visible() and not contents.is_visible()
        page.get_by_role("button", name="On this page").tap()
    contents.get_by_role("link", name="Exercises").click()
    arrived(page, "30_cuda_grid.html#exercises")
    assert page.locator("#exercises").evaluate(IN_SIGHT)
    assert contents.is_visible() == (screen is DESKTOP)


@pytest.mark.parametrize("screen", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_search_finds_what_is_asked_for_and_enter_goes_there(site, opened, screen):
    page = opened((site / "00_start_here.html").as_uri(), **screen)
    found = page.get_by_role("search").get_by_role("listitem")
    page.keyboard.press("/")
    page.keyboard.type("warp")
    found.first.wait_for()
    assert page.get_by_role("searchbox").input_value() == "warp"
    assert found.get_by_role("link").first.inner_text() == "Glossary: warp"
    assert found.count() == 20 and all("warp" in text.lower() for text in found.all_inner_texts())
    box = found.first.bounding_box()
    assert box["x"] >= 0 and box["x"] + box["width"] <= screen["viewport"]["width"]
    page.keyboard.press("Escape")
    assert not found.count()
    page.keyboard.type("\b\b\b\bno such words")
    found.filter(has_text="Nothing found").wait_for()
    page.get_by_role("searchbox").fill("memory bank conflict")
    found.first.filter(has_text="bank").wait_for()
    page.get_by_role("searchbox").fill("warp")
    page.keyboard.press("Enter")
    arrived(page, "glossary.html#warp")
    assert page.locator("#warp").evaluate(IN_SIGHT)


def test_dark_pages_are_chosen_by_the_system_or_by_the_reader_and_stay_so(site, opened):
    def brightness():
        """Of the page, from 0 to 255, and of its text."""
        style = "getComputedStyle(document.body)"
        colours = page.evaluate(f"[{style}.backgroundColor, {style}.color]")
        return [int(re.search(r"\d+", colour)[0]) for colour in colours]

    for system in ("light", "dark"):
        page = opened((site / "index.html").as_uri(), color_scheme=system, **DESKTOP)
        for dark in (system == "dark", system != "dark", system == "dark"):
            for again in range(2):
                if again:
                    page.get_by_role("link", name="01 ·").first.click()
                    arrived(page, "01_convolution.html")
                back, text = brightness()
                assert (back < 60 and text > 200) if dark else (back > 200 and text < 60)
            page.get_by_role("button", name="Dark or light").click()


def test_the_copy_button_copies_a_cell_as_it_is_in_the_notebook(site, opened):
    name = "01_convolution"
    page = opened((site / f"{name}.html").as_uri(), permissions=CLIPBOARD, **DESKTOP)
    cells = nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4).cells
    sources = [cell.source for cell in cells if cell.cell_type == "code"]
    for source in (sources[1], max(sources, key=len)):
        block = page.locator(".jp-CodeCell .highlight").nth(sources.index(source))
        block.hover()
        block.get_by_role("button", name="Copy").click()
        block.get_by_role("button", name="Copied").wait_for()
        assert page.evaluate("navigator.clipboard.readText()") == source.rstrip()


def test_on_a_phone_sentences_wrap_tables_do_not_and_plots_grow_at_a_tap(site, opened):
    page = opened((site / "54_server.html").as_uri(), **PHONE)
    printed = page.locator(".jp-OutputArea-output pre")
    wide = "(all) => all.map((e) => [e.textContent, e.scrollWidth > e.clientWidth])"
    found = printed.evaluate_all(wide)
    tables = [re.search(r"\S {2,}\S|^ ", text, re.MULTILINE) for text, _ in found]
    assert not [text for (text, is_wide), t in zip(found, tables, strict=True) if is_wide and not t]
    assert any(is_wide for (_, is_wide), t in zip(found, tables, strict=True) if t)
    plot, width = page.locator(".jp-RenderedImage img").first, PHONE["viewport"]["width"]
    assert plot.bounding_box()["width"] <= width
    plot.tap()
    assert plot.bounding_box()["width"] > 2 * width
    plot.tap()
    assert plot.bounding_box()["width"] <= width


@pytest.mark.parametrize("screen", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_the_menu_shows_where_one_is(site, opened, screen):
    page = opened((site / "59_which_one_here.html").as_uri(), **screen)
    if screen is PHONE:
        page.get_by_role("button", name="☰").tap()
    here = page.locator("nav#lessons [aria-current]")
    page.wait_for_function("(e) => document.querySelector('nav#lessons').scrollTop > 0")
    assert here.evaluate(IN_SIGHT)


def test_the_notebook_is_downloaded_from_a_server(site, opened):
    """From a file, Chromium shows it instead."""
    handler = functools.partial(Quiet, directory=site)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        page = opened(f"http://127.0.0.1:{server.server_port}/30_cuda_grid.html", **DESKTOP)
        with page.expect_download() as download:
            page.get_by_role("link", name="Download the notebook").first.click()
        server.shutdown()
    assert download.value.suggested_filename == "30_cuda_grid.ipynb"
    assert download.value.path().read_bytes() == (site / "30_cuda_grid.ipynb").read_bytes()
