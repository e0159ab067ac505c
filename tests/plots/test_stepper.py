"""A stepper is the same bytes each time, tells without scripts what it tells with them."""

import re
import shutil
import sys
from html.parser import HTMLParser

import matplotlib.pyplot as plt
import numpy as np
import pytest

from cnnlab.plots.stepper import MAX_BYTES, stepper


def bar(height):
    def draw(ax):
        ax.bar(0, height)
        ax.set_xlabel("rank")

    return draw


def three(title="A sum grows"):
    captions = [f"Rank {k} adds <{k} & more>." for k in range(3)]
    return stepper([bar(k) for k in range(3)], title=title, captions=captions)


class Page(HTMLParser):
    """The elements of HTML by tag, with their attributes, and the text outside scripts."""

    def __init__(self, html):
        super().__init__()
        self.result, self.text, self.open = {}, "", []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.result.setdefault(tag, []).append(dict(attrs))
        self.open += [tag] * (tag != "img")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data * (self.open[-1:] != ["script"])


def test_the_same_frames_are_the_same_bytes_and_few():
    assert three().html == three().html
    assert len(three().html.encode()) < MAX_BYTES


def test_without_scripts_all_frames_stand_there_with_their_captions():
    page = Page(three().html)
    assert len(page.result["img"]) == 3 and not page.open
    for k, image in enumerate(page.result["img"]):
        assert image["src"].startswith("data:image/png;base64,")
        assert image["alt"].startswith(f"Frame {k + 1} of 3. Rank {k} adds <{k} & more>.")
        assert "Horizontal: rank" in image["alt"], "the picture is described as any other"
        assert f"{k + 1} of 3. Rank {k} adds <{k} & more>." in page.text
    hidden = [e for tags in page.result.values() for e in tags if "none" in str(e.get("style"))]
    assert not hidden
    assert not page.result.keys() & {"style", "button", "input", "svg"}, "the script brings these"


def test_two_on_a_page_share_no_name_and_nothing_is_loaded():
    html = three().html + three("Another").html
    page = Page(html)
    assert not re.findall(r"\bid=", html)
    labels = [e["aria-label"] for e in page.result["div"] if e.get("role") == "group"]
    assert labels == ["A sum grows", "Another"]
    assert not re.findall(r"https?:|\bsrc=\"(?!data:)|\bimport\b|\bfetch\b", html)


def test_figures_are_frames_too_and_a_notebook_does_not_show_them_again():
    figures = [plt.figure(figsize=(3, 2)) for _ in range(2)]
    for k, page in enumerate(figures):
        page.add_subplot().imshow(np.full((2, 2), k))
    shown = stepper(figures, title="Two", captions=["One thing.", "Another."])
    assert not plt.get_fignums()
    assert len(shown) == 2 and repr(shown) == "Two: 2 frames"
    assert shown._repr_html_() == shown.html and 'data-width="300px"' in shown.html


@pytest.mark.parametrize(
    "arguments, problem",
    [
        (([], "t", []), "frames: expected at least one"),
        (([bar(1)], " ", ["a"]), "title: expected some words"),
        (([bar(1), bar(2)], "t", ["a"]), "captions: expected one for each of 2 frames, got 1"),
        (([bar(1)], "t", [""]), "captions: expected one for each of 1 frames, got 1, 1 of them"),
    ],
)
def test_bad_input_is_named(arguments, problem):
    frames, title, captions = arguments
    with pytest.raises(ValueError, match=problem):
        stepper(frames, title=title, captions=captions)


def test_too_many_bytes_are_refused(monkeypatch):
    monkeypatch.setattr(sys.modules[stepper.__module__], "MAX_BYTES", 2000)
    with pytest.raises(ValueError, match=r"frames: expected at most 2,000 bytes in all, got"):
        three()


@pytest.mark.browser
def test_keys_step_through_one_of_two_a_frame_at_a_time():
    playwright = pytest.importorskip("playwright.sync_api", reason="no Playwright")
    if not (program := shutil.which("chromium") or shutil.which("google-chrome")):
        pytest.skip("no Chromium (Debian: apt install chromium)")
    with playwright.sync_playwright() as leader:
        browser = leader.chromium.launch(executable_path=program)
        page = browser.new_page(viewport={"width": 390, "height": 800})
        page.set_content(three().html + three().html)
        said, seen = page.locator("output"), page.locator("img:visible")
        assert seen.count() == 2
        page.locator(".cnnlab-frames").first.focus()
        for key, at in [("ArrowRight", 2), ("End", 3), ("ArrowRight", 3), ("ArrowLeft", 2)]:
            page.keyboard.press(key)
            assert said.nth(0).inner_text().startswith(f"{at} of 3. Rank {at - 1}"), key
        page.locator("input").nth(1).press("ArrowRight")
        page.get_by_label("Previous frame").first.click()
        assert [text[:6] for text in said.all_inner_texts()] == ["1 of 3", "2 of 3"]
        assert seen.count() == 2
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        browser.close()
