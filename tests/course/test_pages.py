"""The book of the lessons: whole, offline, and with a lesson's own page once it has run."""

import base64
import io
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import nbformat
import psutil
import pytest
from nbformat.v4 import new_markdown_cell, new_output
from PIL import Image

from cnnlab.course import pages
from cnnlab.course.parts import NOTEBOOKS
from tests.course.toy_lesson import GITHUB, PLOT, toy, write

LINKS = """See [latency](glossary.md#latency), [Amdahl](glossary.md#amdahls-law),
[01](01_b.ipynb).

$$\\sigma(z) = \\frac{1}{1 + e^{-z}}$$

<details>
<summary>Exercise 1</summary>

```python
x = 1
```

So *there*.

</details>"""
GUIDE = '# Guide\n\nSee [cell](00_a.ipynb "n = \'cell\'"), [gone](00_a.ipynb "no such words").'
CUDA = '%%cuda mine\nextern "C" __global__ void f(float* y) { y[0] = a > 0 ? 1 : 2; }'


class Page(HTMLParser):
    """What a page links to and loads, its ids, and its images without alternative text."""

    def __init__(self, file):
        super().__init__()
        self.links, self.loads, self.ids, self.silent = [], [], set(), []
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.ids |= {given[key] for key in ("id", "name") if key in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        elif "src" in given or given.get("rel") in ("stylesheet", "icon", "preload"):
            self.loads.append(given.get("src") or given["href"])
        if tag == "img" and not given.get("alt"):
            self.silent.append(given)


def faults(folder):
    """What is wrong with the pages of a folder: dead links, loads from elsewhere, mute images."""
    result = {file.name: Page(file) for file in folder.glob("*.html")}
    wrong = [(name, image) for name, page in result.items() for image in page.silent]
    for name, page in result.items():
        for link in page.loads:
            file = folder / link.partition("?")[0]
            if not link.startswith("data:") and not file.is_file():
                wrong.append((name, link))
        for link in page.links:
            file, _, anchor = unquote(link.partition("?")[0]).partition("#")
            if re.match(r"https?:|mailto:", link):
                continue
            there = (folder / file).is_file() or not file
            ids = result[file or name].ids if (file or name) in result else {anchor}
            if not there or (anchor and anchor not in ids):
                wrong.append((name, link))
    for file in folder.glob("_static/**/*.css"):
        loads = re.findall(r"(?:url\(|@import )[\"']?(https?:[^)\"']+)", file.read_text("utf-8"))
        wrong += [(file.name, link) for link in loads]
    return wrong


def figure():
    file = io.BytesIO()
    Image.new("RGB", (80, 10)).save(file, "png", dpi=(200, 200))
    png = base64.b64encode(file.getvalue()).decode()
    alt = {"image/png": {"alt": 'Two "bars" & more'}}
    return new_output("display_data", {"image/png": png}, metadata=alt)


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    """The pages of two lessons and two texts, as they are stored."""
    folder = tmp_path_factory.mktemp("course")
    (folder / "notebooks").mkdir()
    first = toy("n = 'cell'", "my_guess = ...  # how many", CUDA)
    first.cells[2].outputs = [figure(), figure()]
    first.cells.insert(5, new_markdown_cell(LINKS))
    write(folder / "notebooks", "00_a", first)
    write(folder / "notebooks", "01_b", toy("print(1)"))
    glossary = "# Glossary\n\n### Amdahl's law\n\nA bound.\n\n### latency\n\nTime.\n"
    (folder / "notebooks" / "glossary.md").write_text(glossary, encoding="utf-8")
    (folder / "notebooks" / "guide.md").write_text(GUIDE, encoding="utf-8")
    made = pages.Book(folder / "notebooks", folder / "build")
    assert made.build() == ""  # without a warning
    return made


def test_no_link_is_dead_nothing_is_loaded_from_elsewhere_and_images_are_described(book):
    assert not faults(book.folder)
    assert {path.name for path in book.folder.parent.iterdir()} == {"book", "course"}
    assert (book.folder / "_static" / "mathjax" / "tex-chtml.js").is_file()


def test_a_page_shows_what_is_in_its_notebook(book):
    page = (book.folder / "00_a.html").read_text(encoding="utf-8")
    assert page.count('width="40" alt="Two &quot;bars&quot; &amp; more"') == 2
    folded = re.findall(r"<details.*?</details>", page, re.DOTALL)
    assert len(folded) == 3
    for text, prompt in zip(folded, ("Setup", "Your guess", "Exercise 1"), strict=True):
        assert prompt in text
    assert "<em>there</em>" in folded[2] and "\\sigma(z)" in page
    assert re.search(r'<span class="k\w*">extern', page) and "measured elsewhere" in page
    source = (book.folder / "_sources" / "00_a.ipynb").read_bytes()
    assert source == (book.source / "00_a.ipynb").read_bytes()
    assert '_sources/00_a.ipynb"' in page


def test_a_quotation_leads_to_the_cell_that_holds_it(book):
    cell = nbformat.read(book.source / "00_a.ipynb", as_version=4).cells[2]
    page = (book.folder / "guide.html").read_text(encoding="utf-8")
    [there] = re.findall(r'href="(00_a\.html#[^"]+)"', page)
    assert there.endswith(cell.id) and re.search(r'href="00_a\.html"[^>]*><span[^>]*>gone', page)


def test_the_first_page_has_a_card_for_each_lesson(book):
    page = (book.folder / "index.html").read_text(encoding="utf-8")
    assert page.count("sd-card-img-top") == 1 and page.count("See <em>how</em> it works") == 2
    assert 'href="01_b.html"' in page and "Beside the lessons" in page


def test_a_button_opens_colab_once_there_is_an_address():
    assert "launch_buttons" not in pages.settings(None)["html_theme_options"]
    theme = pages.settings(GITHUB)["html_theme_options"]
    assert theme["repository_url"] == GITHUB and "colab_url" in theme["launch_buttons"]


def test_the_badge_of_colab_which_a_network_would_have_to_bring_is_left_out():
    nb = toy()
    nb.cells[0].source = f"# A\n\n{pages.BADGE}(x)\n\nGoal."
    assert "colab" not in str(pages.shown(nb, "00_a").cells[0]).lower()


RECORD = (
    """
from cnnlab.course import record
from cnnlab.measure.timing import Timing
record('Toy', {'a': Timing('a', (2.0,)), 'b': Timing('b', (1.0,))}, base='a')
page = open('../build/course/01_b.html').read()
print('while it runs:', 'measured elsewhere' in page)
"""
    + PLOT
)


@pytest.mark.slow
def test_a_run_shows_pages_at_once_and_replaces_those_of_the_lessons_that_ran(tmp_path, capsys):
    notebooks = tmp_path / "notebooks"
    notebooks.mkdir()
    stored = [
        write(notebooks, name, nb)
        for name, nb in {
            "00_a": toy("1"),
            "01_b": toy(RECORD),
            "02_bad": toy("def f():\n    return 1 / 0", "f()", "'never'"),
        }.items()
    ]
    before = [path.read_bytes() for path in stored]
    assert pages.run(["01", "02"], notebooks, tmp_path / "build") == 1
    out, err = capsys.readouterr()
    course = tmp_path / "build" / "course"
    assert out.index(str(course / "index.html")) < out.index("01_b")
    assert "2.00× (2.00 to 2.00, n=1)" in out and out.count(str(course / "index.html")) == 2
    assert "02_bad:\n  cell 4: " in err and "ZeroDivisionError" in err
    assert "01_b" not in err and "\x1b" not in err

    text = {file.stem: file.read_text(encoding="utf-8") for file in course.glob("*.html")}
    elsewhere = {name for name in text if "page were measured elsewhere" in text[name]}
    assert elsewhere == {"00_a"} and not faults(course)
    assert "while it runs: True" in text["01_b"] and "2.00×" in text["index"]
    shown = re.search(r'base64,([^"]+)" width="(\d+)"', text["01_b"])
    sharp = Image.open(io.BytesIO(base64.b64decode(shown[1]))).width
    assert sharp == pytest.approx(2 * int(shown[2]), abs=1)
    assert "ZeroDivisionError" in text["02_bad"]
    assert text["index"].count("This lesson failed") == 1
    assert [path.read_bytes() for path in stored] == before


def test_only_what_has_changed_is_built_again(book):
    old = {file: file.stat().st_mtime_ns for file in book.folder.glob("*.html")}
    book.put("01_b", book.lessons["01_b"])
    book.build()
    new = {file.stem for file, time in old.items() if file.stat().st_mtime_ns != time}
    assert "01_b" in new and not new & {"00_a", "glossary", "guide"}


@pytest.mark.slow
def test_ctrl_c_leaves_nothing_behind(tmp_path, monkeypatch):
    monkeypatch.setattr(pages.Book, "build", lambda book: "")
    stop = "import os, signal, time\nos.kill(os.getppid(), signal.SIGINT)\ntime.sleep(30)"
    (tmp_path / "notebooks").mkdir()
    write(tmp_path / "notebooks", "00_a", toy(stop))
    before = set(psutil.Process().children(recursive=True))
    with pytest.raises(KeyboardInterrupt):
        pages.run([], tmp_path / "notebooks", tmp_path / "build")
    assert not set(psutil.Process().children(recursive=True)) - before
    assert {path.name for path in tmp_path.iterdir()} == {"notebooks", "build"}
    assert not [path for path in tmp_path.rglob(".*-*") if path.is_file()]  # half written


def test_a_book_that_cannot_be_built_says_why(tmp_path):
    (tmp_path / "notebooks").mkdir()
    write(tmp_path / "notebooks", "00_a", toy())
    book = pages.Book(tmp_path / "notebooks", tmp_path / "build")
    (book.source / "index.md").unlink()
    (book.source / "00_a.ipynb").write_text("no notebook")
    with pytest.raises(RuntimeError, match="the pages could not be built"):
        book.build()


@pytest.mark.slow
def test_the_stored_lessons_make_a_book_without_a_warning_or_a_dead_link(tmp_path):
    book = pages.Book(NOTEBOOKS, tmp_path)
    assert book.build() == "" and not faults(book.folder)
    assert {file.stem for file in Path(NOTEBOOKS).glob("*.ipynb")} <= {
        file.stem for file in book.folder.glob("*.html")
    }
